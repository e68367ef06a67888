/**
 * MERGE whose target rows meet rows of their own shard only: the source is a table that is joined by the sharding key, a
 * reference table from which nothing is inserted, or rows that are written out, each of which goes to the shard of its key.
 */
import { engineError } from '../../errors/engine-error.js'
import type { Plan } from '../../plan/plan.js'
import type { SplitProgram } from '../../plan/split-program.js'
import {
  allShards,
  listShards,
  type ShardId,
  someShards,
  uniteShards,
} from '../../sharding/shard-set.js'
import type { ShardedTable } from '../../sharding/sharded-table.js'
import type { MergeAction, MergeFacts, WrittenSource } from '../../sql/merge.js'
import type { ColumnUse, Level, Statement } from '../../sql/statement.js'
import { type BoundColumn, bindColumn } from '../columns.js'
import { columnNamed } from '../key-column.js'
import { type Run, shardsOfValue } from '../key-value.js'
import { pinAdvice, refuse, relayTo, unsupported } from '../plans.js'
import { levelsOf, type Places, type Resolved } from '../resolve.js'
import type { RoutingWorld } from '../world.js'
import { cutMergeRows } from './merge-statement-text.js'
import { isClockDefault } from './write-defaults.js'
import { scatterTo, type WriteRoute, withDrawnClock } from './write-text-for-all.js'
import { type Anchor, notTogether, sameRule } from './write-together.js'

type Sharded = Resolved & { place: { kind: 'sharded'; table: ShardedTable } }

interface Merging {
  readonly statement: Statement
  readonly root: Level
  readonly facts: MergeFacts
  readonly target: Sharded
  readonly places: Places
  readonly world: RoutingWorld
}

const isKeyOf = (bound: BoundColumn | undefined, root: Level, key: string): boolean =>
  bound?.level === root && bound.relation === 0 && bound.column === key

/** The columns of the source that ON finds equal to the target's key. */
function partners({ facts, root, target, places }: Merging): ColumnUse[] {
  const key = target.place.table.column
  return facts.joins.flatMap(({ left, right }) => {
    if (isKeyOf(bindColumn(left, root, places), root, key)) return [right]
    return isKeyOf(bindColumn(right, root, places), root, key) ? [left] : []
  })
}

/** What a row that is inserted has as its key. */
function insertedKey(action: MergeAction, target: Sharded): ColumnUse | undefined {
  const names = action.columns ?? target.relation?.columns.map((column) => column.name)
  const value = action.values?.[names?.indexOf(target.place.table.column) ?? -1]
  return value && !('kind' in value) ? value : undefined
}

/** Why an action could leave a row where it does not belong, or differ from shard to shard. */
function actionReason(
  { facts, target }: Merging,
  isKey: (use: ColumnUse) => boolean,
): string | undefined {
  const { column } = target.place.table
  for (const action of facts.actions) {
    if (action.command === 'update' && action.columns?.includes(column)) {
      return `changing the sharding key "${column}" in a MERGE`
    }
    if (action.command !== 'insert') continue
    const key = insertedKey(action, target)
    if (!key || !isKey(key)) return 'MERGE that inserts another sharding key than it joins by'
    const clock = target.relation?.columns.find(
      (one) => action.columns?.includes(one.name) === false && isClockDefault(one) !== undefined,
    )
    if (clock) return `the default of column "${clock.name}" in a MERGE`
  }
  return undefined
}

const isUse = (a: ColumnUse, b: ColumnUse): boolean =>
  a.column === b.column && (a.table === b.table || a.table === undefined || b.table === undefined)

/** Every shard merges what it has. */
function togetherRoute(merging: Merging): WriteRoute | string {
  const { statement, root, facts, target, places, world } = merging
  const source = places.get(root)?.[1]
  if (!source || root.relations.length !== 2 || root.hasDerived) return 'MERGE of this source'
  const { table } = target.place
  const anchor: Anchor = { key: { level: root, relation: 0, column: table.column }, table }
  const inserts = facts.actions.some((action) => action.command === 'insert')
  if (source.place.kind === 'reference' && inserts) {
    return 'MERGE that inserts rows of a reference table'
  }
  const isJoined = partners(merging).some((use) => {
    const bound = bindColumn(use, root, places)
    return (
      bound?.level === root &&
      bound.relation === 1 &&
      source.place.kind === 'sharded' &&
      bound.column === source.place.table.column &&
      sameRule(source.place.table, table)
    )
  })
  if (source.place.kind === 'sharded' && !isJoined)
    return 'MERGE that does not join by the sharding key'
  const reason =
    notTogether(statement, root, anchor, places, world) ??
    actionReason(merging, (use) => {
      const bound = bindColumn(use, root, places)
      return (
        bound?.relation === 1 &&
        source.place.kind === 'sharded' &&
        bound.column === source.place.table.column
      )
    })
  if (reason !== undefined) return reason
  const reasons = ['every shard merges rows of its own, and the counts are added']
  return (run) => scatterTo(statement, root, allShards, run, world, reasons)
}

