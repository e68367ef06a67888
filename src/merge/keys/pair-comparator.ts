/** Values that are two numbers, compared one after the other: integers, floats, dates and times. No allocation a row. */
import { type Comparator, grown } from './comparator.js'

/** What a reader leaves: the first number decides, then the second. Overwritten by the next call of any reader. */
export const pair = new Float64Array(2)

/** Leaves the value [from, to) in `pair`; the same representation for all values of a column. */
export type PairReader = (bytes: Buffer, from: number, to: number) => void

export class PairComparator implements Comparator {
  readonly #read: PairReader
  #first = new Float64Array(16)
  #second = new Float64Array(16)

  constructor(read: PairReader) {
    this.#read = read
  }

  read(bytes: Buffer, from: number, to: number, slot: number): void {
    this.#read(bytes, from, to)
    if (slot >= this.#first.length) this.#grow(slot)
    this.#first[slot] = pair[0] as number
    this.#second[slot] = pair[1] as number
  }

  compare(a: number, b: number): number {
    const difference = (this.#first[a] as number) - (this.#first[b] as number)
    if (difference !== 0) return this.#compareFirst(difference, a, b)
    return (this.#second[a] as number) - (this.#second[b] as number)
  }

  /** Two infinities have no difference. */
  #compareFirst(difference: number, a: number, b: number): number {
    if (!Number.isNaN(difference)) return difference
    return (this.#second[a] as number) - (this.#second[b] as number)
  }

  keep(from: number, to: number): void {
    if (to >= this.#first.length) this.#grow(to)
    this.#first[to] = this.#first[from] as number
    this.#second[to] = this.#second[from] as number
  }

  /** `+ 0` makes one zero of both. */
  identity(slot: number): string {
    return `${(this.#first[slot] as number) + 0},${(this.#second[slot] as number) + 0}`
  }

  #grow(slot: number): void {
    this.#first = grown(this.#first, slot)
    this.#second = grown(this.#second, slot)
  }
}
