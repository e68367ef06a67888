/** A repeatable source of choices: the same seed makes the same statements. */
import { makeRandom } from '../random.js'

export class Chooser {
  /** From 0 to below 1. */
  readonly fraction: () => number

  /** From a seed, or from fractions that somebody else gives. */
  constructor(source: number | (() => number)) {
    this.fraction = typeof source === 'number' ? makeRandom(source) : source
  }

  below(limit: number): number {
    return Math.floor(this.fraction() * limit)
  }

  chance(probability: number): boolean {
    return this.fraction() < probability
  }

  pick<T>(from: readonly T[]): T {
    return from[this.below(from.length)]!
  }

  some<T>(least: number, most: number, make: () => T): T[] {
    return Array.from({ length: least + this.below(most - least + 1) }, make)
  }
}
