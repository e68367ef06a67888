/** Rows that can be put in order only when all are there: those of groups, by their aggregates. Held within a bound. */
import { engineError } from '../errors/engine-error.js'
import type { RowKeys } from './keys/row-keys.js'
import type { RowStage } from './row-stage.js'

const MOST_BYTES = 67_108_864
/** What a row costs beside its bytes. */
const ROW_COST = 128

export class SortRows implements RowStage {
  readonly #keys: RowKeys
  readonly #next: RowStage
  readonly #rows: Buffer[] = []
  #bytes = 0
  /** Numbers of the rows in their order; their keys have the same numbers and one more. */
  #order: number[] | undefined
  #given = 0

  /** Slot 0 of `keys` is left to others. */
  constructor(keys: RowKeys, next: RowStage) {
    this.#keys = keys
    this.#next = next
  }

  get takes(): boolean {
    return !this.#order
  }

  get isFull(): boolean {
    return this.#next.isFull
  }

  row(bytes: Buffer, start: number, end: number): void {
    const row = Buffer.from(bytes.subarray(start, end))
    this.#bytes += row.length + ROW_COST
    if (this.#bytes > MOST_BYTES) throw engineError('MERGE_TOO_LARGE', { limit: MOST_BYTES })
    this.#keys.read(row, 0, row.length, this.#rows.length + 1)
    this.#rows.push(row)
  }

  finish(): boolean {
    const keys = this.#keys
    this.#order ??= this.#rows.map((_, i) => i).sort((a, b) => keys.compare(a + 1, b + 1) || a - b)
    while (this.#given < this.#order.length && !this.#next.isFull) {
      if (!this.#next.takes) return false
      const at = this.#order[this.#given++]!
      const row = this.#rows[at]!
      this.#next.row(row, 0, row.length, at + 1)
    }
    return this.#next.finish()
  }
}
