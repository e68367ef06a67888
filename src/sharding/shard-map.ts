/** Which kind of table a name stands for, and where its rows live, by the configuration of one database. */
import { type KeyPlacer, makeKeyPlacer } from './key-placer.js'
import type { ShardId } from './shard-set.js'
import type { ShardedTable, ShardingConfig } from './sharded-table.js'

export type TableKind =
  | { readonly kind: 'sharded'; readonly table: ShardedTable }
  | { readonly kind: 'reference' }
  | { readonly kind: 'unsharded'; readonly shard: ShardId }

export interface ShardMap {
  readonly config: ShardingConfig
  readonly shardCount: number
  /**
   * A table by its resolved schema (undefined: not known) and name. `hasColumn` tells whether the table has a column;
   * it is asked for entries without a table name only.
   */
  tableOf(
    schema: string | undefined,
    name: string,
    hasColumn: (column: string) => boolean,
  ): TableKind
  /** The placer of a sharded table, or of what its column with this type modifier stores; one for its life. */
  placerOf(table: ShardedTable, typmod?: number): KeyPlacer
}

const reference: TableKind = { kind: 'reference' }

/** A name without schema in the configuration stands for any schema, and an unknown schema for any in the configuration. */
const sameSchema = (wanted: string | undefined, given: string | undefined): boolean =>
  wanted === undefined || given === undefined || wanted === given

export function makeShardMap(config: ShardingConfig): ShardMap {
  const placers = new Map<ShardedTable, KeyPlacer>()
  for (const table of config.tables) placers.set(table, makeKeyPlacer(table))
  const storing = new Map<number, Map<ShardedTable, KeyPlacer>>()
  const placersOf = (typmod: number): Map<ShardedTable, KeyPlacer> => {
    const known = storing.get(typmod)
    if (known) return known
    const made = new Map<ShardedTable, KeyPlacer>()
    storing.set(typmod, made)
    return made
  }
  const schemas = new Map(config.schemas.map((entry) => [entry.name, entry.shard]))

  const named = (schema: string | undefined, name: string): ShardedTable | undefined =>
    config.tables.find((table) => table.name === name && sameSchema(table.schema, schema))

  const isReference = (schema: string | undefined, name: string): boolean =>
    config.referenceTables.some((table) => table.name === name && sameSchema(table.schema, schema))

  const byColumn = (
    schema: string | undefined,
    hasColumn: (column: string) => boolean,
  ): ShardedTable | undefined =>
    config.tables.find(
      (table) =>
        table.name === undefined && sameSchema(table.schema, schema) && hasColumn(table.column),
    )

  const tableOf: ShardMap['tableOf'] = (schema, name, hasColumn) => {
    const exact = named(schema, name)
    if (exact) return { kind: 'sharded', table: exact }
    if (isReference(schema, name)) return reference
    const shard = schema === undefined ? undefined : schemas.get(schema)
    if (shard !== undefined) return { kind: 'unsharded', shard }
    const found = byColumn(schema, hasColumn)
    if (found) return { kind: 'sharded', table: found }
    return config.otherTables === 'reference'
      ? reference
      : { kind: 'unsharded', shard: config.otherTables.shard }
  }

  return {
    config,
    shardCount: config.shardCount,
    tableOf,
    placerOf(table, typmod = -1) {
      const own = typmod < 0 ? placers : placersOf(typmod)
      const known = own.get(table)
      if (known) return known
      const made = makeKeyPlacer(table, typmod)
      own.set(table, made)
      return made
    },
  }
}
