/**
 * Reads over several shards that nothing simpler answers: their tables are copied to one PostgreSQL, where the client's
 * statement finishes (design §7.2, hard-parts §6). Pure: what is to be copied is said here, gather/ does it.
 */
import type { CatalogColumn, CatalogRelation } from '../../catalog/catalog.js'
import type { GatheredTable, GatheredView, GatherProgram } from '../../plan/gather-program.js'
import type { Plan } from '../../plan/plan.js'
import {
  allShards,
  noShard,
  oneShard,
  type ShardSet,
  uniteShards,
} from '../../sharding/shard-set.js'
import { blankQualifiers } from '../../sql/blank-qualifiers.js'
import { type GatherFacts, type QualifiedName, readGatherFacts } from '../../sql/gather-facts.js'
import type { Level, Statement } from '../../sql/statement.js'
import type { Run } from '../key-value.js'
import type { ShardsOf } from '../pins.js'
import { pinAdvice, type Role, unsupported, untoldTypes } from '../plans.js'
import { levelsOf, type Places } from '../resolve.js'
import type { RoutingWorld } from '../world.js'
import { filterOf } from './gather-filter.js'
import { forbiddenCall } from './gather-functions.js'
import { pinOf, type Table, tablesOf } from './gather-tables.js'
import { viewsOver, type WithViews } from './gather-views.js'
import { joinsOf, withJoins } from './joined-rows.js'

/** A view stands here only when it reads no sharded table. */
const readable = new Set(['table', 'partitioned', 'materialized', 'view'])

function badTable({ relation, uses }: Table): string | undefined {
  if (relation.isTemporary) return `temporary table "${relation.name}"`
  if (!readable.has(relation.kind)) return `${relation.kind} "${relation.name}"`
  if (new Set(uses.map(({ level, relation: at }) => level.relations[at]?.only === true)).size > 1) {
    return `table "${relation.name}" with and without ONLY`
  }
  return undefined
}

function badPlace(places: Places, world: RoutingWorld): string | undefined {
  for (const resolved of places.values()) {
    for (const { place, use, relation } of resolved) {
      if (place.kind === 'system') return `a join with system catalog "${use.name}"`
      if (!relation && world.catalog)
        return `table "${use.name}", which the catalogue does not have,`
    }
  }
  return undefined
}

/** Two tables of one name cannot both have a copy, and a copy must not stand before another table of its name. */
function sameName(tables: Iterable<Pick<Table, 'relation'>>): string | undefined {
  const names = new Set<string>()
  for (const { relation } of tables) {
    if (names.has(relation.name)) return `tables of one name "${relation.name}" in two schemas`
    names.add(relation.name)
  }
  return undefined
}

function kindReason(statement: Statement): string | undefined {
  const { kind, effects } = statement
  if (kind !== 'select' && !(kind === 'copy' && effects.copy?.direction === 'out')) {
    return statement.verb
  }
  if (statement.locks) return 'a locking clause'
  if (statement.systemColumn !== undefined) return `system column ${statement.systemColumn}`
  return undefined
}

/** Why the statement cannot finish over copies, as far as its template tells. */
function whyNot(
  statement: Statement,
  places: Places,
  named: Map<number, Table>,
  withViews: WithViews,
  world: RoutingWorld,
): string | undefined {
  const tables = [...withViews.tables, ...withViews.references, ...withViews.views]
  const bad = [...named.values(), ...tables].map(badTable).find((reason) => reason !== undefined)
  const typed = statement.typeNames.find((name) =>
    tables.some(({ relation }) => relation.name === name),
  )
  return (
    kindReason(statement) ??
    badPlace(places, world) ??
    bad ??
    sameName([...tables, ...withViews.nested]) ??
    (typed === undefined ? undefined : `a cast to the row type "${typed}"`) ??
    forbiddenCall(statement, world) ??
    (statement.isRead ? undefined : 'a statement that writes')
  )
}

