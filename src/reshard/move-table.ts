/** The tables of a move: what is read where, and where each row goes. Pure; made from the catalog and both configurations. */

import { createHash } from 'node:crypto'
import { qualifiedName, quoteName } from '../pg/sql-names.js'
import { inBucketsSql } from '../sharding/key-hash-sql.js'
import { type KeyPlacer, makeKeyPlacer } from '../sharding/key-placer.js'
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
  /** The table that its rows come to on the targets, likewise. */
  readonly targetName: string
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
  /** As a condition in SQL, which of its rows move; undefined: all. */
  readonly moving?: string | undefined
}

export interface MovePlan {
  readonly tables: readonly MoveTable[]
  /** Labels of partitioned tables: they have no rows of their own. */
  readonly partitioned: ReadonlySet<string>
  readonly sourceCount: number
  readonly targetCount: number
  /** Shards that a key of the target may be placed on; more than `targetCount` where some rows stay. */
  readonly placeCount: number
  /** Rows come to tables of schema pgshard first. */
  readonly isStaged: boolean
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
  sides: { readonly source: ReshardSide; readonly target: ReshardSide },
  maps: { from: ShardMap; to: ShardMap },
): MoveTable {
  // Shards of a target that shares others with the source.
  const narrow = sides.target.whole && sides.target.shards.length
  const columns = table.columns.filter((column) => !column.isGenerated)
  const hasColumn = (name: string): boolean => table.columns.some((column) => column.name === name)
  // A partition stands where the configuration puts the table that it is a partition of.
  const { schema, name } = table.ancestors.at(-1) ?? table
  const stand = (map: ShardMap): Standing =>
    standing(map, map.tableOf(schema, name, hasColumn), columns)
  const from = stand(maps.from)
  const next = stand(maps.to)
  const { isStaged } = sides.target
  const to = isStaged ? arriving(from, next, sides) : next
  // Shards that stay have their reference tables.
  const stays = isStaged === true && to.kind === 'reference'
  const share = narrow === undefined || isStaged ? 1 : movingShare(to, narrow)
  return {
    schema: table.schema,
    name: table.name,
    sqlName: qualifiedName(table),
    targetName: isStaged && !stays ? incomingName(table) : qualifiedName(table),
    lineage: [table, ...table.ancestors].map(tableLabel),
    columns,
    identity: table.identityColumns.map((name) =>
      columns.findIndex((column) => column.name === name),
    ),
    from,
    to,
    sourceShards: stays ? [] : standingShards(from, sides.source.shards.length),
    isBinarySafe: columns.every((column) => column.isBinarySafe),
    bytes: Math.ceil(table.bytes * share),
    rowEstimate: Math.ceil(table.rowEstimate * share),
    moving: narrow === undefined ? undefined : movingRows(to, narrow),
  }
}

/** Where the shards of the source leave: their buckets go where the new map says, all others behind the targets. */
function arriving(
  from: Standing,
  to: Standing,
  { source, target }: { readonly source: ReshardSide; readonly target: ReshardSide },
): Standing {
  if (from.kind !== 'sharded' || to.kind !== 'sharded') return to
  const { table } = to.placer
  const old = from.placer.table.placement
  if (old.kind !== 'hash' || table.placement.kind !== 'hash') return to
  const bucketMap = table.placement.bucketMap.map((shard, bucket) => {
    const leaves = (old.bucketMap[bucket] ?? source.shards.length) < source.shards.length
    return leaves ? shard : target.shards.length
  })
  const placement = { ...table.placement, bucketMap }
  return {
    ...to,
    placer: makeKeyPlacer({ ...table, placement }),
    family: JSON.stringify([table.keyType, placement]),
  }
}

/** The table beside those that clients see which rows of one come to. Schema pgshard is no part of any catalogue that is compared. */
function incomingName(table: { schema: string; name: string }): string {
  return `pgshard.incoming_${createHash('md5').update(tableLabel(table)).digest('hex')}`
}

/** Buckets that come to the shards of a narrow side; its map places all others behind them. */
export function movingBuckets(to: Standing, targetCount: number): number[] {
  if (to.kind !== 'sharded' || to.placer.table.placement.kind !== 'hash') return []
  const { bucketMap } = to.placer.table.placement
  return [...bucketMap.keys()].filter((bucket) => (bucketMap[bucket] as number) < targetCount)
}

function movingRows(to: Standing, targetCount: number): string | undefined {
  if (to.kind !== 'sharded' || to.placer.table.placement.kind !== 'hash') return undefined
  const { placement, keyType } = to.placer.table
  return inBucketsSql(placement, keyType, quoteName(to.keyColumn), movingBuckets(to, targetCount))
}

function movingShare(to: Standing, targetCount: number): number {
  if (to.kind !== 'sharded' || to.placer.table.placement.kind !== 'hash') return 1
  return movingBuckets(to, targetCount).length / to.placer.table.placement.buckets
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
    .map((table) => moveTable(table, { source, target }, maps))
  return {
    tables: moved,
    partitioned: new Set(tables.filter(({ kind }) => kind === 'p').map(tableLabel)),
    sourceCount: source.shards.length,
    targetCount: target.shards.length,
    placeCount: target.shards.length + (target.whole ? 1 : 0),
    isStaged: target.isStaged === true,
    isBinarySafe: moved.every((table) => table.isBinarySafe),
  }
}

/** As it stands on the targets: in a move that is staged nothing but what comes. */
export function onTargets(table: MoveTable, plan: MovePlan): MoveTable {
  return plan.isStaged ? { ...table, sqlName: table.targetName, moving: undefined } : table
}

/** The tables that a source shard streams. */
export function tablesOf(plan: MovePlan, sourceShard: number): MoveTable[] {
  return plan.tables.filter((table) => table.sourceShards.includes(sourceShard))
}

export const tableLabel = (table: { schema: string; name: string }): string =>
  `${table.schema}.${table.name}`
