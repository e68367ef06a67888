/**
 * DDL and its kin over several shards: on every shard, so that all have one schema, unless all that it names lives on one
 * shard by its schema (PgDog's rule) or is a temporary object of the session.
 */
import type { Plan } from '../plan/plan.js'
import type { EverywhereProgram } from '../plan/split-program.js'
import type { TableKind } from '../sharding/shard-map.js'
import { allShards, type ShardId } from '../sharding/shard-set.js'
import { volatileBuiltins } from '../sql/builtin-functions.js'
import type { DdlFacts, NamedRelation } from '../sql/describe-ddl.js'
import type { Statement } from '../sql/statement.js'
import { isForeign, isHarmlessForeign } from './effects.js'
import type { Names } from './names.js'
import { ownSequencesApart, restartedApart } from './own-sequences.js'
import { eachShardAdvice, relayTo, unsupported } from './plans.js'
import type { RoutingWorld } from './world.js'

/** The shard of a temporary object of the session. */
function temporaryShard({ schema, name }: NamedRelation, { temporary }: Names): number | undefined {
  if (schema !== undefined && schema !== 'pg_temp') return undefined
  return temporary?.get(name)
}

/** Where a relation lives, or will live when the statement makes it. */
function kindOf(
  relation: NamedRelation,
  facts: DdlFacts,
  world: RoutingWorld,
  { searchPath }: Names,
): TableKind {
  const known = world.catalog?.find(relation.schema, relation.name, searchPath)
  const top = known && world.catalog!.rootOf(known)
  const [first] = searchPath
  const schema = top?.schema ?? relation.schema ?? (first === '$user' ? undefined : first)
  const columns = top ? top.columns.map((column) => column.name) : facts.columns
  return world.map.tableOf(schema, top?.name ?? relation.name, (column) => columns.includes(column))
}

/** The only shard of all that is named; undefined: every shard. */
function shardOf(kinds: readonly TableKind[]): ShardId | undefined | Plan {
  const shards = new Set(kinds.map((kind) => (kind.kind === 'unsharded' ? kind.shard : undefined)))
  if (shards.size <= 1) return [...shards][0]
  return unsupported('one statement about tables of different shards', 'name one table in each')
}

function temporaryPlan(facts: DdlFacts, names: Names): Plan | undefined {
  const shards = new Set(facts.relations.map((relation) => temporaryShard(relation, names)))
  if (shards.size === 0 || (shards.size === 1 && shards.has(undefined))) return undefined
  const [shard] = shards
  if (shards.size === 1 && shard !== undefined) {
    return relayTo(shard, 'primary', 'the temporary table stands on one shard')
  }
  return unsupported('one statement about temporary and other tables', 'name one table in each')
}

/** Rows that CREATE TABLE AS stores on each shard must be those that one PostgreSQL would store. */
function storedReason(
  statement: Statement,
  facts: DdlFacts,
  world: RoutingWorld,
  names: Names,
): string | undefined {
  if (!facts.storesRows) return undefined
  const read = facts.reads.find(
    (relation) => kindOf(relation, facts, world, names).kind !== 'reference',
  )
  if (read) return `${statement.verb} that reads "${read.name}"`
  const call = statement.functions.find(
    (one) =>
      volatileBuiltins.has(one.name) || (isForeign(one, world) && !isHarmlessForeign(one, world)),
  )
  if (call) return `${statement.verb} with ${call.name}()`
  return statement.usesClock ? `${statement.verb} with now()` : undefined
}

const everywhere = (everywhere: EverywhereProgram): Plan => ({
  how: 'everywhere',
  target: allShards,
  role: 'primary',
  reasons: [
    everywhere.outsideTransaction
      ? 'every shard runs it, one after the other, because it cannot stand in a transaction'
      : 'every shard runs it, in one transaction',
  ],
  everywhere,
})

/** The plan of a statement with `ddl` facts. */
export function planDdl(statement: Statement, world: RoutingWorld, names: Names): Plan {
  const facts = statement.ddl
  if (!facts || facts.isServerWide || statement.effects.temporary) {
    return unsupported(statement.verb, eachShardAdvice)
  }
  const temporary = temporaryPlan(facts, names)
  if (temporary) return temporary
  const kinds = facts.relations.map((relation) => kindOf(relation, facts, world, names))
  const shard = shardOf(kinds)
  if (typeof shard === 'object') return shard
  if (shard !== undefined && facts.reads.length === 0) {
    return relayTo(shard, 'primary', 'the table lives on one shard')
  }
  const reason = storedReason(statement, facts, world, names)
  if (reason !== undefined) {
    return unsupported(reason, 'make the table first, then fill it with INSERT … SELECT')
  }
  const sharded = facts.table && kindOf(facts.table, facts, world, names).kind === 'sharded'
  return everywhere({
    outsideTransaction: facts.outsideTransaction,
    sameCount: false,
    returns: false,
    ...(sharded ? { afterwards: ownSequencesApart(facts.table!) } : {}),
    ...(facts.restartsSequences ? { afterwards: restartedApart } : {}),
  })
}
