import { makeRandom } from '../support/random.js'

/** Random choices from a seed: the same on every machine. */
export interface Random {
  below(limit: number): number
  pick<T>(items: readonly T[]): T
  chance(share: number): boolean
  /** Fewer than `limit` of the items behind each other. */
  some(limit: number, items: readonly string[]): string
}

export function makeChoices(seed: number): Random {
  const next = makeRandom(seed)
  const below = (limit: number) => Math.floor(next() * limit)
  const pick = <T>(items: readonly T[]) => items[below(items.length)] as T
  return {
    below,
    pick,
    chance: (share) => next() < share,
    some: (limit, items) => Array.from({ length: below(limit) }, () => pick(items)).join(''),
  }
}
