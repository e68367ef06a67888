/**
 * The net effect of many changes on one target: for each table and key the last word, in one entry.
 * Order between keys is not kept (the log keeps it, for a batch that fails); order of changes to one key is.
 * Pure. A row that was inserted or updated whole is put; one with unchanged out-of-line values is a patch.
 */
import { COLUMN_NULL, COLUMN_UNCHANGED, type Tuple } from '../../replication/change.js'
import type { MoveTable } from '../move-table.js'
import type { PlacedTuple } from './array-parameter.js'

export type RowOp =
  | { readonly kind: 'put'; readonly table: MoveTable; readonly row: PlacedTuple }
  /** Columns that the tuple does not carry stay as they are; the key is in `row`. */
  | { readonly kind: 'patch'; readonly table: MoveTable; readonly row: PlacedTuple }
  | { readonly kind: 'delete'; readonly table: MoveTable; readonly row: PlacedTuple }

/** Rows have no key (identity FULL): equal ones are told apart by nothing, and only their number counts. */
export const isKeyless = (table: MoveTable): boolean => table.identity.length === 0

/** The replica identity of a row as a map key; of a table without one the whole row. */
export function identityKey(table: MoveTable, row: PlacedTuple): string {
  const { tuple, at } = row
  let key = ''
  const columns = isKeyless(table) ? table.columns.keys() : table.identity
  for (const column of columns) {
    const place = at[column] as number
    const start = tuple.starts[place] as number
    const end = tuple.ends[place] as number
    // Lengths keep ('ab', 'c') apart from ('a', 'bc').
    key += `${tuple.kinds[place]}.${end - start}.${tuple.bytes.toString('latin1', start, end)}`
  }
  return key
}

/** Which columns a row carries, as a string of 0 and 1. */
export function columnMask(table: MoveTable, row: PlacedTuple): string {
  let mask = ''
  for (let column = 0; column < table.columns.length; column++) {
    mask += row.tuple.kinds[row.at[column] as number] === COLUMN_UNCHANGED ? '0' : '1'
  }
  return mask
}

export const isWhole = (table: MoveTable, row: PlacedTuple): boolean =>
  !columnMask(table, row).includes('0')

/** `under` with the columns that `over` carries laid over it, in the order of the table. */
export function overlay(table: MoveTable, under: PlacedTuple, over: PlacedTuple): PlacedTuple {
  const count = table.columns.length
  const shift = under.tuple.bytes.length
  const tuple: Tuple = {
    bytes: Buffer.concat([under.tuple.bytes, over.tuple.bytes]),
    kinds: new Uint8Array(count),
    starts: new Int32Array(count),
    ends: new Int32Array(count),
  }
  for (let column = 0; column < count; column++) {
    const top = over.at[column] as number
    const isTop = over.tuple.kinds[top] !== COLUMN_UNCHANGED
    const { tuple: from, at } = isTop ? over : under
    const place = at[column] as number
    const offset = isTop ? shift : 0
    const kind = from.kinds[place] as number
    tuple.kinds[column] = kind
    if (kind === COLUMN_NULL || kind === COLUMN_UNCHANGED) continue
    tuple.starts[column] = (from.starts[place] as number) + offset
    tuple.ends[column] = (from.ends[place] as number) + offset
  }
  return { tuple, at: Int32Array.from({ length: count }, (_, column) => column) }
}

/** An old key says null for every column outside it: those are unknown, not null. */
export function keyOnly(table: MoveTable, before: PlacedTuple): PlacedTuple {
  const { tuple, at } = before
  const kinds = Uint8Array.from(tuple.kinds)
  for (let column = 0; column < table.columns.length; column++) {
    if (!table.identity.includes(column)) kinds[at[column] as number] = COLUMN_UNCHANGED
  }
  return { tuple: { ...tuple, kinds }, at }
}

function combine(first: RowOp, next: RowOp): RowOp {
  if (next.kind !== 'patch' || first.kind === 'delete') return next
  const row = overlay(next.table, first.row, next.row)
  return { kind: first.kind === 'put' ? 'put' : 'patch', table: next.table, row }
}

export class ChangeBatch {
  /** Every change, in order. */
  readonly log: RowOp[] = []
  readonly #net = new Map<MoveTable, Map<string, RowOp>>()
  /** Of tables without a key: each row with the number of copies to add, or to take away below 0. */
  readonly #counts = new Map<MoveTable, Map<string, { row: PlacedTuple; copies: number }>>()
  bytes = 0

  get size(): number {
    return this.log.length
  }

  add(op: RowOp): void {
    this.log.push(op)
    this.bytes += op.row.tuple.bytes.length
    if (isKeyless(op.table)) return this.#count(op)
    let rows = this.#net.get(op.table)
    if (!rows) {
      rows = new Map()
      this.#net.set(op.table, rows)
    }
    const key = identityKey(op.table, op.row)
    const known = rows.get(key)
    rows.set(key, known ? combine(known, op) : op)
  }

  /** What is batched for one row of a table with a key. */
  pending(table: MoveTable, row: PlacedTuple): RowOp | undefined {
    return this.#net.get(table)?.get(identityKey(table, row))
  }

  /** The net effect, table by table. */
  *net(): Iterable<readonly [MoveTable, RowOp[]]> {
    for (const [table, rows] of this.#net) yield [table, [...rows.values()]]
    for (const [table, rows] of this.#counts) {
      const ops = [...rows.values()].flatMap(({ row, copies }): RowOp[] => {
        const kind = copies < 0 ? 'delete' : 'put'
        return Array.from({ length: Math.abs(copies) }, () => ({ kind, table, row }))
      })
      if (ops.length > 0) yield [table, ops]
    }
  }

  #count(op: RowOp): void {
    let rows = this.#counts.get(op.table)
    if (!rows) {
      rows = new Map()
      this.#counts.set(op.table, rows)
    }
    const key = identityKey(op.table, op.row)
    const known = rows.get(key) ?? { row: op.row, copies: 0 }
    known.copies += op.kind === 'delete' ? -1 : 1
    rows.set(key, known)
  }

  clear(): void {
    this.log.length = 0
    this.#net.clear()
    this.#counts.clear()
    this.bytes = 0
  }
}
