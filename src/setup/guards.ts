/**
 * CHECK constraints that hold each sharded table to its shard, whoever writes: PostgreSQL's own hash functions in
 * the place of `satisfies_hash_partition`, which would need a partitioned parent.
 * @see `compute_partition_hash_value` in `src/backend/partitioning/partbounds.c`
 */
import type { KeyType } from '../datum/key-type.js'
import { qualifiedName, quoteLiteral, quoteName } from '../pg/sql-names.js'
import { keyHashSql } from '../sharding/key-hash-sql.js'
import type { HashPlacement, ShardedTable } from '../sharding/sharded-table.js'
import type { ShardedRelation } from './sharded-relations.js'
import { GUARD_NAME } from './sharded-relations.js'

/** The condition that rows of `shard` fulfil; undefined when it cannot be said in SQL. */
export function guardCondition(table: ShardedTable, shard: number): string | undefined {
  const column = quoteName(table.column)
  switch (table.placement.kind) {
    case 'hash':
      return hashCondition(table.placement, table.keyType, column, shard)
    case 'list':
      return listCondition(table, column, shard)
    case 'range':
      return rangeCondition(table, column, shard)
    case 'centroids':
      return undefined
  }
}

function hashCondition(
  placement: HashPlacement,
  keyType: KeyType,
  column: string,
  shard: number,
): string | undefined {
  if (placement.hasher !== 'postgres') return undefined
  const mine = placement.bucketMap.flatMap((one, bucket) => (one === shard ? [bucket] : []))
  if (mine.length === 0) return 'false'
  return `pgshard.bucket(${keyHashSql(keyType, column)}, ${placement.buckets}) IN (${mine.join(', ')})`
}

const literal = (value: string, keyType: KeyType) => `${quoteLiteral(value)}::${keyType}`

function listCondition(table: ShardedTable, column: string, shard: number): string | undefined {
  if (table.placement.kind !== 'list') throw new TypeError('not a list')
  const { entries, fallback, ranges } = table.placement
  if (ranges) return undefined
  const isNullHere = (entry: { values: readonly (string | null)[] }) => entry.values.includes(null)
  const among = (chosen: typeof entries) => {
    const values = chosen.flatMap((entry) => entry.values.filter((value) => value !== null))
    return values.length === 0
      ? 'false'
      : `${column} IN (${values.map((value) => literal(value, table.keyType)).join(', ')})`
  }
  const mine = among(entries.filter((entry) => entry.shard === shard))
  const nullShard = entries.find(isNullHere)?.shard ?? fallback
  const rest = fallback === shard ? ` OR NOT (${among(entries)})` : ''
  return ofNull(column, nullShard === shard, `${mine}${rest}`)
}

function rangeCondition(table: ShardedTable, column: string, shard: number): string {
  if (table.placement.kind !== 'range') throw new TypeError('not a range')
  const { entries, fallback } = table.placement
  const within = (chosen: typeof entries) =>
    chosen.length === 0
      ? 'false'
      : chosen
          .map((entry) => {
            const from =
              entry.start === undefined
                ? 'true'
                : `${column} >= ${literal(entry.start, table.keyType)}`
            const to =
              entry.end === undefined ? 'true' : `${column} < ${literal(entry.end, table.keyType)}`
            return `(${from} AND ${to})`
          })
          .join(' OR ')
  const mine = within(entries.filter((entry) => entry.shard === shard))
  const rest = fallback === shard ? ` OR NOT (${within(entries)})` : ''
  return ofNull(column, fallback === shard, `${mine}${rest}`)
}

/** A CHECK that is NULL passes, so NULL keys need a word of their own. */
const ofNull = (column: string, allowed: boolean, others: string): string =>
  allowed ? `${column} IS NULL OR ${others}` : `${column} IS NOT NULL AND (${others})`

export interface GuardChange {
  readonly relation: ShardedRelation
  /** Empty when the guard is there already. */
  readonly sql: string
}

/** The statements that bring one table's guard up to date. Rows that are there are checked too. */
export function guardChange(relation: ShardedRelation, shard: number): GuardChange | undefined {
  const condition = guardCondition(relation.table, shard)
  if (condition === undefined) return undefined
  const comment = `pgshard guard of shard ${shard}: ${condition}`
  if (relation.guard === comment) return { relation, sql: '' }
  const table = qualifiedName(relation)
  const drop =
    relation.guard === undefined ? '' : `ALTER TABLE ${table} DROP CONSTRAINT ${GUARD_NAME};\n`
  return {
    relation,
    sql: `${drop}ALTER TABLE ${table} ADD CONSTRAINT ${GUARD_NAME} CHECK (${condition}) NOT VALID;
ALTER TABLE ${table} VALIDATE CONSTRAINT ${GUARD_NAME};
COMMENT ON CONSTRAINT ${GUARD_NAME} ON ${table} IS ${quoteLiteral(comment)};
`,
  }
}
