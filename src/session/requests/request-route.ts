/** From plans to the one shard and role of a request, within what the open transaction allows. */

import type { ErrorCode } from '../../errors/catalogue.js'
import { EngineError, engineError } from '../../errors/engine-error.js'
import type { Plan, PlannedStatement } from '../../plan/plan.js'
import type { SessionCore } from '../session-core.js'
import { shardOfPortal } from '../state/cursors.js'
import { staysOnOneShard } from '../state/one-snapshot.js'

/** A plan that refuses, as the error for the client. */
export function refusal(plan: Plan, core: SessionCore): EngineError {
  const error = plan.error
  if (!error) return engineError('INTERNAL', { message: 'a plan refuses without a reason' })
  // what the open transaction has made stands in no catalog that others read, too
  if (error.code === 'ROUTE_RELATION_UNKNOWN' && core.transaction.changedSchema) {
    return engineError('ROUTE_RELATION_UNCOMMITTED', { reason: error.message })
  }
  return new EngineError(
    error.code as ErrorCode,
    error.message,
    { sqlstate: error.sqlstate, message: error.message },
    error.hint === undefined ? {} : { hint: error.hint },
  )
}

/**
 * Texts are hashed as UTF-8. Under another client_encoding the bytes of a key mean other characters, so a request with
 * bytes outside ASCII cannot be routed. @throws SESSION_ENCODING
 */
export function checkEncoding(core: SessionCore, bytes: Buffer): void {
  const encoding = core.told.get('client_encoding') ?? 'UTF8'
  if (encoding === 'UTF8' || encoding === 'SQL_ASCII') return
  if (bytes.some((byte) => byte > 0x7f)) throw engineError('SESSION_ENCODING', { encoding })
}

/**
 * Statements are read as with standard_conforming_strings = on. Where it is off, a backslash in a string means something
 * else. @throws SESSION_STRINGS
 */
export function checkStrings(core: SessionCore, text: Buffer): void {
  if (core.told.get('standard_conforming_strings') !== 'off') return
  if (text.includes(0x5c)) throw engineError('SESSION_STRINGS')
}

const namingSettings = new Set([
  'search_path',
  'standard_conforming_strings',
  'client_encoding',
  'role',
  'session_authorization',
  'shard',
  'sharding_key',
])

/** Whether statements behind this one in a request mean something else than they were planned for. */
const changesMeaning = ({ effects }: PlannedStatement): boolean =>
  effects.discard === 'all' ||
  effects.discard === 'temp' ||
  (effects.temporary ?? []).length > 0 ||
  (effects.settings ?? []).some(
    (setting) =>
      setting.kind === 'reset_all' ||
      ('name' in setting && namingSettings.has(setting.name.replace(/^(?:pgshard|pgdog)\./, ''))),
  )

/** A request is planned before it runs: false when a SET in it changes what the rest means. */
export function keepMeanings(
  statements: readonly PlannedStatement[],
  isNeutral: (statement: PlannedStatement) => boolean,
): boolean {
  const first = statements.findIndex(changesMeaning)
  return first < 0 || statements.slice(first + 1).every(isNeutral)
}

/** A replica may answer when every statement only reads, and the transaction allows it. */
export function requestRole(
  core: SessionCore,
  statements: readonly PlannedStatement[],
  plans: readonly Plan[] = [],
): 'primary' | 'any' {
  const { transaction } = core
  if (transaction.isExplicit) {
    if (transaction.readOnly) return 'any'
    const isAggressive = core.access.pools.readWriteStrategy === 'aggressive'
    if (!isAggressive || !transaction.mayBeginOnReplica) return 'primary'
  }
  const hinted = statements.find((statement) => statement.hintedRole !== undefined)?.hintedRole
  const role = hinted ?? core.routeContext().manual?.role
  if (role !== undefined) return role === 'primary' ? 'primary' : 'any'
  if (plans.some((plan) => plan.role === 'primary')) return 'primary'
  return statements.every((statement) => statement.isRead) ? 'any' : 'primary'
}

/** The transaction needs one snapshot from here on, so that all shards must take theirs. */
function setsLevel({ transaction }: SessionCore, { effects }: PlannedStatement): boolean {
  const { transaction: shape, settings = [] } = effects
  if (shape?.kind === 'begin') return transaction.levelOf(shape.isolation) !== 'statement'
  return settings.some(
    (one) =>
      (one.kind === 'transaction' && one.isolation !== undefined) ||
      ('name' in one && /^(?:default_)?transaction_isolation$/i.test(one.name)),
  )
}

/** True when one shard can run all of them, and no other takes part in what they begin, end or set. */
export function areForOneShard(
  core: SessionCore,
  statements: readonly PlannedStatement[],
  plans: readonly Plan[],
): boolean {
  const { held } = core
  const shapes = statements.some(({ effects }) => effects.transaction || effects.settings)
  if (shapes && (held.size > 1 || statements.some((one) => setsLevel(core, one)))) return false
  let shard = shapes ? held.first?.shard : undefined
  for (const { anyShard, target } of plans) {
    const own = target.kind === 'some' ? target.shards[0] : 0
    if (anyShard === true || own === undefined) continue
    if (shard !== undefined && shard !== own) return false
    shard = own
  }
  return true
}

