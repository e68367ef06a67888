/** Tables named in a statement → where their rows live, by search path, catalogue and configuration. */
import type { Catalog, CatalogRelation } from '../catalog/catalog.js'
import { engineError } from '../errors/engine-error.js'
import type { Plan } from '../plan/plan.js'
import type { ShardId } from '../sharding/shard-set.js'
import type { ShardedTable } from '../sharding/sharded-table.js'
import type { ColumnUse, Level, RelationUse } from '../sql/statement.js'
import { keyMisfit } from './key-column.js'
import { type Names, onlyTemporaryShard } from './names.js'
import { refuse, unsupported } from './plans.js'
import type { RoutingWorld } from './world.js'

export type Place =
  | { readonly kind: 'sharded'; readonly table: ShardedTable }
  | { readonly kind: 'reference' }
  | { readonly kind: 'unsharded'; readonly shard: ShardId }
  | { readonly kind: 'system' }
  /** `isView`: only because it is a view that reads sharded tables, or tables of several shards. */
  | { readonly kind: 'refused'; readonly plan: Plan; readonly isView?: true }

export interface Resolved {
  readonly use: RelationUse
  readonly place: Place
  readonly relation: CatalogRelation | undefined
}

const systemSchemas = new Set(['pg_catalog', 'information_schema', 'pg_toast'])

function isSystem(use: RelationUse): boolean {
  if (use.schema !== undefined) return systemSchemas.has(use.schema)
  // pg_catalog is searched before every other schema.
  return use.name.startsWith('pg_')
}

const qualified = (use: { schema?: string; name: string }): string =>
  use.schema === undefined ? use.name : `${use.schema}.${use.name}`

const columnFields = new Set(['column', 'left', 'right'])

/** Calls `found` for every column that a predicate names. */
function eachColumn(value: unknown, found: (column: ColumnUse) => void): void {
  if (value === null || typeof value !== 'object') return
  for (const [key, inner] of Object.entries(value)) {
    if (columnFields.has(key) && typeof inner === 'object') found(inner as ColumnUse)
    else eachColumn(inner, found)
  }
}

/** Without a catalogue: does the statement itself say that the table has the column? */
function mentions(level: Level, use: RelationUse, column: string): boolean {
  let seen = use.isTarget && (level.insert?.columns?.includes(column) ?? false)
  const alone = level.relations.length === 1 && !level.hasDerived
  for (const { predicate } of level.conjuncts) {
    eachColumn(predicate, (found) => {
      const here = found.table === undefined ? alone : found.table === use.alias
      if (found.column === column && here) seen = true
    })
  }
  return seen
}

function viewPlace(view: CatalogRelation, world: RoutingWorld): Place {
  const beneath = world.catalog!.tablesBeneath(view)
  const places = beneath.map((table) => placeOfRelation(table, world))
  const refused = (what: string, advice: string): Place => {
    const plan = unsupported(`view "${view.name}", which reads ${what},`, advice)
    const isView = !places.some((place) => place.kind === 'refused')
    return { kind: 'refused', plan, ...(isView ? { isView } : {}) }
  }
  if (places.some((place) => place.kind === 'sharded' || place.kind === 'refused')) {
    return refused('sharded tables', 'query its tables instead')
  }
  const unsharded = places.flatMap((place) => (place.kind === 'unsharded' ? [place.shard] : []))
  if (new Set(unsharded).size > 1) return refused('tables of several shards', 'split it')
  if (unsharded.length > 0) return { kind: 'unsharded', shard: unsharded[0]! }
  return { kind: 'reference' }
}

export function placeOfRelation(relation: CatalogRelation, world: RoutingWorld): Place {
  if (systemSchemas.has(relation.schema)) return { kind: 'system' }
  const top = world.catalog!.rootOf(relation)
  if (top.kind === 'view') return viewPlace(top, world)
  const found = world.map.tableOf(top.schema, top.name, (column) =>
    top.columns.some((one) => one.name === column),
  )
  if (relation.kind === 'sequence' && found.kind !== 'unsharded') {
    const plan = unsupported(`reading sequence "${relation.name}"`, 'name a shard in a comment')
    return { kind: 'refused', plan }
  }
  if (relation.kind === 'materialized' && found.kind === 'reference') {
    return materializedPlace(relation, world)
  }
  const misfit = found.kind === 'sharded' ? keyMisfit(top, found.table, world) : undefined
  return misfit ? { kind: 'refused', plan: misfit } : found
}

