/** Manual routing: comments, SET and startup parameters name a shard, a key or a role. Never across what the statement says. */
import { engineError } from '../errors/engine-error.js'
import type { Plan, RouteContext } from '../plan/plan.js'
import type { ShardId } from '../sharding/shard-set.js'
import type { CommentHints } from '../sql/hint.js'
import { planOrRefuse, type Role, refuse, relayTo } from './plans.js'
import type { RoutingWorld } from './world.js'

const invalid = (hint: string, reason: string): Error =>
  engineError('ROUTE_HINT_INVALID', { hint, reason })

/** A bare key belongs to no table: all sharded tables must place it by one rule. */
function shardOfKey(key: string, world: RoutingWorld): ShardId {
  const { config } = world.map
  const named = config.schemas.find((schema) => schema.name === key)
  const [first, ...others] = config.tables
  if (!first && named) return named.shard
  const hint = `pgshard_sharding_key: ${key}`
  if (!first) throw invalid(hint, 'the database has no sharded tables')
  const rule = JSON.stringify([first.keyType, first.placement])
  if (others.some((table) => JSON.stringify([table.keyType, table.placement]) !== rule)) {
    throw invalid(hint, 'the sharded tables place keys by different rules')
  }
  return world.map.placerOf(first).ofString(key)
}

/** The shard that comment or session names; undefined when none does. */
export function hintedShard(
  hints: CommentHints | undefined,
  context: RouteContext,
  world: RoutingWorld,
): ShardId | undefined {
  const { manual } = context
  const shard = hints?.shard ?? (hints?.shardingKey === undefined ? manual?.shard : undefined)
  if (shard !== undefined) {
    if (!Number.isInteger(shard) || shard < 0 || shard >= world.map.shardCount) {
      throw invalid(`pgshard_shard: ${shard}`, `shards are 0 to ${world.map.shardCount - 1}`)
    }
    return shard
  }
  const key = hints?.shardingKey ?? manual?.shardingKey
  return key === undefined ? undefined : shardOfKey(key, world)
}

function contradicts(hinted: ShardId, needed: readonly ShardId[]): Plan {
  return refuse(engineError('ROUTE_HINT_CONTRADICTS', { hinted, needed: needed.join(', ') }))
}

/** The statement's own plan under a hint for `shard`. */
export function obeyHint(own: Plan, shard: ShardId, role: Role): Plan {
  const there = (): Plan => relayTo(shard, role, 'a hint names the shard')
  // Rows of COPY go where they belong, one by one.
  if (own.how === 'copy') return own
  // Other refusals stand for wrong rows, not for a shard that could not be told.
  if (own.how === 'refuse') {
    const mayForce = own.error?.code === 'ROUTE_UNSUPPORTED' && own.notOne === undefined
    return mayForce ? there() : own
  }
  if (own.notOne !== undefined)
    return refuse(engineError('ROUTE_HINT_PARTS', { hinted: shard, why: own.notOne }))
  if (own.anyShard || own.target.kind === 'all') return there()
  const { shards } = own.target
  return shards.length === 0 || shards.includes(shard) ? there() : contradicts(shard, shards)
}

/** Wraps a statement's own route with the hints in its comments and of its session. */
export function withHints<R extends { context: RouteContext }>(
  own: (run: R) => Plan,
  hints: CommentHints | undefined,
  role: Role,
  world: RoutingWorld,
): (run: R) => Plan {
  if (hints?.invalid) {
    const refused = refuse(engineError('ROUTE_HINT_INVALID', hints.invalid))
    return () => refused
  }
  const hinted = (run: R): Plan =>
    planOrRefuse(() => {
      const shard = hintedShard(hints, run.context, world)
      const plan = own(run)
      const obeyed = shard === undefined ? plan : obeyHint(plan, shard, role)
      const wanted = hints?.role ?? run.context.manual?.role
      if (wanted === undefined) return obeyed
      return { ...obeyed, role: wanted === 'primary' ? 'primary' : 'any' }
    })
  if (hints) return hinted
  return (run) => (run.context.manual ? hinted(run) : own(run))
}
