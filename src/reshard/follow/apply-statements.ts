/**
 * The SQL that applies rows to a target, many at once: unnest of one array a column.
 * Values in text form travel as text[] and are cast; values in binary form as arrays of the type itself. Pure.
 */

import { quoteName } from '../../pg/sql-names.js'
import { COLUMN_BINARY, COLUMN_TEXT } from '../../replication/change.js'
import type { MoveTable } from '../move-table.js'
import { columnArray, isUniform, type PlacedTuple, TEXT_OID } from './array-parameter.js'
import { columnMask, isKeyless, type RowOp } from './change-batch.js'

export interface ApplyStatement {
  /** Name of the prepared statement: equal for equal text. */
  readonly name: string
  readonly text: string
  readonly values: readonly Buffer[]
}

/** Names for statement texts, for the life of a connection's owner. */
export class StatementNames {
  readonly #names = new Map<string, string>()

  of(text: string): string {
    const known = this.#names.get(text)
    if (known) return known
    const name = `apply${this.#names.size}`
    this.#names.set(text, name)
    return name
  }
}

interface Arrays {
  /** `unnest($1::int8[], …) AS u (c0, …)`. */
  readonly from: string
  /** SQL of a column's value. */
  value(column: number): string
  readonly values: Buffer[]
}

function arraysOf(
  table: MoveTable,
  rows: readonly PlacedTuple[],
  columns: readonly number[],
): Arrays | undefined {
  const lists: string[] = []
  const values: Buffer[] = []
  const casts = new Map<number, string>()
  for (const column of columns) {
    const { type, typeOid } = table.columns[column] as MoveTable['columns'][number]
    const isText = isUniform(rows, column, COLUMN_TEXT)
    if (!isText && !isUniform(rows, column, COLUMN_BINARY)) return undefined
    const isBinary = !isText
    lists.push(`$${lists.length + 1}::${isBinary ? type : 'text'}[]`)
    values.push(columnArray(rows, column, isBinary ? typeOid : TEXT_OID))
    casts.set(column, isBinary || type === 'text' ? `u.c${column}` : `u.c${column}::${type}`)
  }
  const names = columns.map((column) => `c${column}`).join(', ')
  return {
    from: `unnest(${lists.join(', ')}) AS u (${names})`,
    value: (column) => casts.get(column) as string,
    values,
  }
}

const name = (table: MoveTable, column: number): string =>
  quoteName((table.columns[column] as MoveTable['columns'][number]).name)

const every = (table: MoveTable): number[] => table.columns.map((_, column) => column)

/** Columns that may stand in SET: not the key, and not what PostgreSQL alone may set. */
const settable = (table: MoveTable, columns: readonly number[]): number[] =>
  columns.filter(
    (column) => !table.identity.includes(column) && !table.columns[column]?.isIdentityAlways,
  )

/** Rows are put by taking the old one away: PostgreSQL lets nobody set GENERATED ALWAYS columns of a row that stands. */
export const isReplaced = (table: MoveTable): boolean =>
  table.columns.some((column, i) => column.isIdentityAlways && !table.identity.includes(i))

function putText(table: MoveTable, arrays: Arrays): string {
  const columns = every(table)
  const set = settable(table, columns).map((column) => {
    return `${name(table, column)} = excluded.${name(table, column)}`
  })
  const key = table.identity.map((column) => name(table, column)).join(', ')
  const isPlain = isKeyless(table) || isReplaced(table)
  const action = set.length === 0 ? 'DO NOTHING' : `DO UPDATE SET ${set.join(', ')}`
  return (
    `INSERT INTO ${table.targetName} (${columns.map((column) => name(table, column)).join(', ')}) ` +
    `OVERRIDING SYSTEM VALUE SELECT ${columns.map(arrays.value).join(', ')} FROM ${arrays.from}` +
    (isPlain ? '' : ` ON CONFLICT (${key}) ${action}`)
  )
}

/**
 * Takes away one row that is equal in every column, by its text: not every type can be compared otherwise.
 * For one row alone.
 */
