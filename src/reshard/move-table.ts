/** The tables of a move: what is read where, and where each row goes. Pure; made from the catalog and both configurations. */

import { qualifiedName } from '../pg/sql-names.js'
import type { KeyPlacer } from '../sharding/key-placer.js'
import { makeShardMap, type ShardMap, type TableKind } from '../sharding/shard-map.js'
import type { SourceColumn, SourceTable } from './preflight/source-table.js'
import type { ReshardSide } from './side.js'

/** Where the rows of a table stand on one side. */
export type Standing =
  | {
      readonly kind: 'sharded'
      /** Index of the sharding key in the move's columns. */
      readonly keyIndex: number
      readonly keyColumn: string
      readonly placer: KeyPlacer
      /** Equal for tables whose equal keys stand on the same shard. */
      readonly family: string
    }
  | { readonly kind: 'reference' }
  | { readonly kind: 'unsharded'; readonly shard: number }

export interface MoveTable {
  readonly schema: string
  readonly name: string
  /** Quoted, with its schema. */
  readonly sqlName: string
  /** Its label, and those of the partitioned tables that it is a partition of. */
  readonly lineage: readonly string[]
  /** What is moved: all but the generated columns, in catalog order. */
  readonly columns: readonly SourceColumn[]
  /** Indexes in `columns` of the replica identity. */
  readonly identity: readonly number[]
  readonly from: Standing
  readonly to: Standing
  /** Source shards that are read. */
  readonly sourceShards: readonly number[]
  /** Every column has the same binary form on both sides. */
  readonly isBinarySafe: boolean
  readonly bytes: number
  readonly rowEstimate: number
}

export interface MovePlan {
  readonly tables: readonly MoveTable[]
  /** Labels of partitioned tables: they have no rows of their own. */
  readonly partitioned: ReadonlySet<string>
  readonly sourceCount: number
  readonly targetCount: number
  /** Every table can be streamed in binary. */
  readonly isBinarySafe: boolean
}

const all = (count: number): number[] => Array.from({ length: count }, (_, shard) => shard)

function standing(map: ShardMap, kind: TableKind, columns: readonly SourceColumn[]): Standing {
  if (kind.kind === 'reference') return { kind: 'reference' }
  if (kind.kind === 'unsharded') return { kind: 'unsharded', shard: kind.shard }
  const keyColumn = kind.table.column
  return {
    kind: 'sharded',
    keyColumn,
    keyIndex: columns.findIndex((column) => column.name === keyColumn),
    placer: map.placerOf(kind.table),
    family: JSON.stringify([kind.table.keyType, kind.table.placement]),
  }
}

/** Shards on which a table of this standing has rows of its own. */
export function standingShards(place: Standing, shardCount: number): number[] {
  if (place.kind === 'sharded') return all(shardCount)
  return place.kind === 'reference' ? [0] : [place.shard]
}

/** Shards that get a row of a table of this standing, whatever its key: all copies of a reference row. */
export function everyCopy(place: Standing, shardCount: number): number[] {
  return place.kind === 'unsharded' ? [place.shard] : all(shardCount)
}

function moveTable(
  table: SourceTable,
  source: ReshardSide,
  maps: { from: ShardMap; to: ShardMap },
): MoveTable {
  const columns = table.columns.filter((column) => !column.isGenerated)
  const hasColumn = (name: string): boolean => table.columns.some((column) => column.name === name)
  // A partition stands where the configuration puts the table that it is a partition of.
  const { schema, name } = table.ancestors.at(-1) ?? table
  const stand = (map: ShardMap): Standing =>
    standing(map, map.tableOf(schema, name, hasColumn), columns)
  const from = stand(maps.from)
  return {
    schema: table.schema,
    name: table.name,
    sqlName: qualifiedName(table),
    lineage: [table, ...table.ancestors].map(tableLabel),
    columns,
    identity: table.identityColumns.map((name) =>
      columns.findIndex((column) => column.name === name),
    ),
    from,
    to: stand(maps.to),
    sourceShards: standingShards(from, source.shards.length),
    isBinarySafe: columns.every((column) => column.isBinarySafe),
    bytes: table.bytes,
    rowEstimate: table.rowEstimate,
  }
}

/** The tables of a move, from the catalog of one source shard; all shards have the same tables (preflight checks it). */
export function planMove(
  source: ReshardSide,
  target: ReshardSide,
  tables: readonly SourceTable[],
): MovePlan {
  const maps = { from: makeShardMap(source.sharding), to: makeShardMap(target.sharding) }
  // A partitioned table has no rows of its own: its partitions are moved.
  const moved = tables
    .filter((table) => table.kind !== 'p')
    .map((table) => moveTable(table, source, maps))
  return {
    tables: moved,
    partitioned: new Set(tables.filter(({ kind }) => kind === 'p').map(tableLabel)),
    sourceCount: source.shards.length,
    targetCount: target.shards.length,
    isBinarySafe: moved.every((table) => table.isBinarySafe),
  }
}

/** The tables that a source shard streams. */
export function tablesOf(plan: MovePlan, sourceShard: number): MoveTable[] {
  return plan.tables.filter((table) => table.sourceShards.includes(sourceShard))
}

export const tableLabel = (table: { schema: string; name: string }): string =>
  `${table.schema}.${table.name}`
