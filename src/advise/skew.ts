/** How evenly the rows of a database would lie, from a bounded sample of each table. */
import type { Query } from '../catalog/read-catalog.js'
import { quoteName } from '../routing/writes/write-text.js'
import { makeKeyPlacer } from '../sharding/key-placer.js'
import type { KeyColumn } from './column-graph.js'
import type { Candidate } from './propose.js'

export interface TableSkew {
  readonly table: string
  readonly column: string
  /** Rows of the table by PostgreSQL's own estimate; undefined before its first ANALYZE. */
  readonly estimatedRows: number | undefined
  readonly sampledRows: number
  readonly distinctKeys: number
  readonly nullKeys: number
  /** Of the sampled rows, those of the most frequent key. */
  readonly largestKeyShare: number
  readonly rowsPerShard: readonly number[]
  /** Rows of the fullest shard, of what each would have when all had the same. */
  readonly skew: number
}

/** Rows that are looked at in each table. */
const mostRows = 100_000

const nameOf = ({ table }: KeyColumn): string =>
  `${quoteName(table.schema)}.${quoteName(table.name)}`

/** Blocks are chosen by a fixed seed, so that two runs over the same table say the same. */
function sampleSql(one: KeyColumn, rows: number | undefined): string {
  const key = quoteName(one.column)
  const percent = rows === undefined || rows <= mostRows ? undefined : (mostRows * 100) / rows
  const sample =
    percent === undefined ? '' : ` TABLESAMPLE SYSTEM (${percent.toFixed(6)}) REPEATABLE (1)`
  return `SELECT key::text, pg_catalog.count(*) FROM
    (SELECT ${key} AS key FROM ${nameOf(one)}${sample} LIMIT ${mostRows}) AS sample GROUP BY key`
}

const sizeSql = (one: KeyColumn): string =>
  `SELECT c.reltuples::bigint FROM pg_catalog.pg_class c WHERE c.oid = ${one.table.oid}`

async function skewOf(candidate: Candidate, index: number, query: Query): Promise<TableSkew> {
  const one = candidate.tables[index]!
  const estimate = Number((await query(sizeSql(one)))[0]?.[0] ?? -1)
  const estimatedRows = estimate < 0 ? undefined : estimate
  const rows = await query(sampleSql(one, estimatedRows))
  const placer = makeKeyPlacer(candidate.sharding.tables[index]!)
  const rowsPerShard = new Array<number>(candidate.sharding.shardCount).fill(0)
  let [sampledRows, nullKeys, largest] = [0, 0, 0]
  for (const [key, text] of rows) {
    const count = Number(text)
    const shard = key === null || key === undefined ? placer.ofNull() : placer.ofString(key)
    rowsPerShard[shard]! += count
    sampledRows += count
    if (key === null) nullKeys += count
    largest = Math.max(largest, count)
  }
  const even = sampledRows / rowsPerShard.length
  return {
    table: `${one.table.schema}.${one.table.name}`,
    column: one.column,
    estimatedRows,
    sampledRows,
    distinctKeys: rows.length - (nullKeys > 0 ? 1 : 0),
    nullKeys,
    largestKeyShare: sampledRows === 0 ? 0 : largest / sampledRows,
    rowsPerShard,
    skew: sampledRows === 0 ? 1 : Math.max(...rowsPerShard) / even,
  }
}

export async function readSkew(candidate: Candidate, query: Query): Promise<TableSkew[]> {
  const found: TableSkew[] = []
  for (let i = 0; i < candidate.tables.length; i++) found.push(await skewOf(candidate, i, query))
  return found
}
