/**
 * Content of tables as numbers that do not depend on order or on shards: per bucket of keys a count and a 128-bit sum
 * of row hashes, computed by the servers over one canonical text form (`canonicalSettings`).
 */
import { adminQuery } from '../../pg/admin-query.js'
import type { HostClient } from '../../pg/host-client.js'
import type { MoveTable } from '../move-table.js'
import { quoteName } from '../sql-names.js'

export const BUCKETS = 1024

/** Bucket → count and the two halves of the sum. */
export type BucketSums = Map<number, readonly [count: bigint, high: bigint, low: bigint]>

const keyText = (table: MoveTable): string =>
  `ROW(${table.identity.map((i) => quoteName(table.columns[i]?.name ?? '')).join(', ')})::text`
// A row's text quotes its fields and keeps NULL apart from ''.
const rowText = (table: MoveTable): string =>
  `ROW(${table.columns.map((column) => quoteName(column.name)).join(', ')})::text`
const bucketSql = (table: MoveTable): string =>
  `('x' || left(md5(${keyText(table)}), 8))::bit(32)::int & ${BUCKETS - 1}`
const half = (hash: string, from: number): string =>
  `sum(('x' || substr(${hash}, ${from}, 16))::bit(64)::bigint)::text`

/** The sums of a table on one server, in the snapshot of the open transaction. */
export async function readBucketSums(client: HostClient, table: MoveTable): Promise<BucketSums> {
  const rows = await adminQuery(
    client,
    `SELECT bucket::text, count(*)::text AS rows, ${half('hash', 1)} AS high, ${half('hash', 17)} AS low
       FROM (SELECT ${bucketSql(table)} AS bucket, md5(${rowText(table)}) AS hash FROM ${table.sqlName}) AS hashed
      GROUP BY 1`,
  )
  return new Map(
    rows.map((row) => [
      Number(row['bucket']),
      [BigInt(row['rows'] ?? 0), BigInt(row['high'] ?? 0), BigInt(row['low'] ?? 0)],
    ]),
  )
}

/** Adds the sums of several shards. */
export function addSums(parts: readonly BucketSums[]): BucketSums {
  const total: BucketSums = new Map()
  for (const part of parts) {
    for (const [bucket, [count, high, low]] of part) {
      const known = total.get(bucket) ?? [0n, 0n, 0n]
      total.set(bucket, [known[0] + count, known[1] + high, known[2] + low])
    }
  }
  return total
}

/** Buckets whose count or sum differs. */
export function unequalBuckets(a: BucketSums, b: BucketSums): number[] {
  const unequal: number[] = []
  for (let bucket = 0; bucket < BUCKETS; bucket++) {
    if (String(a.get(bucket) ?? '0,0,0') !== String(b.get(bucket) ?? '0,0,0')) unequal.push(bucket)
  }
  return unequal
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
): Promise<(readonly [key: string, hash: string])[]> {
  const rows = await adminQuery(
    client,
    `SELECT ${keyText(table)} AS key, md5(${rowText(table)}) AS hash FROM ${table.sqlName}
      WHERE ${bucketSql(table)} IN (${buckets.join(', ')}) ORDER BY 1`,
  )
  return rows.map((row) => [row['key'] ?? '', row['hash'] ?? ''])
}
