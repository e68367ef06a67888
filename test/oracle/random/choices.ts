/**
 * Choices that are written down, so that what was made of them can be made again from fewer or smaller ones: a failing
 * case shrinks by its choices, whatever they decide. The first of some alternatives is the simplest.
 */
import { Chooser } from '../../support/arbitraries/chooser.js'
import { makeRandom } from '../../support/random.js'

/** A chooser that notes what it gave. Behind the end of a given list every choice is the first. */
export class Choices extends Chooser {
  readonly taken: number[]

  constructor(source: number | readonly number[]) {
    const taken: number[] = []
    const random = typeof source === 'number' ? makeRandom(source) : undefined
    super(() => {
      const fraction = random ? random() : ((source as readonly number[])[taken.length] ?? 0)
      taken.push(fraction)
      return fraction
    })
    this.taken = taken
  }
}

/** Fewer choices, or simpler ones. */
function* smaller(choices: readonly number[]): Generator<number[]> {
  for (let size = Math.ceil(choices.length / 2); size >= 1; size = Math.floor(size / 2)) {
    for (let at = 0; at < choices.length; at += size)
      yield [...choices.slice(0, at), ...choices.slice(at + size)]
  }
  for (const [at, choice] of choices.entries()) {
    if (choice === 0) continue
    yield [...choices.slice(0, at), 0, ...choices.slice(at + 1)]
    yield [...choices.slice(0, at), choice / 2, ...choices.slice(at + 1)]
  }
}

/** The smallest choices found with which `fails` still holds. */
export async function shrinkChoices(
  failing: readonly number[],
  fails: (choices: readonly number[]) => Promise<boolean>,
  attempts = 300,
): Promise<readonly number[]> {
  let best = failing
  let left = attempts
  for (let again = true; again; ) {
    again = false
    for (const candidate of smaller(best)) {
      if (left-- <= 0) return best
      if (!(await fails(candidate))) continue
      best = candidate
      again = true
      break
    }
  }
  return best
}

/** The fewest of `items` found with which `fails` still holds. */
export async function shrinkList<T>(
  items: readonly T[],
  fails: (items: readonly T[]) => Promise<boolean>,
): Promise<readonly T[]> {
  let best = items
  for (let size = Math.ceil(best.length / 2); size >= 1; size = Math.floor(size / 2)) {
    for (let at = 0; at < best.length; ) {
      const fewer = [...best.slice(0, at), ...best.slice(at + size)]
      if (await fails(fewer)) best = fewer
      else at += size
    }
  }
  return best
}
