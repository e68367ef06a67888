/** Route of a statement with query levels over several shards: every table reference pinned to one shard, or refused. */
import { engineError } from '../errors/engine-error.js'
import type { Plan } from '../plan/plan.js'
import { oneShard, type ShardId, type ShardSet } from '../sharding/shard-set.js'
import type { ShardedTable } from '../sharding/sharded-table.js'
import { volatileBuiltins } from '../sql/builtin-functions.js'
import { harmlessVolatiles } from '../sql/describe-statement.js'
import type { Level, Statement, Value } from '../sql/statement.js'
import { localConstraints } from './constraints.js'
import { foreignOperator, isForeign, isHarmlessForeign } from './effects.js'
import { compileGather } from './gather/gather-route.js'
import { readsShardedView } from './gather/gather-views.js'
import { compileInsert } from './insert-pin.js'
import { columnNamed } from './key-column.js'
import { type Run, shardsOfValue } from './key-value.js'
import type { Names } from './names.js'
import { compilePin, keyClass, type ShardsOf } from './pins.js'
import {
  pinAdvice,
  planOrRefuse,
  RelayPlans,
  type Role,
  refuse,
  relayAnywhere,
  relayNowhere,
  relayTo,
  unsupported,
} from './plans.js'
import { type Places, type Resolved, resolveAll } from './resolve.js'
import { compileSeveralReads } from './several-route.js'
import type { RoutingWorld } from './world.js'
import { compileMergeWrite } from './writes/merge-statement-route.js'
import { isItself } from './writes/move-route.js'
import { compileSelectInsert } from './writes/select-insert.js'
import { conflictRefusal } from './writes/write-conflict.js'
import { compileReferenceWrite, compileWrite } from './writes/write-route.js'

/** Built-in functions that read whole tables by name, or belong to one server's sequences. */
const tableReaders = /^(?:query|table|schema|database|cursor)_to_xml|^ts_stat$/
const sequenceFunctions = new Set(['nextval', 'setval', 'currval', 'lastval'])

interface Parts {
  readonly pins: ShardsOf[]
  /** For each pin: its table is null-extended, so that its conditions drop no rows of the others. */
  readonly isNullable: boolean[]
  /** Checks once the shard is known; a plan refuses. */
  readonly checks: ((run: Run, shard: ShardId) => Plan | undefined)[]
  hasSharded: boolean
  hasReference: boolean
  hasSystem: boolean
  /** Rows of INSERT over several shards have an error of their own. */
  insertTarget?: string
  /** A reference table that is written. */
  referenceTarget?: Resolved
}

type Sharded = Resolved & { place: { kind: 'sharded'; table: ShardedTable } }

const isSharded = (one: Resolved): one is Sharded => one.place.kind === 'sharded'

/** Constraints that a write to this table could break unseen. */
function constraintRefusal(level: Level, target: Sharded, world: RoutingWorld): Plan | undefined {
  if (!target.relation || level.kind === 'delete') return undefined
  const touched = level.kind === 'update' ? level.assigned?.map((one) => one.column) : undefined
  const broken = localConstraints(target.relation, target.place.table, world).find(
    (one) => !touched || one.columns.some((name) => name === undefined || touched.includes(name)),
  )
  if (!broken) return undefined
  return refuse(
    engineError('ROUTE_CONSTRAINT', { constraint: broken.name, table: target.use.name }),
  )
}

/** An assignment to the key passes when the row stays on its shard. */
function keyCheck(target: Sharded, value: Value | undefined, world: RoutingWorld) {
  const { table } = target.place
  const placer = world.map.placerOf(table, columnNamed(target.relation, table.column)?.typmod)
  const refused = refuse(
    engineError('ROUTE_KEY_UPDATE', {
      column: table.column,
      table: target.use.name,
      why: 'in this statement',
    }),
  )
  return (run: Run, shard: ShardId): Plan | undefined => {
    if (!value) return refused
    const set = shardsOfValue(value, placer, run, 'store')
    return set.kind === 'some' && set.shards.length === 1 && set.shards[0] === shard
      ? undefined
      : refused
  }
}

