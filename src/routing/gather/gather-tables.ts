/** The tables of a statement, each with all the places where it is read and the shards that matter there. */
import type { CatalogRelation } from '../../catalog/catalog.js'
import { allShards, oneShard } from '../../sharding/shard-set.js'
import type { Level } from '../../sql/statement.js'
import { compilePin, keyClass, type ShardsOf } from '../pins.js'
import type { Place, Places, Resolved } from '../resolve.js'
import type { RoutingWorld } from '../world.js'

/** One place where a table is read. */
export interface TableUse {
  readonly level: Level
  readonly relation: number
  readonly resolved: Resolved
  readonly shardsOf: ShardsOf
}

export interface Table {
  readonly relation: CatalogRelation
  readonly place: Place
  readonly uses: readonly TableUse[]
  /** A view reads it too: all rows, all columns. */
  readonly isWhole: boolean
}

const everywhere: ShardsOf = () => allShards

/** Where rows of one table reference can matter. */
export function pinOf(
  level: Level,
  relation: number,
  { place }: Resolved,
  places: Places,
  world: RoutingWorld,
): ShardsOf {
  if (place.kind === 'unsharded') {
    const set = oneShard(place.shard)
    return () => set
  }
  if (place.kind !== 'sharded') return everywhere
  const key = { level, relation, column: place.table.column }
  return compilePin(keyClass(key, places), world.map.placerOf(place.table), places)
}

/** Tables with all the places where they are read. */
export function tablesOf(places: Places, world: RoutingWorld): Map<number, Table> {
  const tables = new Map<number, Table & { uses: TableUse[] }>()
  for (const [level, resolved] of places) {
    for (const [relation, one] of resolved.entries()) {
      if (!one.relation) continue
      const use = {
        level,
        relation,
        resolved: one,
        shardsOf: pinOf(level, relation, one, places, world),
      }
      const known = tables.get(one.relation.oid)
      if (known) known.uses.push(use)
      else {
        const { relation: table, place } = one
        tables.set(table.oid, { relation: table, place, uses: [use], isWhole: false })
      }
    }
  }
  return tables
}
