/** Two answers to one question, compared: types of users by their names, because their numbers differ between databases. */
import pg from 'pg'
import { type Answer, asMultiset } from '../ask.js'

const FIRST_USER_OID = 16_384

/** oid → schema and name of the types that users made. */
export type TypeNames = ReadonlyMap<number, string>

export async function typeNamesAt(url: string): Promise<TypeNames> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    const { rows } = await client.query<{ oid: number; name: string }>(
      `select t.oid, n.nspname || '.' || t.typname as name from pg_type t join pg_namespace n on n.oid = t.typnamespace where t.oid >= ${FIRST_USER_OID}`,
    )
    return new Map(rows.map(({ oid, name }) => [oid, name]))
  } finally {
    await client.end()
  }
}

/** Columns, tag and rows as one text; an error by its SQLSTATE. */
export function shown(answer: Answer, isOrdered: boolean, names: TypeNames): string {
  if (answer.error) return `${answer.error.sqlstate} ${answer.error.message}`
  const columns = answer.columns.map((column) => {
    const at = column.lastIndexOf(':') + 1
    const oid = Number(column.slice(at))
    return oid < FIRST_USER_OID ? column : column.slice(0, at) + (names.get(oid) ?? oid)
  })
  const rows = isOrdered ? answer.rows.map((row) => JSON.stringify(row)) : asMultiset(answer.rows)
  return [answer.tag, columns.join(' '), ...rows].join('\n')
}
