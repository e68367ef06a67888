/**
 * Whether a statement over several shards is answered by putting the shards' answers behind each other: one query level,
 * nothing that compares rows of different shards, every sharded table joined by its key.
 */
import type { ShardedTable } from '../sharding/sharded-table.js'
import { volatileBuiltins } from '../sql/builtin-functions.js'
import { harmlessVolatiles, isBuiltin } from '../sql/describe-statement.js'
import type { Level, Statement } from '../sql/statement.js'
import { sameColumn } from './columns.js'
import { foreignOperator, isForeign } from './effects.js'
import { keyClass } from './pins.js'
import type { Places, Resolved } from './resolve.js'
import type { RoutingWorld } from './world.js'

/** Functions whose answer tells which server gave it. */
const serverFunctions = new Set(
  'pg_backend_pid inet_server_addr inet_server_port inet_client_addr inet_client_port txid_current txid_current_if_assigned txid_current_snapshot pg_current_xact_id pg_current_xact_id_if_assigned pg_current_snapshot pg_postmaster_start_time pg_conf_load_time current_query pg_is_in_recovery pg_relation_size pg_total_relation_size pg_table_size pg_indexes_size pg_database_size version current_database current_catalog'.split(
    ' ',
  ),
)

const sameRule = (a: ShardedTable, b: ShardedTable): boolean =>
  a === b ||
  (a.keyType === b.keyType && JSON.stringify(a.placement) === JSON.stringify(b.placement))

function badFunction(statement: Statement, world: RoutingWorld): string | undefined {
  const bad = statement.functions.find(
    (call) =>
      !isBuiltin(call) ||
      isForeign(call, world) ||
      serverFunctions.has(call.name) ||
      (volatileBuiltins.has(call.name) && !harmlessVolatiles.has(call.name)),
  )
  if (bad) return `function ${bad.name}()`
  const operator = foreignOperator(statement, world)
  return operator && `operator ${operator.name}`
}

/** Clauses that need rows of several shards in one place, but rows that are each of one shard: they may be merged. */
const mergedClauses = new Set([
  'DISTINCT',
  'GROUP BY',
  'HAVING',
  'ORDER BY',
  'LIMIT or OFFSET',
  'a window function',
  'an aggregate',
])

/** Everything but the joins and the clauses that are merged. */
function shapeReason(statement: Statement, root: Level, world: RoutingWorld): string | undefined {
  if (root.kind !== 'select') return root.kind === 'setop' ? root.notPlain : `${statement.verb}`
  if (root.notPlain !== undefined && !mergedClauses.has(root.notPlain)) return root.notPlain
  if (statement.kind !== 'select' && statement.kind !== 'copy') return statement.verb
  if (root.children.length > 0 || root.hasDerived) return 'a subquery'
  if (root.hasFullJoin) return 'a FULL JOIN'
  if (statement.locks) return 'a locking clause'
  if (statement.usesClock) return 'now() or CURRENT_TIMESTAMP'
  if (statement.systemColumn !== undefined) return `system column ${statement.systemColumn}`
  return badFunction(statement, world)
}

/** An outer join that fills up reference rows with NULLs would do so on every shard. */
function outerJoinReason(root: Level, resolved: readonly Resolved[]): string | undefined {
  const isSharded = (index: number): boolean => resolved[index]!.place.kind === 'sharded'
  const bad = root.outerJoins.some(
    (join) => join.nullable.some(isSharded) && !join.preserved.some(isSharded),
  )
  return bad ? 'an outer join of a reference table with a sharded one' : undefined
}

function joinReason(
  root: Level,
  resolved: readonly Resolved[],
  places: Places,
): string | undefined {
  const keyOf = (relation: number) => {
    const { place } = resolved[relation]!
    return place.kind === 'sharded'
      ? { level: root, relation, column: place.table.column }
      : undefined
  }
  const sharded = resolved.flatMap((one, index) => (one.place.kind === 'sharded' ? [index] : []))
  const first = sharded.find((index) => !resolved[index]!.use.nullable)
  if (first === undefined) return 'an outer join'
  const key = keyOf(first)!
  const table = (resolved[first]!.place as { table: ShardedTable }).table
  for (const index of sharded) {
    if (index === first) continue
    const own = (resolved[index]!.place as { table: ShardedTable }).table
    const equal = keyClass(keyOf(index)!, places).members.some((one) => sameColumn(one, key))
    if (!equal || !sameRule(own, table)) return 'a join that is not on the sharding keys'
  }
  return undefined
}

/** Why a row of the answer may need rows of several shards (clauses that are merged aside); undefined when none does. */
export function notApart(
  statement: Statement,
  root: Level,
  places: Places,
  world: RoutingWorld,
): string | undefined {
  const resolved = places.get(root) ?? []
  if (resolved.some(({ place }) => place.kind !== 'sharded' && place.kind !== 'reference')) {
    return 'a join with a table that is not on every shard'
  }
  return (
    shapeReason(statement, root, world) ??
    outerJoinReason(root, resolved) ??
    joinReason(root, resolved, places)
  )
}
