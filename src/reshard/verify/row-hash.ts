/**
 * Content of tables as numbers that do not depend on order, collation or shards: per bucket of keys a count and two
 * 64-bit sums of row hashes, computed by the servers over one canonical text form (`canonicalSettings`, `verifySettings`).
 * The hashes are those of PostgreSQL's hash partitioning, which are the same in every version.
 */
import { adminQuery } from '../../pg/admin-query.js'
import type { HostClient } from '../../pg/host-client.js'
import { quoteName } from '../../pg/sql-names.js'
import type { MoveTable } from '../move-table.js'

/** Settings on top of `canonicalSettings` that a value's text depends on. */
export const verifySettings: Readonly<Record<string, string>> = {
  lc_monetary: 'C',
  search_path: 'pg_catalog',
  quote_all_identifiers: 'off',
}

/** Some of a table's buckets: `from` and below `to` of `of`, a power of two. */
export interface BucketRange {
  readonly from: number
  readonly to: number
  readonly of: number
}

const MIN_BUCKETS = 1024
const MAX_BUCKETS = 65_536
const ROWS_A_BUCKET = 1000

/** Buckets that hold about a thousand rows each, so that looking into one is cheap. */
export function bucketCountFor(rows: number): number {
  let count = MIN_BUCKETS
  while (count < MAX_BUCKETS && count * ROWS_A_BUCKET < rows) count *= 2
  return count
}

const allBuckets = (of: number): BucketRange => ({ from: 0, to: of, of })

/** Bucket → count and two sums. */
export type BucketSums = Map<number, readonly [count: bigint, first: bigint, second: bigint]>

const oids = { char: 18, int8: 20, int2: 21, int4: 23, text: 25, varchar: 1043, uuid: 2950 }
type Column = MoveTable['columns'][number]

/** What names a row: its replica identity, or all of it. */
const keyColumns = (table: MoveTable): readonly Column[] =>
  table.identity.length === 0
    ? table.columns
    : table.identity.map((i) => table.columns[i] as Column)

/** "char" prints bytes above 127 in another way before PostgreSQL 16. */
const canonical = (column: Column): string =>
  column.typeOid === oids.char ? `${quoteName(column.name)}::int4` : quoteName(column.name)

// A row's text quotes its fields and keeps NULL apart from ''.
const rowText = (columns: readonly Column[]): string =>
  `ROW(${columns.map(canonical).join(', ')})::text`

/** A cheap hash of one column that is the same for integers of all widths. */
function columnHash(column: Column, seed: string): string {
  const name = quoteName(column.name)
  switch (column.typeOid) {
    case oids.int2:
    case oids.int4:
    case oids.int8:
      return `pg_catalog.hashint8extended(${name}::int8, ${seed})`
    case oids.uuid:
      return `pg_catalog.uuid_hash_extended(${name}, ${seed})`
    default:
      return `pg_catalog.hashtextextended(${canonical(column)}::text COLLATE "C", ${seed})`
  }
}

function bucketSql(table: MoveTable, of: number): string {
  let hash = '0::int8'
  for (const column of keyColumns(table)) hash = `coalesce(${columnHash(column, hash)}, 1)`
  return `(${hash} & ${of - 1})`
}

function rangeSql(table: MoveTable, { from, to, of }: BucketRange): string {
  const isAll = from === 0 && to === of
  const range = isAll ? [] : [`${bucketSql(table, of)} BETWEEN ${from} AND ${to - 1}`]
  const wanted = [...range, ...movingSql(table)]
  return wanted.length === 0 ? '' : ` WHERE ${wanted.join(' AND ')}`
}

/** Rows that stay where they are have nothing to be compared with. */
const movingSql = ({ moving }: MoveTable): string[] => (moving === undefined ? [] : [`(${moving})`])

const hash = (text: string, seed: number): string => `pg_catalog.hashtextextended(${text}, ${seed})`

/** The sums of a table on one server, in the snapshot of the open transaction. */
export async function readBucketSums(
  client: HostClient,
  table: MoveTable,
  range: BucketRange = allBuckets(MIN_BUCKETS),
): Promise<BucketSums> {
  // OFFSET 0 keeps the text of a row from being made once for each of its hashes.
  const rows = await adminQuery(
    client,
    `SELECT bucket::text, count(*)::text AS rows, sum(${hash('row', 1)})::text AS first, sum(${hash('row', 2)})::text AS second
       FROM (SELECT ${bucketSql(table, range.of)} AS bucket, ${rowText(table.columns)} COLLATE "C" AS row
               FROM ${table.sqlName}${rangeSql(table, range)} OFFSET 0) AS hashed
      GROUP BY 1`,
  )
  return new Map(
    rows.map((row) => [
      Number(row['bucket']),
      [BigInt(row['rows'] ?? 0), BigInt(row['first'] ?? 0), BigInt(row['second'] ?? 0)],
    ]),
  )
}

/** Adds the sums of several shards. */
export function addSums(parts: readonly BucketSums[]): BucketSums {
  const total: BucketSums = new Map()
  for (const part of parts) {
    for (const [bucket, [count, first, second]] of part) {
      const known = total.get(bucket) ?? [0n, 0n, 0n]
      total.set(bucket, [known[0] + count, known[1] + first, known[2] + second])
    }
  }
  return total
}

/** Buckets whose count or sums differ. */
export function unequalBuckets(a: BucketSums, b: BucketSums): number[] {
  const unequal: number[] = []
  for (const bucket of new Set([...a.keys(), ...b.keys()])) {
    const [one, other] = [a.get(bucket), b.get(bucket)]
    const same = one && other && one.every((number, i) => number === other[i])
    if (!same) unequal.push(bucket)
  }
  return unequal.sort((x, y) => x - y)
}

export const rowCount = (sums: BucketSums): number => {
  let count = 0n
  for (const [rows] of sums.values()) count += rows
  return Number(count)
}

/** The rows of some buckets: key → hash, one entry a row. */
export async function readBucketRows(
  client: HostClient,
  table: MoveTable,
  buckets: readonly number[],
  of: number,
): Promise<(readonly [key: string, hash: string])[]> {
  const rows = await adminQuery(
    client,
    `SELECT key, ${hash('row', 1)} || ' ' || ${hash('row', 2)} AS hash
       FROM (SELECT ${rowText(keyColumns(table))} AS key, ${rowText(table.columns)} COLLATE "C" AS row
               FROM ${table.sqlName}
              WHERE ${[`${bucketSql(table, of)} IN (${buckets.join(', ')})`, ...movingSql(table)].join(' AND ')}
             OFFSET 0) AS hashed`,
  )
  return rows.map((row) => [row['key'] ?? '', row['hash'] ?? ''])
}