function addTarget(
  level: Level,
  target: Resolved,
  parts: Parts,
  places: Places,
  world: RoutingWorld,
): Plan | undefined {
  if (level.kind === 'merge' && level.parent) return unsupported('MERGE in WITH', pinAdvice)
  if (target.place.kind === 'reference') {
    parts.referenceTarget ??= target
    return undefined
  }
  if (!isSharded(target)) return undefined
  const { table } = target.place
  const refusal = constraintRefusal(level, target, world) ?? conflictRefusal(level, target, table)
  if (refusal) return refusal
  for (const { column, value, from } of level.assigned ?? []) {
    if (column === table.column && !isItself(level, from, column)) {
      parts.checks.push(keyCheck(target, value, world))
    }
  }
  if (level.kind !== 'insert') return undefined
  // the key may be an identity: then what is written is not where the row belongs
  if (level.insert?.overridesUser) {
    return unsupported('OVERRIDING USER VALUE', 'leave the identity column out')
  }
  parts.insertTarget ??= target.use.name
  parts.hasSharded = true
  parts.pins.push(compileInsert(level, target, table, places, world))
  return undefined
}

/** Takes one table reference into the parts; a plan refuses the statement. */
function addReference(
  level: Level,
  index: number,
  parts: Parts,
  places: Places,
  world: RoutingWorld,
): Plan | undefined {
  const one = places.get(level)![index]!
  const { place } = one
  if (place.kind === 'refused') return place.plan
  if (one.use.isTarget) {
    const refusal = addTarget(level, one, parts, places, world)
    if (refusal || level.kind === 'insert') {
      if (place.kind === 'unsharded') parts.pins.push(() => oneShard(place.shard))
      return refusal
    }
  }
  if (place.kind === 'sharded') {
    const key = { level, relation: index, column: place.table.column }
    parts.hasSharded = true
    parts.isNullable[parts.pins.length] = one.use.nullable
    parts.pins.push(compilePin(keyClass(key, places), world.map.placerOf(place.table), places))
  } else if (place.kind === 'unsharded') parts.pins.push(() => oneShard(place.shard))
  else if (place.kind === 'system') parts.hasSystem = true
  else parts.hasReference = true
  return undefined
}

/** What no shard may be chosen for, whatever the keys say. */
function functionRefusal(
  statement: Statement,
  parts: Parts,
  world: RoutingWorld,
): Plan | undefined {
  const names = statement.functions
  const reader = names.find((call) => tableReaders.test(call.name))
  if (reader) return unsupported(`function ${reader.name}()`, 'query the tables themselves')
  if (parts.pins.length > 0) return undefined
  const foreign =
    names.find((call) => isForeign(call, world) && !isHarmlessForeign(call, world)) ??
    foreignOperator(statement, world)
  if (foreign) return unsupported(`${foreign.name}(), which may read any table,`, pinAdvice)
  const bare = statement.kind === 'select' && !parts.hasReference && !parts.hasSystem
  const sequence = names.find(
    (call) => sequenceFunctions.has(call.name) && !(bare && call.name === 'nextval'),
  )
  return sequence && unsupported(`function ${sequence.name}()`, pinAdvice)
}

function unpinned(statement: Statement, parts: Parts, role: Role): Plan {
  if (parts.hasSystem) return relayTo(0, role, 'system catalogs are read on shard 0')
  const volatile = statement.functions.some(
    (call) => volatileBuiltins.has(call.name) && !harmlessVolatiles.has(call.name),
  )
  // Advisory locks and the like must meet each other on one server.
  if (volatile) return relayTo(0, role, 'functions with side effects run on shard 0')
  const reason = parts.hasReference
    ? 'reference tables stand on every shard'
    : 'no table of a shard is named'
  return relayAnywhere(role, reason)
}

const several: unique symbol = Symbol('several shards')

/** The one shard that every non-empty pin names; undefined when all are empty. */
function commonShard(sets: readonly ShardSet[]): ShardId | undefined | typeof several {
  let shard: ShardId | undefined
  for (const set of sets) {
    if (set.kind === 'all' || set.shards.length > 1) return several
    const [one] = set.shards
    if (one === undefined) continue
    if (shard !== undefined && shard !== one) return several
    shard = one
  }
  return shard
}

