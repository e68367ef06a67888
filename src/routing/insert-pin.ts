/** Where the rows of an INSERT go: the key's value in each row, or what a SELECT puts there. */
import type { CatalogColumn } from '../catalog/catalog.js'
import { engineError } from '../errors/engine-error.js'
import { placeDefault } from '../sharding/default-key.js'
import type { KeyPlacer } from '../sharding/key-placer.js'
import { allShards, noShard, oneShard, uniteShards } from '../sharding/shard-set.js'
import type { ShardedTable } from '../sharding/sharded-table.js'
import type { InsertFacts, Level, Value } from '../sql/statement.js'
import { bindColumn } from './columns.js'
import { columnNamed } from './key-column.js'
import { shardsOfValue } from './key-value.js'
import { trust } from './parameters.js'
import { compilePin, keyClass, type ShardsOf } from './pins.js'
import type { Places, Resolved } from './resolve.js'
import type { RoutingWorld } from './world.js'

const missing = (table: ShardedTable, name: string): Error =>
  engineError('ROUTE_KEY_MISSING', { column: table.column, table: name })

/** Position of the key among the values; -1 when it gets none, undefined when the columns are not known. */
function keyPosition(
  facts: InsertFacts,
  table: ShardedTable,
  target: Resolved,
): number | undefined {
  if (facts.columns) return facts.columns.indexOf(table.column)
  return target.relation?.columns.findIndex((column) => column.name === table.column)
}

/** A key left out takes its default: NULL, or a constant that we can read; else only a server can say. */
function ofDefault(table: ShardedTable, target: Resolved, placer: KeyPlacer): ShardsOf {
  const column = target.relation?.columns.find((one) => one.name === table.column)
  return () => {
    const shard = column && placeDefault(column, placer)
    return shard === undefined ? allShards : oneShard(shard)
  }
}

function ofRows(
  rows: NonNullable<InsertFacts['rows']>,
  position: number,
  table: ShardedTable,
  target: Resolved,
  placer: KeyPlacer,
  places: Places,
): ShardsOf {
  const byDefault = ofDefault(table, target, placer)
  const parts = rows.map((row): ShardsOf => {
    if (position < 0 || position >= row.length || row[position] === 'default') return byDefault
    const value = row[position] as Value | undefined
    if (!value) return () => allShards
    const trusted = trust(value, places)
    return (run) => shardsOfValue(trusted, placer, run, 'store')
  })
  const [only] = parts
  if (parts.length === 1) return only!
  return (run) => {
    let set = noShard
    for (const part of parts) set = uniteShards(set, part(run))
    return set
  }
}

const sameStored = (from: CatalogColumn, to: CatalogColumn): boolean =>
  to.typmod < 0 || (from.type === to.type && from.typmod === to.typmod)

/** A selected column counts when it is the key of a sharded table of the same type. */
function ofSelected(
  facts: InsertFacts,
  position: number,
  placer: KeyPlacer,
  places: Places,
  column: CatalogColumn | undefined,
): ShardsOf {
  const selected = facts.selected?.[position]
  const source = facts.source
  if (!selected || !source) return () => allShards
  if ('kind' in selected) {
    const value = trust(selected, places)
    return (run) => shardsOfValue(value, placer, run, 'store')
  }
  const bound = bindColumn(selected, source, places)
  const place = bound && places.get(bound.level)?.[bound.relation]?.place
  if (!bound || place?.kind !== 'sharded') return () => allShards
  const from = places.get(bound.level)![bound.relation]!
  const own = columnNamed(from.relation, bound.column)
  const same =
    place.table.column === bound.column &&
    place.table.keyType === placer.table.keyType &&
    // A null-extended row puts NULL in, and a modifier of the target's own may change the value.
    !from.use.nullable &&
    (column === undefined || own === undefined || sameStored(own, column))
  return same ? compilePin(keyClass(bound, places), placer, places) : () => allShards
}

/** The shards of the rows that an INSERT level adds to its sharded target. */
export function compileInsert(
  level: Level,
  target: Resolved,
  table: ShardedTable,
  places: Places,
  world: RoutingWorld,
): ShardsOf {
  const facts = level.insert!
  const column = columnNamed(target.relation, table.column)
  const placer = world.map.placerOf(table, column?.typmod)
  const position = keyPosition(facts, table, target)
  if (position === undefined) {
    return () => {
      throw missing(table, target.use.name)
    }
  }
  if (facts.rows) return ofRows(facts.rows, position, table, target, placer, places)
  if (position < 0) return ofDefault(table, target, placer)
  return ofSelected(facts, position, placer, places, column)
}
