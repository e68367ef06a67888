/**
 * Parts of tables: ranges of the leading columns of the replica identity, which tile the key space of a source and are
 * open at both ends. Pure. Cut only on types that `datum/` orders as the server does.
 */

import { type KeyReader, type KeyValue, makeKeyReader } from '../../datum/key-reader.js'
import type { KeyType } from '../../datum/key-type.js'
import { engineError } from '../../errors/engine-error.js'
import { quoteLiteral, quoteName } from '../../pg/sql-names.js'
import { COLUMN_BINARY, COLUMN_TEXT } from '../../replication/change.js'
import type { PlacedTuple } from '../follow/array-parameter.js'
import type { JournalPart } from '../journal/journal.js'
import { type MoveTable, tableLabel } from '../move-table.js'

export interface Part {
  readonly table: MoveTable
  /** Source shard. */
  readonly source: number
  readonly part: number
  /** Texts of the leading key columns: the first key that belongs to the part; null: open below. */
  readonly low: readonly string[] | null
  /** The first key that does not; null: open above. */
  readonly high: readonly string[] | null
}

export const partName = (table: string, source: number, part: number): string =>
  JSON.stringify([table, source, part])

export const nameOfPart = (part: Part): string =>
  partName(tableLabel(part.table), part.source, part.part)

/** The parts that the journal keeps, with their tables. Those of tables that are not moved are left out. */
export function partsOf(kept: readonly JournalPart[], tables: readonly MoveTable[]): Part[] {
  const known = new Map(tables.map((table) => [tableLabel(table), table]))
  const read = (low: string | null): string[] | null =>
    low === null ? null : (JSON.parse(low) as string[])
  return kept.flatMap((one, i): Part[] => {
    const table = known.get(one.table)
    if (!table) return []
    const before = kept[i - 1]
    const expected =
      before?.table === one.table && before.source === one.source ? before.part + 1 : 0
    // Out of order, two parts would hold the same rows.
    if (one.part !== expected) throw engineError('INTERNAL', { message: 'parts out of order' })
    const next = kept[i + 1]
    const isOfSame = next?.table === one.table && next.source === one.source
    const { source, part } = one
    return [{ table, source, part, low: read(one.low), high: isOfSame ? read(next.low) : null }]
  })
}

const orderedTypes = new Map<number, KeyType>([
  [20, 'bigint'],
  [21, 'smallint'],
  [23, 'integer'],
  [25, 'text'],
  [1043, 'text'],
  [1082, 'date'],
  [1114, 'timestamp'],
  [1184, 'timestamptz'],
  [1700, 'numeric'],
  [2950, 'uuid'],
])

/** Text is ordered by its collation: by bytes in C and its like only. */
const collated = new Set([25, 1043])

/** The leading columns of the replica identity that can be cut on. */
export function cuttable(
  table: MoveTable,
  isByteOrdered: (column: string) => boolean,
): readonly number[] {
  const end = table.identity.findIndex((index) => {
    const column = table.columns[index]
    if (!column || !orderedTypes.has(column.typeOid)) return true
    return collated.has(column.typeOid) && !isByteOrdered(column.name)
  })
  return end < 0 ? table.identity : table.identity.slice(0, end)
}

const rowOf = (parts: readonly string[]): string =>
  parts.length === 1 ? (parts[0] as string) : `(${parts.join(', ')})`

/** The rows of a part as a WHERE clause; empty for a whole table. */
export function partCondition({ table, low, high }: Part): string {
  const compare = (sign: string, bound: readonly string[] | null): string[] => {
    if (bound === null) return []
    const columns = table.identity.slice(0, bound.length).map((index) => table.columns[index])
    const values = bound.map((text, i) => `${quoteLiteral(text)}::${columns[i]?.type}`)
    return [`${rowOf(columns.map((one) => quoteName(one?.name ?? '')))} ${sign} ${rowOf(values)}`]
  }
  return [...compare('>=', low), ...compare('<', high)].join(' AND ')
}

/** Compares keys of a table with the bounds of its parts. */
export class PartFinder {
  readonly #columns: readonly number[]
  readonly #readers: readonly KeyReader[]
  /** Of the second part and those after it. */
  readonly #lows: readonly (readonly KeyValue[])[]

  /** `lows`: as in the journal, in order; the first is null. */
  constructor(table: MoveTable, lows: readonly (readonly string[] | null)[]) {
    const bounds = lows.filter((low) => low !== null)
    this.#columns = table.identity.slice(0, bounds[0]?.length ?? 0)
    this.#readers = this.#columns.map((index) =>
      makeKeyReader(orderedTypes.get(table.columns[index]?.typeOid ?? 0) as KeyType),
    )
    this.#lows = bounds.map((low) =>
      low.map((text, i) => {
        const bytes = Buffer.from(text, 'utf8')
        const reader = this.#readers[i] as KeyReader
        reader.readText(bytes, 0, bytes.length)
        return reader.value()
      }),
    )
  }

  /** The number of the part that holds the key of a row. */
  find(row: PlacedTuple): number {
    if (this.#lows.length === 0) return 0
    const key = this.#readers.map((reader, i) => readValue(reader, row, this.#columns[i] as number))
    let first = 0
    let end = this.#lows.length
    while (first < end) {
      const middle = (first + end) >> 1
      if (this.#compare(key, this.#lows[middle] as readonly KeyValue[]) < 0) end = middle
      else first = middle + 1
    }
    return first
  }

  #compare(a: readonly KeyValue[], b: readonly KeyValue[]): number {
    for (const [i, reader] of this.#readers.entries()) {
      const order = reader.compare(a[i] as KeyValue, b[i] as KeyValue)
      if (order !== 0) return order
    }
    return 0
  }
}

function readValue(reader: KeyReader, row: PlacedTuple, column: number): KeyValue {
  const { tuple } = row
  const place = row.at[column] as number
  const start = tuple.starts[place] as number
  const end = tuple.ends[place] as number
  const kind = tuple.kinds[place]
  if (kind === COLUMN_TEXT) reader.readText(tuple.bytes, start, end)
  else if (kind === COLUMN_BINARY) reader.readBinary(tuple.bytes, start, end)
  else throw new Error('a change came without its key')
  return reader.value()
}
