/** Rows that are equal in the grouping columns, which come behind each other, become one: the first, with its aggregates combined. */
import { engineError } from '../errors/engine-error.js'
import type { MergeProgram } from '../plan/merge-program.js'
import type { FieldDescription } from '../wire/backend-messages.js'
import type { Combiner } from './aggregates/combiner.js'
import { combinerOf } from './aggregates/combiner-of.js'
import type { Slice } from './aggregates/values.js'
import { RowKeys } from './keys/row-keys.js'
import type { RowStage } from './row-stage.js'
import { ROW_HEADER_BYTES, RowFields, writeRowHeader } from './rows/row-frame.js'

/** Slots of the keys that tell groups apart. */
const INCOMING = 0
const CURRENT = 1

interface Combined {
  readonly column: number
  readonly parts: readonly number[]
  readonly combiner: Combiner
}

/** Groups are told apart by keys of the order alone: one that is no key of it would join groups in silence. @throws INTERNAL */
function checkOrder({ unique = [], order }: MergeProgram): void {
  const loose = unique.find((column) => !order.some((key) => key.column === column))
  if (loose === undefined) return
  const message = `rows are grouped by column ${loose}, and not in its order`
  throw engineError('INTERNAL', { message })
}

export class GroupRows implements RowStage {
  readonly #next: RowStage
  readonly #keys: RowKeys
  readonly #order: RowKeys | undefined
  /** Where the keys of the group's first row are kept. */
  readonly #slot: number
  readonly #combined: readonly Combined[]
  readonly #fields: RowFields
  readonly #width: number
  #row: Buffer | undefined

  /** `order`: the keys in the order of the rows, with the slots of shards below `slot`. @throws MERGE_ORDER_TYPE, MERGE_COMBINE_TYPE */
  constructor(
    program: MergeProgram,
    fields: readonly FieldDescription[],
    order: RowKeys | undefined,
    slot: number,
    next: RowStage,
  ) {
    const unique = new Set(program.unique)
    checkOrder(program)
    this.#keys = new RowKeys(
      program.order.filter(({ column }) => unique.has(column)),
      fields,
    )
    this.#order = order
    this.#slot = slot
    this.#next = next
    this.#width = fields.length
    this.#fields = new RowFields(fields.length)
    this.#combined = program.combine.map((combine) => ({
      column: combine.column,
      parts: combine.parts,
      combiner: combinerOf(combine, fields),
    }))
  }

  get takes(): boolean {
    return this.#next.takes
  }

  get isFull(): boolean {
    return this.#next.isFull
  }

  row(bytes: Buffer, start: number, end: number, slot: number): void {
    this.#keys.read(bytes, start, end, INCOMING)
    if (!this.#row || this.#keys.compare(INCOMING, CURRENT) !== 0) {
      this.#emit()
      this.#begin(bytes, start, end, slot)
    }
    if (this.#combined.length > 0) this.#add(bytes, start, end)
  }

  finish(): boolean {
    if (!this.#row || this.#next.isFull) return this.#next.finish()
    if (!this.#next.takes) return false
    this.#emit()
    return this.#next.finish()
  }

  #begin(bytes: Buffer, start: number, end: number, slot: number): void {
    this.#row = Buffer.from(bytes.subarray(start, end))
    this.#keys.keep(INCOMING, CURRENT)
    if (slot >= 0) this.#order?.keep(slot, this.#slot)
    for (const { combiner } of this.#combined) combiner.reset()
  }

  #add(bytes: Buffer, start: number, end: number): void {
    const fields = this.#fields
    fields.locate(bytes, start, end)
    for (const { parts, combiner } of this.#combined) {
      combiner.add(
        parts.map((part): Slice | undefined =>
          fields.isNull(part)
            ? undefined
            : { bytes, from: fields.from[part]!, to: fields.to[part]! },
        ),
      )
    }
  }

  #emit(): void {
    const first = this.#row
    if (!first) return
    this.#row = undefined
    const row = this.#combined.length === 0 ? first : this.#rebuilt(first)
    this.#next.row(row, 0, row.length, this.#slot)
  }

  /** The group's first row with the values that its aggregates came to. */
  #rebuilt(first: Buffer): Buffer {
    const fields = this.#fields
    fields.locate(first, 0, first.length)
    const results = new Map(
      this.#combined.map(({ column, combiner }) => [column, combiner.result()]),
    )
    const pieces: Buffer[] = [Buffer.alloc(ROW_HEADER_BYTES)]
    for (let column = 0; column < this.#width; column++) {
      const own = fields.isNull(column)
        ? null
        : first.subarray(fields.from[column], fields.to[column])
      const value = results.has(column) ? results.get(column)! : own
      const length = Buffer.alloc(4)
      length.writeInt32BE(value === null ? -1 : value.length)
      pieces.push(length)
      if (value !== null) pieces.push(value)
    }
    const row = Buffer.concat(pieces)
    writeRowHeader(row, 0, row.length, this.#width)
    return row
  }
}
