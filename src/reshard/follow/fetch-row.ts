/** One row by its replica identity, every value as text. Reads only. */
import type { HostClient } from '../../pg/host-client.js'
import { quoteName } from '../../pg/sql-names.js'
import { COLUMN_TEXT } from '../../replication/change.js'
import type { MoveTable } from '../move-table.js'
import { type PlacedTuple, textTuple } from './array-parameter.js'

/** Undefined when there is no such row. */
export async function fetchRow(
  client: HostClient,
  table: MoveTable,
  key: PlacedTuple,
  /** Where it stands. */
  where = table.sqlName,
): Promise<PlacedTuple | undefined> {
  const columns = table.columns.map((column, i) => `${quoteName(column.name)} AS c${i}`)
  const match = table.identity.map((column, i) => {
    const { name, type } = table.columns[column] as MoveTable['columns'][number]
    return `${quoteName(name)} = $${i + 1}::${type}`
  })
  const values = table.identity.map((column) => {
    const place = key.at[column] as number
    const { tuple } = key
    const bytes = tuple.bytes.subarray(tuple.starts[place], tuple.ends[place])
    // node-postgres sends a Buffer as binary and a string as text.
    return tuple.kinds[place] === COLUMN_TEXT ? bytes.toString('utf8') : bytes
  })
  const result = await client.query({
    text: `SELECT ${columns.join(', ')} FROM ${where} WHERE ${match.join(' AND ')}`,
    values,
    types: { getTypeParser: () => (text: string) => text } as never,
  })
  const row = result.rows[0] as Record<string, string | null> | undefined
  return row && textTuple(table.columns.map((_, i) => row[`c${i}`] ?? null))
}