function deleteKeylessText(table: MoveTable, arrays: Arrays): string {
  const match = every(table).map(
    (column) => `t.${name(table, column)}::text IS NOT DISTINCT FROM ${arrays.value(column)}::text`,
  )
  return (
    `DELETE FROM ${table.targetName} WHERE ctid = (SELECT t.ctid FROM ${table.targetName} AS t, ${arrays.from} ` +
    `WHERE ${match.join(' AND ')} LIMIT 1)`
  )
}

const keyMatch = (table: MoveTable, arrays: Arrays): string =>
  table.identity.map((column) => `t.${name(table, column)} = ${arrays.value(column)}`).join(' AND ')

function statementOf(
  kind: RowOp['kind'],
  table: MoveTable,
  rows: readonly PlacedTuple[],
  names: StatementNames,
): ApplyStatement | undefined {
  let columns: readonly number[] = table.identity
  if (kind === 'put' || isKeyless(table)) columns = every(table)
  if (kind === 'patch') {
    const mask = columnMask(table, rows[0] as PlacedTuple)
    columns = every(table).filter((column) => mask[column] === '1')
  }
  const arrays = arraysOf(table, rows, columns)
  if (!arrays) return undefined
  let text = ''
  if (kind === 'put') text = putText(table, arrays)
  else if (isKeyless(table)) text = deleteKeylessText(table, arrays)
  else if (kind === 'delete') {
    text = `DELETE FROM ${table.targetName} AS t USING ${arrays.from} WHERE ${keyMatch(table, arrays)}`
  } else {
    const set = settable(table, columns).map((c) => `${name(table, c)} = ${arrays.value(c)}`)
    // Nothing but the key was sent: there is nothing to set.
    if (set.length === 0) return { name: '', text: '', values: [] }
    text = `UPDATE ${table.targetName} AS t SET ${set.join(', ')} FROM ${arrays.from} WHERE ${keyMatch(table, arrays)}`
  }
  return { name: names.of(text), text, values: arrays.values }
}

/** Statements for rows of one table and kind; rows whose columns differ in form go one by one. */
function statementsOf(
  kind: RowOp['kind'],
  table: MoveTable,
  rows: readonly PlacedTuple[],
  names: StatementNames,
): ApplyStatement[] {
  if (rows.length === 0) return []
  const isApart = kind === 'delete' && isKeyless(table)
  const together = isApart ? undefined : statementOf(kind, table, rows, names)
  if (together) return together.text === '' ? [] : [together]
  return rows.flatMap((row) => statementOf(kind, table, [row], names) ?? [])
}

/** The statements of a table's net effect: deletes first, so that what they free can be taken. */
export function applyNet(
  table: MoveTable,
  ops: readonly RowOp[],
  names: StatementNames,
): ApplyStatement[] {
  const rowsOf = (kind: RowOp['kind']): PlacedTuple[] =>
    ops.filter((op) => op.kind === kind).map((op) => op.row)
  const patches = new Map<string, PlacedTuple[]>()
  for (const row of rowsOf('patch')) {
    const mask = columnMask(table, row)
    const group = patches.get(mask)
    if (group) group.push(row)
    else patches.set(mask, [row])
  }
  const old = isReplaced(table) && !isKeyless(table) ? rowsOf('put') : []
  return [
    ...statementsOf('delete', table, [...rowsOf('delete'), ...old], names),
    ...[...patches.values()].flatMap((rows) => statementsOf('patch', table, rows, names)),
    ...statementsOf('put', table, rowsOf('put'), names),
  ]
}

/** The statement of one change alone. */
export function applyOne(op: RowOp, names: StatementNames): ApplyStatement[] {
  const one = (kind: RowOp['kind']): ApplyStatement[] =>
    statementsOf(kind, op.table, [op.row], names)
  const isReplacing = op.kind === 'put' && isReplaced(op.table) && !isKeyless(op.table)
  return isReplacing ? [...one('delete'), ...one('put')] : one(op.kind)
}
