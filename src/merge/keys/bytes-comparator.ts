/** Values in the order of their bytes: text under C-like collations, bytea, uuid, and text forms that sort as their values do. */
import { type Comparator, grown } from './comparator.js'

const nothing = Buffer.alloc(0)
const PREFIX_BYTES = 6

/** What of the bytes counts: where the value ends, or −1 when the form is not the one that sorts so. */
export type BytesTrimmer = (bytes: Buffer, from: number, to: number) => number

export class BytesComparator implements Comparator {
  readonly #trim: BytesTrimmer | undefined
  /** The first six bytes as a number decide most comparisons. */
  #prefix = new Float64Array(16)
  readonly #bytes: Buffer[] = []
  readonly #from: number[] = []
  readonly #to: number[] = []
  /** Memory of kept slots, reused when it is large enough. */
  readonly #own: Buffer[] = []

  constructor(trim?: BytesTrimmer) {
    this.#trim = trim
  }

  read(bytes: Buffer, from: number, to: number, slot: number): void {
    const end = this.#trim ? this.#trim(bytes, from, to) : to
    this.#set(slot, bytes, from, end, prefixOf(bytes, from, end))
  }

  compare(a: number, b: number): number {
    const difference = (this.#prefix[a] as number) - (this.#prefix[b] as number)
    if (difference !== 0) return difference
    const fromA = this.#from[a] as number
    const toA = this.#to[a] as number
    const fromB = this.#from[b] as number
    const toB = this.#to[b] as number
    if (toA - fromA <= PREFIX_BYTES || toB - fromB <= PREFIX_BYTES)
      return toA - fromA - (toB - fromB)
    return (this.#bytes[a] as Buffer).compare(this.#bytes[b] as Buffer, fromB, toB, fromA, toA)
  }

  keep(from: number, to: number): void {
    const length = (this.#to[from] as number) - (this.#from[from] as number)
    let own = this.#own[to] ?? nothing
    if (own.length < length) {
      own = Buffer.allocUnsafeSlow(Math.max(length, 32))
      this.#own[to] = own
    }
    const start = this.#from[from] as number
    ;(this.#bytes[from] as Buffer).copy(own, 0, start, start + length)
    this.#set(to, own, 0, length, this.#prefix[from] as number)
  }

  identity(slot: number): string {
    return (this.#bytes[slot] as Buffer).toString('latin1', this.#from[slot], this.#to[slot])
  }

  #set(slot: number, bytes: Buffer, from: number, to: number, prefix: number): void {
    if (slot >= this.#prefix.length) this.#prefix = grown(this.#prefix, slot)
    this.#prefix[slot] = prefix
    this.#bytes[slot] = bytes
    this.#from[slot] = from
    this.#to[slot] = to
  }
}

/** The first six bytes, zeros behind a shorter value. */
function prefixOf(bytes: Buffer, from: number, to: number): number {
  if (to - from >= PREFIX_BYTES) {
    const high = ((bytes[from] as number) << 8) | (bytes[from + 1] as number)
    const low =
      ((bytes[from + 2] as number) << 24) |
      ((bytes[from + 3] as number) << 16) |
      ((bytes[from + 4] as number) << 8) |
      (bytes[from + 5] as number)
    return high * 4294967296 + (low >>> 0)
  }
  let prefix = 0
  for (let i = 0; i < PREFIX_BYTES; i++)
    prefix = prefix * 256 + (from + i < to ? (bytes[from + i] as number) : 0)
  return prefix
}