/** Rows that are written out go to the shards of their keys. */
function writtenRoute(merging: Merging, written: WrittenSource): WriteRoute | string {
  const { statement, root, facts, target, places, world } = merging
  const { table } = target.place
  const own = (use: ColumnUse): number =>
    use.table === undefined || use.table === written.alias
      ? written.columns.indexOf(use.column)
      : -1
  const keys = partners(merging).filter((use) => own(use) >= 0)
  const [key] = keys
  if (!key) return 'MERGE that does not join by the sharding key'
  if (facts.actions.some((action) => action.bySource)) {
    return 'WHEN NOT MATCHED BY SOURCE with rows that are written out'
  }
  const anchor: Anchor = { key: { level: root, relation: 0, column: table.column }, table }
  const reason =
    notTogether(statement, root, anchor, places, world) ??
    actionReason(merging, (use) => isUse(use, key))
  if (reason !== undefined) return reason
  const placer = world.map.placerOf(table, columnNamed(target.relation, table.column)?.typmod)
  const inserts = facts.actions.some((action) => action.command === 'insert')
  const shardOf = (row: readonly unknown[], run: Run): ShardId | undefined => {
    const value = row[own(key)] as Parameters<typeof shardsOfValue>[0] | undefined
    if (!value) return undefined
    const set = shardsOfValue(value, placer, run, inserts ? 'store' : 'compare')
    if (set.kind === 'all') return undefined
    // a key that no row can have
    return set.shards.length === 0 ? 0 : set.shards[0]
  }
  return (run) => {
    const shards = written.rows.map((row) => shardOf(row, run))
    if (shards.includes(undefined)) {
      return unsupported(
        'MERGE of rows whose sharding key is not a literal or parameter',
        pinAdvice,
      )
    }
    return splitRows(merging, written, shards as ShardId[], run)
  }
}

function splitRows(
  { statement, root }: Merging,
  written: WrittenSource,
  owners: readonly ShardId[],
  run: Run,
): Plan {
  const shards = [...new Set(owners)].sort((a, b) => a - b)
  if (shards.length === 1)
    return relayTo(shards[0]!, 'primary', 'the sharding key of all rows names one shard')
  const sql = run.sql.slice(run.start, run.end)
  const program = (text: string): SplitProgram | undefined => {
    const rows = cutMergeRows(text, written.rows.length, written.columns.length, run.standard)
    if (!rows) return undefined
    const parts = shards.map((shard) => ({
      shard,
      sql: rows(owners.flatMap((owner, i) => (owner === shard ? [i] : []))),
    }))
    return { parts, returns: root.returns === true }
  }
  const first = program(sql)
  if (!first) return unsupported('MERGE in this form', pinAdvice)
  const split = statement.usesClock ? timed(sql, first, program, run) : first
  if (!split) return unsupported('now() in RETURNING', 'return the column instead')
  const target = someShards(shards)
  const reasons = ['each row that is merged goes to the shard of its key']
  return { how: 'split', target, role: 'primary', reasons, notOne: reasons[0]!, split }
}

/** The same cut of the text with the time of the transaction written in. */
function timed(
  sql: string,
  { returns }: SplitProgram,
  program: (text: string) => SplitProgram | undefined,
  run: Run,
): SplitProgram | undefined {
  return withDrawnClock(sql, returns, run, (text) => {
    const made = program(text)
    if (!made) throw engineError('INTERNAL', { message: 'a MERGE that cannot be cut again' })
    return made
  })
}

/** A target that stands on one shard with all that is read. */
function onOneShard(root: Level, places: Places, shardCount: number): Plan | undefined {
  let set = someShards([])
  for (const level of levelsOf(root)) {
    for (const { place } of places.get(level) ?? []) {
      if (place.kind === 'unsharded') set = uniteShards(set, someShards([place.shard]))
      else if (place.kind !== 'reference') return undefined
    }
  }
  const [shard, second] = listShards(set, shardCount)
  if (shard === undefined || second !== undefined) return undefined
  return relayTo(shard, 'primary', 'the table lives on one shard')
}

/** Routes of a MERGE; `constraints` refuses what its constraints forbid. */
export function compileMergeWrite(
  statement: Statement,
  root: Level,
  places: Places,
  world: RoutingWorld,
  constraints: (level: Level, target: Sharded) => Plan | undefined,
): WriteRoute {
  const fixed =
    (plan: Plan): WriteRoute =>
    () =>
      plan
  for (const { place } of [...places.values()].flat()) {
    if (place.kind === 'refused') return fixed(place.plan)
  }
  const target = places.get(root)?.[0]
  if (target?.place.kind !== 'sharded') {
    const alone = onOneShard(root, places, world.map.shardCount)
    return fixed(alone ?? unsupported('MERGE', pinAdvice))
  }
  const sharded = target as Sharded
  const refusal = constraints(root, sharded)
  if (refusal) return fixed(refusal)
  const facts = root.merge
  if (!facts) return fixed(refuse(engineError('INTERNAL', { message: 'a MERGE without facts' })))
  const merging = { statement, root, facts, target: sharded, places, world }
  const route = facts.written ? writtenRoute(merging, facts.written) : togetherRoute(merging)
  return typeof route === 'string' ? fixed(unsupported(route, pinAdvice)) : route
}