/** Rows as a whole: as values they would have the type of the copy. */
function wholeRowOf(facts: GatherFacts, tables: readonly Table[]): string | undefined {
  for (const { relation, uses } of tables) {
    for (const { level, relation: at } of uses) {
      const alias = level.relations[at]?.alias ?? ''
      const isColumn = tables.some((one) => one.relation.columns.some(({ name }) => name === alias))
      if (facts.bare.get(alias) === 'value' && !isColumn) return relation.name
    }
  }
  return undefined
}

const mayBeWhole = (facts: GatherFacts, tables: readonly Table[]): boolean =>
  tables.some(({ uses }) =>
    uses.some(({ level, relation }) => facts.bare.has(level.relations[relation]?.alias ?? '')),
  )

function columnsOf(
  { relation, uses, isWhole }: Table,
  facts: GatherFacts,
  readsAll: boolean,
): readonly CatalogColumn[] {
  if (readsAll || isWhole) return relation.columns
  const aliases = uses.map(({ level, relation: at }) => level.relations[at]?.alias ?? '')
  const read = relation.columns.filter(({ name }) => facts.mayRead(name, aliases))
  return read.length > 0 ? read : relation.columns.slice(0, 1)
}

function keyOf(relation: CatalogRelation, columns: readonly CatalogColumn[]) {
  const primary = relation.constraints.find(({ kind }) => kind === 'primary')
  const names = (primary?.columns ?? []).flatMap((name) => (name === undefined ? [] : [name]))
  const isThere = names.every((name) => columns.some((one) => one.name === name))
  return names.length > 0 && isThere ? names : undefined
}

function filterOfTable({ uses }: Table, places: Places, run: Run): string | undefined {
  const parts = uses.map(({ level, relation }) => filterOf({ level, relation, places }, run))
  if (parts.includes(undefined)) return undefined
  const distinct = [...new Set(parts)]
  return distinct.length === 1 ? distinct[0] : distinct.map((part) => `(${part})`).join(' OR ')
}

function shardsOf({ uses, place, isWhole }: Table, run: Run): ShardSet {
  if (!isWhole) return uses.map((use) => use.shardsOf(run)).reduce(uniteShards, noShard)
  return place.kind === 'unsharded' ? oneShard(place.shard) : allShards
}

function gatheredTable(
  table: Table,
  facts: GatherFacts,
  readsAll: boolean,
  places: Places,
  run: Run,
): GatheredTable {
  const { relation, uses, place, isWhole } = table
  const columns = columnsOf(table, facts, readsAll)
  const filter = isWhole ? undefined : filterOfTable(table, places, run)
  const key = facts.groups || isWhole ? keyOf(relation, columns) : undefined
  return {
    schema: relation.schema,
    name: relation.name,
    columns: columns.map(({ name, type }) => ({ name, type })),
    only: uses.some(({ level, relation: at }) => level.relations[at]?.only === true),
    shards: shardsOf(table, run),
    ...(filter === undefined ? {} : { filter }),
    ...(key ? { primaryKey: key } : {}),
    ...(place.kind === 'unsharded' ? { livesOn: place.shard } : {}),
  }
}

/** The template's relations and those of this text, side by side. */
function namesIn(
  facts: GatherFacts,
  root: Level,
): Map<Level, readonly QualifiedName[]> | undefined {
  const own = levelsOf(facts.root)
  const names = new Map<Level, readonly QualifiedName[]>()
  for (const [index, level] of levelsOf(root).entries()) {
    const same = own[index]
    if (!same || same.relations.length !== level.relations.length) return undefined
    names.set(
      level,
      same.relations.map((use) => facts.nameOf(use)),
    )
  }
  return names
}

interface Parts {
  readonly root: Level
  readonly places: Places
  readonly tables: readonly Table[]
  readonly references: readonly Table[]
  /** Views that the statement names. */
  readonly views: readonly Table[]
  readonly definitions: readonly GatheredView[]
  readonly usesClock: boolean
  readonly joins: ReturnType<typeof joinsOf>
}

