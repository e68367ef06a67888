/**
 * The keys by which rows are ordered or told apart: one comparator a key, values in numbered slots. A slot may be a
 * shard (its head row), a group, or a row that is held.
 */
import { engineError } from '../../errors/engine-error.js'
import type { SortKey } from '../../plan/merge-program.js'
import type { FieldDescription } from '../../wire/backend-messages.js'
import { int32At, ROW_HEADER_BYTES, rowTruncated } from '../rows/row-frame.js'
import type { Comparator } from './comparator.js'
import { comparatorOf } from './comparator-of.js'

export class RowKeys {
  readonly #comparators: Comparator[]
  readonly #columns: readonly number[]
  readonly #signs: number[]
  /** What a NULL gives against another value. */
  readonly #nullSigns: number[]
  /** Key of each column up to the last that has one, or −1. */
  readonly #keyAt: Int32Array
  #isNull = new Uint8Array(64)

  /** @throws MERGE_ORDER_TYPE */
  constructor(order: readonly SortKey[], fields: readonly FieldDescription[]) {
    // a column once more decides nothing
    const keys = order.filter(
      ({ column }, i) => order.findIndex((other) => other.column === column) === i,
    )
    this.#columns = order.map(({ column }) => keys.findIndex((key) => key.column === column))
    this.#comparators = keys.map((key) => comparatorFor(key, fields))
    this.#signs = keys.map(({ descending }) => (descending ? -1 : 1))
    this.#nullSigns = keys.map(({ nullsFirst }) => (nullsFirst ? -1 : 1))
    this.#keyAt = new Int32Array(Math.max(0, ...keys.map(({ column }) => column + 1))).fill(-1)
    keys.forEach(({ column }, key) => {
      this.#keyAt[column] = key
    })
  }

  /** Decodes the keys of the row [start, end) into a slot. The row must stay where it is, or `keep` must follow. */
  read(bytes: Buffer, start: number, end: number, slot: number): void {
    const keyAt = this.#keyAt
    const nulls = slot * this.#comparators.length
    if (nulls + this.#comparators.length > this.#isNull.length) this.#grow(nulls)
    let at = start + ROW_HEADER_BYTES
    for (let column = 0; column < keyAt.length; column++) {
      if (at + 4 > end) rowTruncated()
      const length = int32At(bytes, at)
      at += 4
      if (at + length > end) rowTruncated()
      const key = keyAt[column] as number
      if (key >= 0) this.#isNull[nulls + key] = length < 0 ? 1 : 0
      if (length < 0) continue
      if (key >= 0) this.#comparators[key]!.read(bytes, at, at + length, slot)
      at += length
    }
  }

  compare(a: number, b: number): number {
    return this.#compare(a, b, this.#comparators.length)
  }

  /** Equal in the first `count` keys of the order given. */
  sameFirst(count: number, a: number, b: number): boolean {
    let keys = 0
    for (let i = 0; i < count && i < this.#columns.length; i++)
      keys = Math.max(keys, (this.#columns[i] as number) + 1)
    return this.#compare(a, b, keys) === 0
  }

  #compare(a: number, b: number, count: number): number {
    const comparators = this.#comparators
    const nullsA = a * comparators.length
    const nullsB = b * comparators.length
    for (let key = 0; key < count; key++) {
      const nullA = this.#isNull[nullsA + key] as number
      const nullB = this.#isNull[nullsB + key] as number
      if (nullA !== nullB) return (nullA - nullB) * (this.#nullSigns[key] as number)
      if (nullA === 1) continue
      const difference = comparators[key]!.compare(a, b)
      if (difference !== 0) return difference * (this.#signs[key] as number)
    }
    return 0
  }

  /** Copies a slot into another, which then needs no borrowed bytes. */
  keep(from: number, to: number): void {
    const count = this.#comparators.length
    if ((to + 1) * count > this.#isNull.length) this.#grow(to * count)
    for (let key = 0; key < count; key++) {
      const isNull = this.#isNull[from * count + key] as number
      this.#isNull[to * count + key] = isNull
      if (isNull === 0) this.#comparators[key]!.keep(from, to)
    }
  }

  /** Equal strings for rows that are equal in all keys. */
  identity(slot: number): string {
    const count = this.#comparators.length
    let text = ''
    for (let key = 0; key < count; key++) {
      if (this.#isNull[slot * count + key] === 1) {
        text += '-;'
        continue
      }
      const part = this.#comparators[key]!.identity(slot)
      text += `${part.length}:${part};`
    }
    return text
  }

  #grow(needed: number): void {
    const bigger = new Uint8Array(
      Math.max(needed + this.#comparators.length, this.#isNull.length * 2),
    )
    bigger.set(this.#isNull)
    this.#isNull = bigger
  }
}

function comparatorFor(key: SortKey, fields: readonly FieldDescription[]): Comparator {
  const field = fields[key.column]
  const comparator =
    field &&
    comparatorOf({
      typeOid: field.typeOid,
      format: field.format,
      bytewise: key.bytewise ?? false,
    })
  if (comparator) return comparator
  throw engineError('MERGE_ORDER_TYPE', {
    column: field?.name ?? String(key.column + 1),
    type: field?.typeOid ?? 0,
  })
}
