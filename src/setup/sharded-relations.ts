/** The tables of one shard that the configuration shards, with their key column. */

import { quoteLiteral } from '../pg/sql-names.js'
import type { ShardedTable } from '../sharding/sharded-table.js'
import type { Ask } from './shard-identity.js'

export interface ShardedRelation {
  readonly schema: string
  readonly name: string
  readonly column: string
  readonly table: ShardedTable
  /** The comment of our guard; undefined without one. */
  readonly guard?: string
}

export const GUARD_NAME = 'pgshard_guard'

/** Ordinary and partitioned tables, no partitions: what stands on a parent holds for them. The first fitting entry of the configuration wins. */
export async function findShardedRelations(
  ask: Ask,
  tables: readonly ShardedTable[],
): Promise<ShardedRelation[]> {
  if (tables.length === 0) return []
  const columns = [...new Set(tables.map((table) => quoteLiteral(table.column)))].join(', ')
  const rows = await ask(`
    SELECT n.nspname AS schema, c.relname AS name, a.attname AS column,
      obj_description(g.oid, 'pg_constraint') AS guard, g.oid IS NOT NULL AS guarded
    FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN pg_constraint g ON g.conrelid = c.oid AND g.conname = '${GUARD_NAME}' AND g.contype = 'c'
    WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relpersistence <> 't'
      AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pgshard')
      AND n.nspname !~ '^pg_(toast|temp)'
      AND a.attname IN (${columns})
    ORDER BY 1, 2`)
  const found = new Map<string, ShardedRelation>()
  for (const row of rows) {
    const relation = {
      schema: row['schema'] as string,
      name: row['name'] as string,
      column: row['column'] as string,
    }
    const table = tables.find((one) => matches(one, relation))
    const key = JSON.stringify([relation.schema, relation.name])
    const known = found.get(key)
    if (!table || (known && tables.indexOf(known.table) <= tables.indexOf(table))) continue
    const guard = row['guarded'] === 't' ? { guard: row['guard'] ?? '' } : {}
    found.set(key, { ...relation, table, ...guard })
  }
  return [...found.values()]
}

function matches(
  table: ShardedTable,
  relation: { schema: string; name: string; column: string },
): boolean {
  return (
    table.column === relation.column &&
    (table.name === undefined || table.name === relation.name) &&
    (table.schema === undefined || table.schema === relation.schema)
  )
}