/** The text without the schemas of `tables`. */
function textFor(
  tables: readonly Table[],
  facts: GatherFacts,
  names: Map<Level, readonly QualifiedName[]>,
  sql: string,
  run: Run,
): string | undefined {
  const uses = tables.flatMap((table) =>
    table.uses.map(({ level, relation }) => names.get(level)![relation]!),
  )
  const columns = facts.columns.filter(({ schema, name }) =>
    tables.some(({ relation }) => relation.schema === schema && relation.name === name),
  )
  // bare, it would mean the CTE
  const told = [...uses, ...columns].map((one) =>
    facts.ctes.has(one.name) ? { ...one, becomes: 'pg_temp.' } : one,
  )
  return blankQualifiers(sql, told, run.standard)
}

function programOf(parts: Parts, run: Run): GatherProgram | string {
  const { root, places, tables, references, views } = parts
  const sql = run.sql.slice(run.start, run.end)
  const facts = readGatherFacts(sql)
  const names = facts && namesIn(facts, root)
  if (!facts || !names) return 'a statement whose text cannot be told apart'
  if (facts.samples) return 'TABLESAMPLE'
  const all = [...tables, ...references, ...views]
  const whole = wholeRowOf(facts, all)
  if (whole !== undefined) return `a whole row of "${whole}" as a value`
  if (run.context.searchPath.includes('pg_temp')) return 'a search_path that names pg_temp'
  const readsAll = facts.readsAll || mayBeWhole(facts, all)
  const gathered = (table: Table) => gatheredTable(table, facts, readsAll, places, run)
  const text = textFor([...tables, ...views], facts, names, sql, run)
  const textOfAll = textFor(all, facts, names, sql, run)
  if (text === undefined || textOfAll === undefined) return 'a name in an unusual form'
  return {
    tables: withJoins(tables.map(gathered), parts.joins),
    references: references.map(gathered),
    views: parts.definitions,
    sql: text,
    sqlWithReferences: textOfAll,
    usesClock: parts.usesClock,
    standard: run.standard,
  }
}

const reasons = ['the rows are copied to one server, where the statement finishes']

/** Offline nobody knows the columns: the way is told, and cannot be gone. */
function compileTold(places: Places, role: Role, world: RoutingWorld): (run: Run) => Plan {
  const pins: ShardsOf[] = []
  for (const [level, resolved] of places) {
    for (const [relation, one] of resolved.entries()) {
      if (one.place.kind === 'reference') continue
      pins.push(pinOf(level, relation, one, places, world))
    }
  }
  return (run) => {
    if (readGatherFacts(run.sql.slice(run.start, run.end))?.samples !== false) {
      return unsupported('TABLESAMPLE', pinAdvice)
    }
    const target = pins.map((pin) => pin(run)).reduce(uniteShards, noShard)
    return { how: 'gather', target, role, reasons: [...reasons, untoldTypes] }
  }
}

/**
 * Routes of a statement by gathering, when its keys do not name one shard. `reason` is why nothing simpler answers it, for
 * the refusal.
 */
export function compileGather(
  statement: Statement,
  places: Places,
  role: Role,
  world: RoutingWorld,
  reason: string,
): (run: Run) => Plan {
  const root = statement.root
  const tables = tablesOf(places, world)
  if (!root || !world.gather) {
    const refused = unsupported(reason, pinAdvice)
    return () => refused
  }
  const views = viewsOver([...tables.values()], world)
  const why = typeof views === 'string' ? views : whyNot(statement, places, tables, views, world)
  if (why !== undefined || typeof views === 'string') {
    const refused = unsupported(why ?? reason, pinAdvice)
    return () => refused
  }
  if (!world.catalog) return compileTold(places, role, world)
  const usesClock = statement.usesClock || views.usesClock
  const joins = joinsOf(views.tables, places)
  const parts: Parts = { root, places, ...views, usesClock, joins }
  return (run) => {
    const gather = programOf(parts, run)
    if (typeof gather === 'string') return unsupported(gather, pinAdvice)
    const target = gather.tables
      .map(({ shards }) => shards)
      .reduce(uniteShards, noShard) as ShardSet
    return { how: 'gather', target, role, reasons, gather }
  }
}
