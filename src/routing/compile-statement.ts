/** Facts of a template → the function that routes its runs. What does not depend on a run is worked out here, once. */
import { engineError } from '../errors/engine-error.js'
import type { Plan } from '../plan/plan.js'
import { allShards } from '../sharding/shard-set.js'
import type { CommentHints } from '../sql/hint.js'
import type { Statement } from '../sql/statement.js'
import { localConstraints } from './constraints.js'
import { planDdl } from './ddl-route.js'
import { readsOnly } from './effects.js'
import { compileExplain } from './explain.js'
import { compileFunctionRoute } from './function-route.js'
import type { Run } from './key-value.js'
import { withHints } from './manual.js'
import { type Names, namesOf, sameNames } from './names.js'
import {
  eachShardAdvice,
  RelayPlans,
  type Role,
  refuse,
  relayAnywhere,
  relayTo,
  unsupported,
} from './plans.js'
import { compileQuery } from './query-route.js'
import { resolveAll } from './resolve.js'
import type { RoutingWorld } from './world.js'

export type RouteOf = (run: Run) => Plan

/** With one shard everything goes there; only the role is chosen. */
function compileSingle(hints: CommentHints | undefined, role: Role): RouteOf {
  const any = new RelayPlans('any', ['the database has one shard']).to(0)
  const primary = new RelayPlans('primary', ['the database has one shard']).to(0)
  if (hints?.invalid) {
    const refused = refuse(engineError('ROUTE_HINT_INVALID', hints.invalid))
    return () => refused
  }
  return ({ context }) => {
    const wanted = hints?.role ?? context.manual?.role
    if (wanted === 'primary') return primary
    return wanted === 'replica' || role === 'any' ? any : primary
  }
}

/** COPY table FROM: rows go through the splitter, unless the table lives on one shard. */
function copyIn(statement: Statement, world: RoutingWorld, names: Names): Plan {
  if (!statement.effects.copy?.stdio)
    return unsupported('COPY FROM a file or program', eachShardAdvice)
  const target = resolveAll(statement.root, world, names).get(statement.root!)![0]!
  const { place, relation, use } = target
  switch (place.kind) {
    case 'refused':
      return place.plan
    case 'unsharded':
      return relayTo(place.shard, 'primary', 'the table lives on one shard')
    case 'system':
      return relayTo(0, 'primary', 'system catalogs are on shard 0')
    case 'reference':
      return copyPlan('every row goes to every shard')
    default: {
      const [broken] = relation ? localConstraints(relation, place.table, world) : []
      if (!broken) return copyPlan('each row goes to the shard of its key')
      return refuse(engineError('ROUTE_CONSTRAINT', { constraint: broken.name, table: use.name }))
    }
  }
}

const copyPlan = (reason: string): Plan => ({
  how: 'copy',
  target: allShards,
  role: 'primary',
  reasons: [reason],
})

/** Statements without tables, or that the session carries out itself. */
function compileFixed(statement: Statement, role: Role): Plan | undefined {
  switch (statement.kind) {
    case 'listen':
    case 'unlisten':
    case 'notify':
      return relayTo(0, 'primary', 'notifications pass through shard 0')
    case 'two_phase':
      return unsupported(statement.verb, eachShardAdvice)
    case 'truncate':
    case 'lock':
    case 'ddl':
    case 'utility':
      return undefined
    case 'call':
    case 'do':
      return unsupported(statement.verb, eachShardAdvice)
    default:
      return statement.root ? undefined : relayAnywhere(role, 'the session sees to it')
  }
}

function compileForNames(
  statement: Statement,
  world: RoutingWorld,
  role: Role,
  names: Names,
): RouteOf {
  if (statement.ddl) {
    const plan = planDdl(statement, world, names)
    return () => plan
  }
  const copy = statement.effects.copy
  if (copy?.direction === 'in') {
    const plan = copyIn(statement, world, names)
    return () => plan
  }
  if (copy && !copy.stdio) {
    const plan = unsupported('COPY TO a file or program', eachShardAdvice)
    return () => plan
  }
  return compileQuery(statement, world, names, role)
}

/** WHERE CURRENT OF: the row is where the cursor stands. */
function atCursor(name: string, own: RouteOf): RouteOf {
  return (run) => {
    const plan = own(run)
    if (plan.how === 'relay' || plan.how === 'refuse') return plan
    const shard = run.context.cursors?.shardOf(name)
    if (shard === undefined) return relayAnywhere('primary', 'the cursor stands on no shard')
    // of several parts each is the statement itself, but for rows that move and copies of reference tables
    const isSame = plan.how === 'concatenate' || (plan.how === 'split' && !plan.move)
    if (isSame) return relayTo(shard, 'primary', 'the cursor stands on one shard')
    return unsupported('WHERE CURRENT OF', 'name the row by its key')
  }
}

/** Where the cursor stands that FETCH, MOVE or CLOSE names. */
function ofCursor(name: string): RouteOf {
  const anywhere = relayAnywhere('any', 'the session sees to it')
  return ({ context }) => {
    const shard = context.cursors?.shardOf(name)
    return shard === undefined ? anywhere : relayTo(shard, 'any', 'the cursor stands on one shard')
  }
}

/** Names mean other tables under another search path: the last one is kept compiled. */
function compileNames(statement: Statement, world: RoutingWorld, role: Role): RouteOf {
  let names: Names | undefined
  let route: RouteOf | undefined
  return (run) => {
    if (!route || !sameNames(names, run.context)) {
      names = namesOf(run.context)
      route = compileForNames(statement, world, role, names)
    }
    return route(run)
  }
}

function compileOwn(statement: Statement, world: RoutingWorld, role: Role): RouteOf {
  const { kind, effects } = statement
  if (kind === 'explain' && !effects.execute)
    return compileExplain({ planner: world.planner, isExpanded: world.expandsExplain })
  const { cursor } = effects
  const name = cursor?.name ?? undefined
  if (name !== undefined && (kind === 'fetch' || kind === 'close')) return ofCursor(name)
  const fixed = compileFixed(statement, role)
  if (fixed) return () => fixed
  const route = compileNames(statement, world, role)
  return cursor?.verb === 'current' && name !== undefined ? atCursor(name, route) : route
}

export function compileStatement(
  statement: Statement,
  hints: CommentHints | undefined,
  world: RoutingWorld,
): RouteOf {
  const role: Role = readsOnly(statement, world) ? 'any' : 'primary'
  if (world.map.shardCount === 1) return compileSingle(hints, role)
  const placed =
    world.functionRoutes &&
    compileFunctionRoute(statement, world.functionRoutes, world.map.shardCount, role)
  if (placed) return withHints(placed, hints, role, world)
  const own = compileOwn(statement, world, role)
  const places = statement.kind === 'insert' || statement.kind === 'merge'
  return withHints(places ? notForced(own) : own, hints, role, world)
}

/** Rows that come in would lie where the hint says, and not where their keys are looked for. */
const notForced =
  (own: RouteOf): RouteOf =>
  (run) => {
    const plan = own(run)
    return plan.how === 'refuse' ? { ...plan, notOne: 'its rows go where their keys say' } : plan
  }