/** Routing chose a way that nobody here knows. */
export const wayMissing = ({ how }: Plan): EngineError =>
  engineError('INTERNAL', { message: `no way to run a plan of kind ${how}` })

/** The only shard of a request. @throws SESSION_SEVERAL_SHARDS_IN_REQUEST, SESSION_SNAPSHOT_SHARDS, SESSION_WRITES_SHARDS */
export function shardOf(core: SessionCore, plans: readonly Plan[]): number {
  let shard: number | undefined
  for (const plan of plans) {
    if (plan.anyShard === true) continue
    const own = plan.target.kind === 'some' ? plan.target.shards[0] : 0
    if (own === undefined) continue // a contradiction: any shard gives the empty answer
    checkOpenKeys(core)
    if (shard !== undefined && shard !== own) {
      throw engineError('SESSION_SEVERAL_SHARDS_IN_REQUEST')
    }
    shard = own
  }
  const chosen = shard ?? core.held.first?.shard ?? core.nextShard()
  checkTransaction(
    core,
    chosen,
    plans.some((plan) => plan.role === 'primary'),
  )
  return chosen
}

/** It is ours for messages up to a Sync: a string of statements makes a transaction block, these do not. */
export const isOfPipeline = ({ transaction, running }: SessionCore): boolean =>
  transaction.isOurs && running?.protocol === 'extended'

/** What a shard would say that had the cursors of all. @throws SESSION_CURSOR_EXISTS, SESSION_ONLY_IN_BLOCK */
export function checkCursors(
  core: SessionCore,
  statements: readonly PlannedStatement[],
  shard: number,
): void {
  for (const { effects } of statements) {
    const { cursor } = effects
    if (cursor?.verb !== 'declare') continue
    if (!cursor.holds && isOfPipeline(core))
      throw engineError('SESSION_ONLY_IN_BLOCK', { what: 'DECLARE CURSOR' })
    const name = cursor.name ?? ''
    const present = shardOfPortal(core, name)
    if (present !== undefined && present !== shard)
      throw engineError('SESSION_CURSOR_EXISTS', { name })
  }
}

/** Rows are placed by the columns that tables and views had before the open transaction. @throws ROUTE_KEYS_UNCOMMITTED */
export function checkOpenKeys({ transaction, isSharded }: SessionCore): void {
  if (isSharded && transaction.changedKeys) throw engineError('ROUTE_KEYS_UNCOMMITTED')
}

/** What a statement for several shards at once may do. @throws as `checkTransaction` */
export function checkShards(core: SessionCore, shards: readonly number[], writes: boolean): void {
  // reads are planned by a catalog that knows nothing of the open transaction
  if (!writes && core.transaction.changedMeanings) throw engineError('ROUTE_SCHEMA_UNCOMMITTED')
  for (const shard of shards) checkTransaction(core, shard, writes)
  const [first, second] = shards
  if (second !== undefined && core.transaction.isExplicit && staysOnOneShard(core)) {
    throw engineError('SESSION_SNAPSHOT_SHARDS')
  }
  if (first === undefined || second === undefined) return
  checkHabits(core)
  if (!writes) return
  if (core.access.crossShardWrites === 'error') {
    throw engineError('SESSION_WRITES_SHARDS', { first, second })
  }
}

/** Shards that would read, order or write values each in its own way. @throws SESSION_SHARDS_DIFFER */
function checkHabits(core: SessionCore): void {
  const { values } = core.transaction.effective
  const found = core.access.shardDifferences?.().find(({ name }) => !values.has(name.toLowerCase()))
  if (!found) return
  const { name, shard, value, home } = found
  const hint = `SET ${name} in the session, or make it the same on all shards`
  const isSetting = !name.includes(' ')
  throw engineError(
    'SESSION_SHARDS_DIFFER',
    { name, shard, value, home },
    isSetting ? { hint } : {},
  )
}

/** What an open transaction allows on one more shard. @throws SESSION_ABORTED, SESSION_SNAPSHOT_SHARDS, SESSION_WRITES_SHARDS */
export function checkTransaction(core: SessionCore, shard: number, writes: boolean): void {
  const { transaction, held } = core
  if (transaction.phase === 'failed') throw engineError('SESSION_ABORTED')
  if (!transaction.isExplicit) return
  const others = held.all().filter((one) => one.joined && one.shard !== shard)
  if (others.length === 0) return
  if (staysOnOneShard(core) && others.some((one) => one.worked || one.wrote)) {
    throw engineError('SESSION_SNAPSHOT_SHARDS')
  }
  const wrote = others.find((one) => one.wrote)
  if (writes && wrote && core.access.crossShardWrites === 'error') {
    throw engineError('SESSION_WRITES_SHARDS', { first: wrote.shard, second: shard })
  }
}
