/**
 * A read of several shards → how its answer comes about: the shards' answers behind each other, or merged, or their rows
 * gathered in one place. The first that is right is taken.
 */
import type { Plan } from '../plan/plan.js'
import { allShards, intersectShards, listShards, type ShardSet } from '../sharding/shard-set.js'
import type { Level, Statement } from '../sql/statement.js'
import { notApart } from './concatenate.js'
import { compileGather } from './gather/gather-route.js'
import type { Run } from './key-value.js'
import { NotMergeable } from './merge/merge-columns.js'
import { compileMerge, type Merged } from './merge/merge-plan.js'
import { concatenateFrom, type Role, relayNowhere, relayTo, untoldTypes } from './plans.js'
import type { Places } from './resolve.js'
import type { RoutingWorld } from './world.js'

type SeveralRoute = (sets: readonly ShardSet[], run: Run) => Plan

interface Several {
  readonly statement: Statement
  readonly root: Level
  readonly places: Places
  readonly role: Role
  readonly world: RoutingWorld
}

function mergePlan(
  merged: Exclude<Merged, NotMergeable | 'negative'>,
  target: ShardSet,
  role: Role,
): Plan {
  return {
    how: 'merge',
    target,
    role,
    merge: merged.program,
    reasons: merged.reasons.length > 0 ? merged.reasons : ['the shards answer up to the limit'],
  }
}

/** Rows of the answer are each of one shard: by merging, or else by gathering. */
function compileMerged({
  statement,
  root,
  places,
  role,
  world,
}: Several): (target: ShardSet, run: Run) => Plan {
  const merge = compileMerge(statement, root, places, world)
  const reason = root.notPlain ?? 'this statement'
  const gathers = new Map<string, (run: Run) => Plan>()
  const gather = (why: string, run: Run): Plan => {
    const known = gathers.get(why) ?? compileGather(statement, places, role, world, why)
    gathers.set(why, known)
    return known(run)
  }
  return (target, run) => {
    const merged = merge?.(run)
    if (merged === 'negative') {
      const [shard] = listShards(target, world.map.shardCount)
      return relayTo(shard ?? 0, role, 'PostgreSQL refuses a LIMIT or OFFSET below zero')
    }
    if (!merged || merged instanceof NotMergeable) return gather(merged?.reason ?? reason, run)
    if (merged.isCertain) return mergePlan(merged, target, role)
    if (!world.catalog) {
      const reasons = [...merged.reasons, untoldTypes]
      return mergePlan({ ...merged, reasons }, target, role)
    }
    // the types of its keys are known when rows come: another way is better, if there is one
    const gathered = gather(reason, run)
    return gathered.how === 'refuse' ? mergePlan(merged, target, role) : gathered
  }
}

/** `isNullable`: pins of tables whose conditions drop no rows of the others. */
export function compileSeveralReads(read: Several, isNullable: readonly boolean[]): SeveralRoute {
  const { statement, root, places, role, world } = read
  const reason = notApart(statement, root, places, world)
  if (reason !== undefined) {
    const gather = compileGather(statement, places, role, world, reason)
    return (_, run) => gather(run)
  }
  const reasons = ['the shards answer one after the other']
  const merged = root.notPlain === undefined ? undefined : compileMerged(read)
  return (sets, run) => {
    const target = sets.filter((_, index) => !isNullable[index]).reduce(intersectShards, allShards)
    if (target.kind === 'all' || target.shards.length > 1) {
      return merged ? merged(target, run) : concatenateFrom(target, role, reasons)
    }
    const [shard] = target.shards
    return shard === undefined
      ? relayNowhere(role, 'no shard can hold a matching row')
      : relayTo(shard, role, 'the keys of the joined tables name one shard')
  }
}
