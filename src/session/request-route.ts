/** From plans to the one shard and role of a request, within what the open transaction allows. */

import type { ErrorCode } from '../errors/catalogue.js'
import { EngineError, engineError } from '../errors/engine-error.js'
import type { Plan, PlannedStatement } from '../plan/plan.js'
import type { SessionCore } from './session-core.js'

/** A plan that refuses, as the error for the client. */
export function refusal(plan: Plan): EngineError {
  const error = plan.error
  if (!error) return engineError('INTERNAL', { message: 'a plan refuses without a reason' })
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

/** A replica may answer when every statement only reads, and the transaction allows it. */
export function requestRole(
  core: SessionCore,
  statements: readonly PlannedStatement[],
  plans: readonly Plan[] = [],
): 'primary' | 'any' {
  const { transaction } = core
  if (transaction.isExplicit) return transaction.readOnly ? 'any' : 'primary'
  const role = core.routeContext().manual?.role
  if (role !== undefined) return role === 'primary' ? 'primary' : 'any'
  if (plans.some((plan) => plan.role === 'primary')) return 'primary'
  return statements.every((statement) => statement.isRead) ? 'any' : 'primary'
}

/** The only shard of a request. @throws SESSION_SEVERAL_SHARDS_IN_REQUEST, SESSION_SNAPSHOT_SHARDS, SESSION_WRITES_SHARDS */
export function shardOf(core: SessionCore, plans: readonly Plan[]): number {
  let shard: number | undefined
  for (const plan of plans) {
    if (plan.anyShard === true) continue
    const own = plan.target.kind === 'some' ? plan.target.shards[0] : 0
    if (own === undefined) continue // a contradiction: any shard gives the empty answer
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

/** What an open transaction allows on one more shard. @throws SESSION_ABORTED, SESSION_SNAPSHOT_SHARDS, SESSION_WRITES_SHARDS */
export function checkTransaction(core: SessionCore, shard: number, writes: boolean): void {
  const { transaction, held } = core
  if (transaction.phase === 'failed') throw engineError('SESSION_ABORTED')
  if (!transaction.isExplicit) return
  const others = held.all().filter((one) => one.joined && one.shard !== shard)
  if (others.length === 0) return
  if (transaction.needsOneSnapshot && others.some((one) => one.worked || one.wrote)) {
    throw engineError('SESSION_SNAPSHOT_SHARDS')
  }
  const wrote = others.find((one) => one.wrote)
  if (writes && wrote && core.access.crossShardWrites === 'error') {
    throw engineError('SESSION_WRITES_SHARDS', { first: wrote.shard, second: shard })
  }
}
