/**
 * The hash of a sharding key as SQL, and the bucket that follows from it: PostgreSQL's own functions, without objects of ours.
 * @see `compute_partition_hash_value` in `src/backend/partitioning/partbounds.c`
 */
import type { KeyType } from '../datum/key-type.js'
import type { HashPlacement } from './sharded-table.js'

/** `HASH_PARTITION_SEED` in `src/include/catalog/partition.h`. */
const SEED = '8816678312871386365'

/** The 64-bit hash of a column, written so that it is immutable on every version from 15 on. */
const hashOf: Record<KeyType, (column: string) => string> = {
  bigint: (column) => `hashint8extended(${column}::bigint, ${SEED})`,
  integer: (column) => `hashint4extended(${column}::integer, ${SEED})`,
  smallint: (column) => `hashint2extended(${column}::smallint, ${SEED})`,
  uuid: (column) => `uuid_hash_extended(${column}::uuid, ${SEED})`,
  text: (column) => `hashtextextended(${column}::text, ${SEED})`,
  varchar: (column) => `hashtextextended(${column}::text, ${SEED})`,
  bpchar: (column) => `hashbpcharextended(${column}::bpchar, ${SEED})`,
  numeric: (column) => `hash_numeric_extended(${column}::numeric, ${SEED})`,
  // Version 18 has functions of its own for date and timestamptz; the hash is that of the number inside.
  date: (column) =>
    `hashint4extended(CASE ${column} WHEN 'infinity'::date THEN 2147483647 WHEN '-infinity'::date THEN -2147483648 ELSE ${column} - '2000-01-01'::date END, ${SEED})`,
  timestamp: (column) => `timestamp_hash_extended(${column}::timestamp, ${SEED})`,
  timestamptz: (column) => `timestamp_hash_extended(${column} AT TIME ZONE 'UTC', ${SEED})`,
  // Never hashed: placed by centroids, for which there is no guard.
  vector: (column) => column,
}

/** `column` is quoted. */
export const keyHashSql = (keyType: KeyType, column: string): string => hashOf[keyType](column)

const LOW = 4_294_967_295n
/** Halves of `0x49a0f4dd15e5a8e3`, which `hash_combine64` adds. */
const ADD_HIGH = 1_235_285_213n
const ADD_LOW = 367_372_515n

/** Which rows stand in some of the buckets. Undefined when it cannot be said in SQL: sha1 is not PostgreSQL's. */
export function inBucketsSql(
  placement: HashPlacement,
  keyType: KeyType,
  column: string,
  buckets: readonly number[],
): string | undefined {
  if (placement.hasher !== 'postgres') return undefined
  if (buckets.length === 0) return 'false'
  const modulus = BigInt(placement.buckets)
  const hash = keyHashSql(keyType, column)
  // Unsigned, in halves of 32 bits, because bigint is signed; NULL has hash 0 and stands in the bucket of 0.
  const low = `((${hash} & ${LOW}) + ${ADD_LOW})`
  const high = `((((${hash} >> 32) & ${LOW}) + ${ADD_HIGH} + (${low} >> 32)) & ${LOW})`
  const bucket = `((${high} % ${modulus} * ${4_294_967_296n % modulus} + (${low} & ${LOW})) % ${modulus})`
  return `coalesce(${bucket}, 0) IN (${buckets.join(', ')})`
}