/** A materialized view holds what its shard had: of sharded tables each has its own part. */
function materializedPlace(view: CatalogRelation, world: RoutingWorld): Place {
  const sharded = view.reads.some((oid) => {
    const read = world.catalog!.byOid(oid)
    return read !== undefined && placeOfRelation(read, world).kind !== 'reference'
  })
  if (!sharded) return { kind: 'reference' }
  const plan = unsupported(`materialized view "${view.name}" of sharded tables`, 'query its tables')
  return { kind: 'refused', plan }
}

const schemaAdvice = 'write the schema before its name'

/** Where else the server may find the table that an unqualified name seems to mean. */
export function whyUnclear(name: string, catalog: Catalog, names: Names): string | undefined {
  const { searchPath, temporary } = names
  const found = catalog.find(undefined, name, searchPath)
  if (!found) return undefined
  if (temporary?.has(name)) return 'a temporary schema'
  if (name.startsWith('pg_')) return 'pg_catalog'
  if (searchPath.includes('information_schema')) return 'information_schema'
  if (!searchPath.includes('$user')) return undefined
  const own = catalog.schemasOf(name).find((schema) => catalog.userSchemas.has(schema))
  return own === undefined || own === found.schema ? undefined : `schema "${own}" of a user`
}

/** The shard of a temporary table of the session, or of a name that only a function can have made. */
function temporaryShard(use: RelationUse, catalog: Catalog, names: Names): number | undefined {
  if (!names.temporary) return undefined
  if (use.schema !== undefined && use.schema !== 'pg_temp') return undefined
  const own = names.temporary.get(use.name)
  if (own !== undefined) return own
  if (use.schema === 'pg_temp') return onlyTemporaryShard(names)
  const isKnown = isSystem(use) || catalog.find(undefined, use.name, names.searchPath)
  return isKnown ? undefined : onlyTemporaryShard(names)
}

/** Offline: the first schema of the path for which the configuration names such a table, or the only one. */
function likelySchema(
  name: string,
  searchPath: readonly string[],
  { map }: RoutingWorld,
): string | undefined {
  const { tables, referenceTables } = map.config
  const named = [...tables, ...referenceTables].filter((table) => table.name === name)
  const known = searchPath.find((schema) => named.some((table) => table.schema === schema))
  return known ?? (searchPath.length === 1 ? searchPath[0] : undefined)
}

export function resolveRelation(
  level: Level,
  use: RelationUse,
  world: RoutingWorld,
  names: Names,
): Resolved {
  const { searchPath } = names
  const { catalog } = world
  const unclear = catalog && use.schema === undefined && whyUnclear(use.name, catalog, names)
  if (unclear) {
    const plan = unsupported(`table "${use.name}", which may stand in ${unclear},`, schemaAdvice)
    return { use, place: { kind: 'refused', plan }, relation: undefined }
  }
  const temporary = catalog && temporaryShard(use, catalog, names)
  if (temporary !== undefined) {
    return { use, place: { kind: 'unsharded', shard: temporary }, relation: undefined }
  }
  if (isSystem(use)) return { use, place: { kind: 'system' }, relation: undefined }
  if (!catalog) {
    const schema = use.schema ?? likelySchema(use.name, searchPath, world)
    const place = world.map.tableOf(schema, use.name, (column) => mentions(level, use, column))
    return { use, place, relation: undefined }
  }
  const relation = catalog.find(use.schema, use.name, searchPath)
  if (relation) return { use, place: placeOfRelation(relation, world), relation }
  const error = engineError('ROUTE_RELATION_UNKNOWN', { relation: qualified(use) })
  return { use, place: { kind: 'refused', plan: refuse(error) }, relation: undefined }
}

/** Every level of a statement, outermost first. */
export function levelsOf(root: Level | undefined): Level[] {
  if (!root) return []
  return [root, ...root.children.flatMap(levelsOf)]
}

export type Places = ReadonlyMap<Level, readonly Resolved[]>

export function resolveAll(root: Level | undefined, world: RoutingWorld, names: Names): Places {
  const places = new Map<Level, Resolved[]>()
  for (const level of levelsOf(root)) {
    places.set(
      level,
      level.relations.map((use) => resolveRelation(level, use, world, names)),
    )
  }
  return places
}
