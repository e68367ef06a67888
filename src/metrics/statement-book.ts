/**
 * What was seen of each statement, by its text without literals: how often, how long, on how many shards. Bounded: the one
 * that took the least time in all leaves when another comes. Recording is a few additions; a text is made once a template.
 */
import { CONTROL, READ, REQUEST_CLASSES, WRITE } from './request-times.js'

export interface SeenStatement {
  count: number
  errors: number
  totalMs: number
  maxMs: number
  /** Shards that worked for it, summed. */
  shards: number
  /** A bit for each number of a class. */
  classes: number
  /** False: it has left the book, and what is noted in it is lost. */
  isKept: boolean
}

export interface StatementRow {
  readonly text: string
  readonly count: number
  readonly errors: number
  readonly totalMs: number
  readonly maxMs: number
  readonly shards: number
  /** `one shard`, or what several shards did for it. */
  readonly hows: readonly string[]
}

/** In the place of a class: nothing was asked of a server. */
export const REFUSED = REQUEST_CLASSES.length

const MOST_STATEMENTS = 500
/** Texts that agree so far are one. */
const MOST_CHARACTERS = 2000

export class StatementBook {
  readonly #known = new Map<string, SeenStatement>()

  of(text: string): SeenStatement {
    const key = text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS)}…` : text
    const known = this.#known.get(key)
    if (known) return known
    if (this.#known.size >= MOST_STATEMENTS) this.#dropLeast()
    const made = {
      ...{ count: 0, errors: 0, totalMs: 0, maxMs: 0, shards: 0, classes: 0 },
      isKept: true,
    }
    this.#known.set(key, made)
    return made
  }

  rows(): StatementRow[] {
    return [...this.#known].map(([text, seen]) => ({
      text,
      count: seen.count,
      errors: seen.errors,
      totalMs: seen.totalMs,
      maxMs: seen.maxMs,
      shards: seen.shards,
      hows: howsOf(seen.classes),
    }))
  }

  #dropLeast(): void {
    let least: [string, SeenStatement] | undefined
    for (const one of this.#known) if (!least || one[1].totalMs < least[1].totalMs) least = one
    if (!least) return
    least[1].isKept = false
    this.#known.delete(least[0])
  }
}

export function noteSeen(
  seen: SeenStatement,
  requestClass: number,
  shards: number,
  elapsedMs: number,
  failed: boolean,
): void {
  seen.count++
  if (failed) seen.errors++
  seen.totalMs += elapsedMs
  if (elapsedMs > seen.maxMs) seen.maxMs = elapsedMs
  seen.shards += shards
  seen.classes |= 1 << requestClass
}

function howsOf(classes: number): string[] {
  const words = [...REQUEST_CLASSES, 'refused'].flatMap((name, i) => {
    if ((classes & (1 << i)) === 0 || i === CONTROL) return []
    return i === READ || i === WRITE ? ['one shard'] : [name.replace('_', '-')]
  })
  return [...new Set(words)]
}
