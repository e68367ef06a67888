/** The three sources of a workload: a file of SQL, PostgreSQL's csvlog, and pg_stat_statements. */
import { createReadStream } from 'node:fs'
import { parse } from 'csv-parse'
import type { Query } from '../../catalog/read-catalog.js'
import { engineError } from '../../errors/engine-error.js'
import { splitStatements } from '../../sql/template.js'
import { withoutData } from '../schema/read-schema.js'
import { type Workload, WorkloadCollector } from './workload.js'

/** @throws USAGE when the text cannot be cut into statements */
export function readSqlWorkload(text: string): Workload {
  const sql = withoutData(text)
  const pieces = splitStatements(sql, true)
  if (!pieces) {
    throw engineError('USAGE', { message: 'the workload has a quote or comment that never ends' })
  }
  const collector = new WorkloadCollector()
  for (const { start, end } of pieces) collector.add(sql.slice(start, end), 1)
  return collector.finish()
}

const logged =
  /^(?:duration: [\d.]+ ms {2})?(?:statement|execute (?:<unnamed>|\S+)(?:\/\S*)?): ([\s\S]+)$/
const bound = /^parameters: ([\s\S]+)$/i

/** DETAIL of an executed statement: `parameters: $1 = 'it''s', $2 = NULL`. */
export function loggedParameters(detail: string): (string | null)[] | undefined {
  const list = bound.exec(detail)?.[1]
  if (list === undefined) return undefined
  const values: (string | null)[] = []
  const one = /\$(\d+) = (?:NULL|'((?:[^']|'')*)')(?:, )?/gy
  for (let match = one.exec(list); match; match = one.exec(list)) {
    values[Number(match[1]) - 1] = match[2] === undefined ? null : match[2].replaceAll("''", "'")
    if (one.lastIndex === list.length) return [...values]
  }
  // Values that the log cut off (log_parameter_max_length) are not known.
  return undefined
}

const databaseColumn = 2
const messageColumn = 13
const detailColumn = 14
const leastColumns = 23

/** `onBytes` hears how far it is. Lines of other databases are left out when `database` is given. */
export async function readCsvlog(
  path: string,
  database: string | undefined,
  onBytes: (done: number) => void,
): Promise<Workload> {
  const collector = new WorkloadCollector()
  const file = createReadStream(path)
  const parser = file.pipe(parse({ relax_column_count: true }))
  file.on('error', (error) => parser.destroy(error))
  let lines = 0
  try {
    for await (const row of parser as AsyncIterable<string[]>) {
      lines++
      onBytes(file.bytesRead)
      if (row.length < leastColumns) throw new Error(`line ${lines} has ${row.length} columns`)
      if (database !== undefined && row[databaseColumn] !== database) continue
      const sql = logged.exec(row[messageColumn] ?? '')?.[1]
      if (sql === undefined) continue
      collector.add(sql, 1, loggedParameters(row[detailColumn] ?? ''))
    }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw engineError('USAGE', { message: `${path} is no csvlog of PostgreSQL: ${reason}` })
  }
  return collector.finish()
}

const whereIsIt = `SELECT pg_catalog.quote_ident(n.nspname) FROM pg_catalog.pg_extension e
  JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'pg_stat_statements'`

const mostKinds = 5000

/** @throws USAGE where the extension is not there */
export async function readStatStatements(query: Query): Promise<Workload> {
  const schema = (await query(whereIsIt))[0]?.[0]
  if (schema == null) {
    throw engineError(
      'USAGE',
      { message: 'the database has no extension pg_stat_statements' },
      { hint: 'CREATE EXTENSION pg_stat_statements, or give a file: --workload queries.sql' },
    )
  }
  const rows = await query(`SELECT s.query, pg_catalog.sum(s.calls)::bigint
    FROM ${schema}.pg_stat_statements s JOIN pg_catalog.pg_database d ON d.oid = s.dbid
    WHERE d.datname = pg_catalog.current_database() AND s.toplevel AND s.query IS NOT NULL
    GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT ${mostKinds + 1}`)
  const collector = new WorkloadCollector()
  for (const [sql, calls] of rows.slice(0, mostKinds)) {
    collector.add(readable(sql ?? ''), Number(calls))
  }
  if (rows.length > mostKinds) collector.note(`only the ${mostKinds} most frequent were taken`)
  return collector.finish()
}

/** pg_stat_statements puts $n in the place of literals where the grammar has none: `interval $1`. */
export function readable(sql: string): string {
  return sql.replace(
    /\b(interval|date|timestamptz|timestamp|time)\s+(\$\d+)/gi,
    (_, type: string, parameter: string) => `${parameter}::${type.toLowerCase()}`,
  )
}
