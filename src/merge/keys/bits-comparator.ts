/** bit and varbit in binary form: the bytes, then the number of bits. Follows `bit_cmp` in src/backend/utils/adt/varbit.c. */
import { int32At } from '../rows/row-frame.js'
import { BytesComparator } from './bytes-comparator.js'
import { type Comparator, grown } from './comparator.js'

export class BitsComparator implements Comparator {
  readonly #bytes = new BytesComparator()
  #length = new Float64Array(16)

  /** Int32 number of bits · bytes */
  read(bytes: Buffer, from: number, to: number, slot: number): void {
    this.#bytes.read(bytes, from + 4, to, slot)
    this.#set(slot, int32At(bytes, from))
  }

  compare(a: number, b: number): number {
    const difference = this.#bytes.compare(a, b)
    return difference === 0 ? (this.#length[a] as number) - (this.#length[b] as number) : difference
  }

  keep(from: number, to: number): void {
    this.#bytes.keep(from, to)
    this.#set(to, this.#length[from] as number)
  }

  identity(slot: number): string {
    return `${this.#length[slot]}:${this.#bytes.identity(slot)}`
  }

  #set(slot: number, length: number): void {
    if (slot >= this.#length.length) this.#length = grown(this.#length, slot)
    this.#length[slot] = length
  }
}
