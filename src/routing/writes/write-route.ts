/** Ways of a write that one shard cannot do alone: cut by row, run by every shard for its own rows, or the same everywhere. */
import { engineError } from '../../errors/engine-error.js'
import type { Plan } from '../../plan/plan.js'
import { allShards, listShards } from '../../sharding/shard-set.js'
import type { ShardedTable } from '../../sharding/sharded-table.js'
import { volatileBuiltins } from '../../sql/builtin-functions.js'
import { isBuiltin } from '../../sql/describe-statement.js'
import type { Level, Statement } from '../../sql/statement.js'
import { isUniqueId } from '../effects.js'
import { columnNamed } from '../key-column.js'
import { compilePin, keyClass } from '../pins.js'
import { pinAdvice, refuse, unsupported } from '../plans.js'
import type { Places, Resolved } from '../resolve.js'
import type { RoutingWorld } from '../world.js'
import { compileMove } from './move-route.js'
import { compileSelectInsert } from './select-insert.js'
import { isClockDefault, isDrawnDefault } from './write-defaults.js'
import { compileSplitInsert } from './write-insert.js'
import { compileSelectedInsert } from './write-select.js'
import { isPlan, scatterTo, textForAll, type WriteRoute } from './write-text-for-all.js'
import { type Anchor, notTogether } from './write-together.js'

type Sharded = Resolved & { place: { kind: 'sharded'; table: ShardedTable } }

const refusal =
  (plan: Plan): WriteRoute =>
  () =>
    plan

/** UPDATE and DELETE of rows on several shards. */
function compileScattered(
  statement: Statement,
  root: Level,
  target: Sharded,
  places: Places,
  world: RoutingWorld,
): WriteRoute {
  const { table } = target.place
  const key = { level: root, relation: 0, column: table.column }
  const anchor: Anchor = { key, table }
  const reason = notTogether(statement, root, anchor, places, world)
  if (reason !== undefined)
    return refusal(unsupported(`${reason} in ${article(statement.verb)}`, pinAdvice))
  const shardsOf = compilePin(keyClass(key, places), world.map.placerOf(table), places)
  const moves = compileMove(statement, root, target, world, shardsOf)
  if (moves) return moves
  const reasons = ['every shard changes its own rows, and the counts are added']
  return (run) => scatterTo(statement, root, shardsOf(run), run, world, reasons)
}

const article = (verb: string): string => `${/^[AEIOU]/.test(verb) ? 'an' : 'a'} ${verb}`

const unsteadyBuiltin = (statement: Statement): string | undefined =>
  statement.functions.find(
    (call) => isUniqueId(call) || (isBuiltin(call) && volatileBuiltins.has(call.name)),
  )?.name

/** Columns of a reference table that would get another value on each shard. */
function unsteadyColumn(level: Level, target: Resolved): string | undefined {
  const columns = target.relation?.columns ?? []
  if (level.kind === 'update') {
    const assigned = level.assigned?.filter((one) => !one.value && !one.from) ?? []
    return assigned
      .map((one) => columnNamed(target.relation, one.column))
      .find((column) => column && isDrawnDefault(column))?.name
  }
  if (level.kind === 'merge') return unsteadyMerge(level, target)
  if (level.kind !== 'insert' || level.insert?.rows) return undefined
  const named = level.insert?.columns
  return columns.find(
    (column) =>
      named !== undefined &&
      !named.includes(column.name) &&
      (isDrawnDefault(column) || isClockDefault(column) !== undefined),
  )?.name
}

/** Columns that a MERGE leaves to their defaults. */
function unsteadyMerge({ merge }: Level, target: Resolved): string | undefined {
  const inserted = merge?.actions.filter((action) => action.command === 'insert') ?? []
  return target.relation?.columns.find(
    (column) =>
      (isDrawnDefault(column) || isClockDefault(column) !== undefined) &&
      inserted.some(
        ({ columns, values }) =>
          !values || (columns !== undefined && !columns.includes(column.name)),
      ),
  )?.name
}

/** A write of a reference table: the same on every shard, and so only what gives the same on every shard. */
export function compileReferenceWrite(
  statement: Statement,
  root: Level,
  target: Resolved,
  places: Places,
  world: RoutingWorld,
): WriteRoute {
  const table = target.use.name
  const refused = (what: string) =>
    refusal(refuse(engineError('ROUTE_REFERENCE_UNSTEADY', { table, what })))
  if (root.relations[0] !== target.use) return refused('a data-changing WITH')
  const rows = compileSplitInsert(statement, root, target, places, world)
  const volatile = unsteadyBuiltin(statement)
  if (volatile !== undefined) return refused(`function ${volatile}()`)
  const reason = notTogether(statement, root, undefined, places, world)
  if (reason !== undefined) return refused(reason)
  const unsteady = unsteadyColumn(root, target)
  if (unsteady !== undefined) return refused(`the default of column "${unsteady}"`)
  const returns = root.returns === true
  const shards = listShards(allShards, world.map.shardCount)
  return (run) => {
    const made = rows ? rows(run) : textForAll(statement, run, shards, returns)
    if (isPlan(made) && !made.split) return made
    const split = isPlan(made) ? made.split! : made
    return {
      how: 'everywhere',
      target: allShards,
      role: 'primary',
      reasons: ['a reference table is written on every shard'],
      notOne: 'a reference table is written on every shard',
      everywhere: { outsideTransaction: false, sameCount: true, returns, split },
    }
  }
}

/** How a write of a sharded table is done when no one shard can do it alone; undefined: it is no such write. */
export function compileWrite(
  statement: Statement,
  root: Level,
  places: Places,
  world: RoutingWorld,
): WriteRoute | undefined {
  const kinds = ['insert', 'update', 'delete']
  if (!kinds.includes(root.kind) || statement.kind !== root.kind) return undefined
  const target = places.get(root)?.[0]
  if (!target?.use.isTarget) return undefined
  if (target.place.kind === 'unsharded' && root.insert?.source) {
    return compileSelectInsert(statement, root, target, places, world)
  }
  if (target.place.kind !== 'sharded') return undefined
  const sharded = target as Sharded
  if (root.kind !== 'insert') return compileScattered(statement, root, sharded, places, world)
  if (root.insert?.rows) return compileRows(statement, root, sharded, places, world)
  return compileSelectedInsert(statement, root, sharded, places, world)
}

function compileRows(
  statement: Statement,
  root: Level,
  target: Sharded,
  places: Places,
  world: RoutingWorld,
): WriteRoute {
  const table = target.use.name
  for (const [level, resolved] of places) {
    const apart = resolved.find(({ place, use }) => place.kind !== 'reference' && !use.isTarget)
    if (apart || (level !== root && ['insert', 'update', 'delete', 'merge'].includes(level.kind))) {
      return compileSelectInsert(statement, root, target, places, world)
    }
  }
  return (
    compileSplitInsert(statement, root, target, places, world) ??
    refusal(refuse(engineError('ROUTE_INSERT_SPLIT', { table })))
  )
}