/** The plan when the pins do not name one shard. */
function compileSeveral(
  statement: Statement,
  root: Level,
  parts: Parts,
  places: Places,
  role: Role,
  world: RoutingWorld,
): (sets: readonly ShardSet[], run: Run) => Plan {
  if (parts.insertTarget !== undefined) {
    const refused = refuse(engineError('ROUTE_INSERT_SPLIT', { table: parts.insertTarget }))
    return () => refused
  }
  return compileSeveralReads({ statement, root, places, role, world }, parts.isNullable)
}

function collect(statement: Statement, places: Places, world: RoutingWorld): Parts | Plan {
  const parts: Parts = {
    pins: [],
    isNullable: [],
    checks: [],
    hasSharded: false,
    hasReference: false,
    hasSystem: false,
  }
  for (const [level, resolved] of places) {
    for (let index = 0; index < resolved.length; index++) {
      const refusal = addReference(level, index, parts, places, world)
      if (refusal) return refusal
    }
  }
  if (statement.root?.notPlain === 'SELECT INTO') {
    return unsupported('SELECT INTO', 'create the table on each shard')
  }
  if (statement.locks && parts.hasReference) {
    return unsupported(
      'locking rows of a reference table',
      'name the sharded table in FOR UPDATE OF',
    )
  }
  return functionRefusal(statement, parts, world) ?? parts
}

/** On every shard, when nothing in it stands on some shards only. */
function referenceWrite(
  statement: Statement,
  root: Level,
  parts: Parts,
  places: Places,
  world: RoutingWorld,
): (run: Run) => Plan {
  const target = parts.referenceTarget!
  if (parts.pins.length === 0 && !parts.hasSystem) {
    const write = compileReferenceWrite(statement, root, target, places, world)
    return (run) => planOrRefuse(() => write(run))
  }
  if (root.kind === 'insert' && root.relations[0] === target.use && !parts.hasSystem) {
    const write = compileSelectInsert(statement, root, target, places, world)
    return (run) => planOrRefuse(() => write(run))
  }
  const refused = refuse(engineError('ROUTE_REFERENCE_WRITE', { table: target.use.name }))
  return () => refused
}

/** Routes of a statement that reads or writes tables, for one search path. */
export function compileQuery(
  statement: Statement,
  world: RoutingWorld,
  names: Names,
  role: Role,
): (run: Run) => Plan {
  const root = statement.root!
  const places = resolveAll(root, world, names)
  if (readsShardedView(places)) {
    const gather = compileGather(statement, places, role, world, 'a view over sharded tables')
    return (run) => planOrRefuse(() => gather(run))
  }
  if (root.kind === 'merge' && places.get(root)?.[0]?.place.kind !== 'reference') {
    const write = compileMergeWrite(statement, root, places, world, (level, target) =>
      constraintRefusal(level, target, world),
    )
    return (run) => planOrRefuse(() => write(run))
  }
  const parts = collect(statement, places, world)
  if ('how' in parts) return () => parts
  if (parts.referenceTarget) return referenceWrite(statement, root, parts, places, world)
  if (parts.pins.length === 0) {
    const plan = unpinned(statement, parts, role)
    return () => plan
  }
  const relays = new RelayPlans(role, [
    parts.hasSharded ? 'the sharding key names one shard' : 'the table lives on one shard',
  ])
  const nowhere = relayNowhere(role, 'no shard can hold a matching row')
  const severally = compileSeveral(statement, root, parts, places, role, world)
  const write = compileWrite(statement, root, places, world)
  const { pins, checks } = parts
  const [only] = pins
  const finish = (run: Run, shard: ShardId): Plan => {
    for (const check of checks) {
      const refusal = check(run, shard)
      if (refusal) return write && root.kind === 'update' ? write(run) : refusal
    }
    return relays.to(shard)
  }
  const route = (run: Run): Plan => {
    const sets = pins.length === 1 ? [only!(run)] : pins.map((pin) => pin(run))
    const shard = commonShard(sets)
    if (shard === several) return write ? write(run) : severally(sets, run)
    return shard === undefined ? nowhere : finish(run, shard)
  }
  return (run) => planOrRefuse(() => route(run))
}
