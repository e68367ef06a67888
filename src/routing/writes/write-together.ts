/**
 * Whether every shard may run a write by itself: all that it reads beside its target stands on every shard, or is joined to
 * the target by the sharding key, so that the rows which matter to a row of the target are on that row's shard.
 */
import type { ShardedTable } from '../../sharding/sharded-table.js'
import { volatileBuiltins } from '../../sql/builtin-functions.js'
import { harmlessVolatiles, isBuiltin } from '../../sql/describe-statement.js'
import type { Level, Statement } from '../../sql/statement.js'
import { type BoundColumn, sameColumn } from '../columns.js'
import { foreignOperator, isForeign, isHarmlessForeign } from '../effects.js'
import { keyClass } from '../pins.js'
import type { Places } from '../resolve.js'
import type { RoutingWorld } from '../world.js'

export const sameRule = (a: ShardedTable, b: ShardedTable): boolean =>
  a === b ||
  (a.keyType === b.keyType && JSON.stringify(a.placement) === JSON.stringify(b.placement))

/** A row of the target draws its own value, on whatever shard. */
const drawing = new Set(['nextval', 'unique_id'])

/** A function or operator that would answer otherwise on another shard. */
export function unsteadyCall(statement: Statement, world: RoutingWorld): string | undefined {
  const bad = statement.functions.find((call) => {
    if (drawing.has(call.name) || isHarmlessForeign(call, world)) return false
    if (!isBuiltin(call) || isForeign(call, world)) return !world.cleanFunctions.has(call.name)
    return volatileBuiltins.has(call.name) && !harmlessVolatiles.has(call.name)
  })
  if (bad) return `function ${bad.name}()`
  const operator = foreignOperator(statement, world)
  return operator && `operator ${operator.name}`
}

/** The key of the table that is written, and the rule by which its rows are placed. */
export interface Anchor {
  readonly key: BoundColumn
  readonly table: ShardedTable
}

const writing = new Set(['insert', 'update', 'delete', 'merge'])

function relationReason(
  level: Level,
  index: number,
  anchor: Anchor | undefined,
  places: Places,
): string | undefined {
  const { place, use } = places.get(level)![index]!
  if (place.kind === 'reference') return undefined
  if (place.kind !== 'sharded') return `table "${use.name}", which is not on every shard,`
  if (!anchor) return `sharded table "${use.name}"`
  const own = { level, relation: index, column: place.table.column }
  const joined = keyClass(own, places).members.some((one) => sameColumn(one, anchor.key))
  if (joined && sameRule(place.table, anchor.table)) return undefined
  return `table "${use.name}", which is not joined by the sharding key,`
}

const chosen = new Set(['LIMIT or OFFSET', 'TABLESAMPLE', 'ORDER BY'])

/** What only one server with all rows could choose. */
function choiceReason(level: Level, places: Places): string | undefined {
  if (level.hasFullJoin) return 'a FULL JOIN'
  const isLocal = places.get(level)!.some(({ place }) => place.kind === 'sharded')
  if (isLocal) return undefined
  // ORDER BY may have a LIMIT behind it, whose ties each shard would break in its own way.
  return chosen.has(level.notPlain ?? '') ? level.notPlain : undefined
}

function levelReason(
  level: Level,
  isRoot: boolean,
  anchor: Anchor | undefined,
  places: Places,
): string | undefined {
  if (!isRoot && writing.has(level.kind)) return 'a data-changing WITH'
  const choice = choiceReason(level, places)
  if (choice !== undefined) return choice
  for (let index = 0; index < level.relations.length; index++) {
    if (isRoot && level.relations[index]!.isTarget) continue
    const reason = relationReason(level, index, anchor, places)
    if (reason !== undefined) return reason
  }
  for (const child of level.children) {
    const reason = levelReason(child, false, anchor, places)
    if (reason !== undefined) return reason
  }
  return undefined
}

/** Why not; undefined when every shard can. `anchor` absent: the target is a reference table. */
export function notTogether(
  statement: Statement,
  root: Level,
  anchor: Anchor | undefined,
  places: Places,
  world: RoutingWorld,
): string | undefined {
  if (statement.systemColumn !== undefined) return `system column ${statement.systemColumn}`
  if (statement.locks) return 'a locking clause'
  return unsteadyCall(statement, world) ?? levelReason(root, true, anchor, places)
}
