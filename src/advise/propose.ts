/** Groups of columns → shardings, each judged by the router; the best first. */
import type { Catalog, CatalogRelation } from '../catalog/catalog.js'
import { localConstraints } from '../routing/constraints.js'
import { makeShardMap } from '../sharding/shard-map.js'
import type { ShardedTable, ShardingConfig } from '../sharding/sharded-table.js'
import { type ColumnGraph, type KeyColumn, type KeyGroup, placeName } from './column-graph.js'
import { type JudgedStatement, judge, scoreOf, type Verdict } from './judge.js'

export interface Candidate {
  readonly key: string
  readonly tables: readonly KeyColumn[]
  readonly referenceTables: readonly CatalogRelation[]
  readonly sharding: ShardingConfig
  readonly verdict: Verdict
  readonly score: number
  /** Constraints that no shard can keep, as sentences. */
  readonly constraints: readonly string[]
}

export interface ProposeOptions {
  readonly shards: number
  readonly searchPath: readonly string[]
  /** Hears how many shardings of how many were judged. */
  readonly onJudged?: (done: number, total: number) => void
}

const mostGroups = 8
/** A table that is written less often than this, of all that is done with it, may be copied to every shard. */
const writtenSeldom = 0.05

function shardedTable({ table, column, keyType }: KeyColumn, shards: number): ShardedTable {
  const bucketMap = Array.from({ length: shards }, (_, shard) => shard)
  return {
    schema: table.schema,
    name: table.name,
    column,
    keyType,
    placement: { kind: 'hash', hasher: 'postgres', buckets: shards, bucketMap },
  }
}

interface Layout {
  readonly tables: readonly KeyColumn[]
  readonly referenceTables: readonly CatalogRelation[]
}

/** Tables without the key: all copied, or those that are written often by a key of their own. */
function layoutsOf(group: KeyGroup, graph: ColumnGraph): Layout[] {
  const others = graph.tables.filter((table) => !group.columns.some((one) => one.table === table))
  const isWritten = (table: CatalogRelation): boolean => {
    const { reads, writes } = graph.trafficOf(table)
    return writes > writtenSeldom * (reads + writes)
  }
  const own = others.flatMap((table) => (isWritten(table) && graph.ownKey(table)) || [])
  const copied: Layout = { tables: group.columns, referenceTables: others }
  if (own.length === 0) return [copied]
  const rest = others.filter((table) => !own.some((one) => one.table === table))
  const tables = [...group.columns, ...own].sort((a, b) =>
    placeName(a.table) < placeName(b.table) ? -1 : 1,
  )
  return [copied, { tables, referenceTables: rest }]
}

const configOf = ({ tables, referenceTables }: Layout, shardCount: number): ShardingConfig => ({
  shardCount,
  tables: tables.map((column) => shardedTable(column, shardCount)),
  referenceTables: referenceTables.map(({ schema, name }) => ({ schema, name })),
  schemas: [],
  otherTables: 'reference',
})

function constraintsOf({ tables }: Layout, sharding: ShardingConfig, catalog: Catalog): string[] {
  const world = { catalog, map: makeShardMap(sharding) }
  return tables.flatMap(({ table }, index) =>
    localConstraints(table, sharding.tables[index]!, world).map(
      ({ name, kind, columns }) =>
        `${placeName(table)}: ${kind} ${name} (${columns.map((one) => one ?? 'expression').join(', ')})`,
    ),
  )
}

/** `loadParser` must have resolved. */
export function proposeKeys(
  graph: ColumnGraph,
  workload: readonly JudgedStatement[],
  catalog: Catalog,
  options: ProposeOptions,
): Candidate[] {
  const groups = graph.groups().slice(0, mostGroups)
  const layouts = groups.flatMap((group) =>
    layoutsOf(group, graph).map((layout) => ({ key: group.name, layout })),
  )
  const judged = layouts.map(({ key, layout }, index): Candidate => {
    const sharding = configOf(layout, options.shards)
    const verdict = judge(workload, sharding, catalog, options.searchPath)
    options.onJudged?.(index + 1, layouts.length)
    const constraints = constraintsOf(layout, sharding, catalog)
    return { key, ...layout, sharding, verdict, score: scoreOf(verdict), constraints }
  })
  return bestOfEach(judged)
}

/** Of the layouts of one key the better one; of equal ones the one with more sharded tables. */
function bestOfEach(judged: readonly Candidate[]): Candidate[] {
  const order = (a: Candidate, b: Candidate): number =>
    b.score - a.score || b.tables.length - a.tables.length || (a.key < b.key ? -1 : 1)
  const sorted = [...judged].sort(order)
  return sorted.filter((one, index) => sorted.findIndex(({ key }) => key === one.key) === index)
}
