/**
 * At REPEATABLE READ and above a transaction sees one moment. Over shards it sees one moment of each, as close together
 * as can be: its first statement opens it on all of them, and each takes its snapshot then (hard-parts §3.2).
 */
import { toEngineError } from '../../errors/engine-error.js'
import type { SessionCore } from '../session-core.js'
import { orFail } from './or-fail.js'

/** Runs `then` once every shard has its snapshot: at once when none is needed. Errors end the request. */
export function withSnapshots(core: SessionCore, role: 'primary' | 'any', then: () => void): void {
  const { transaction, access } = core
  const isOne = transaction.needsOneSnapshot && !staysOnOneShard(core)
  if (!core.isSharded || !isOne || transaction.hasSnapshots || transaction.phase === 'failed') {
    return then()
  }
  const shards = Array.from({ length: access.planner.shardCount }, (_, shard) => shard)
  openAll(core, shards, role).then(
    () => {
      transaction.hasSnapshots = true
      orFail(core, then)
    },
    (error) => core.fail(core.cancelled && core.timedOut ? core.timedOut : toEngineError(error)),
  )
}

/** SERIALIZABLE is a promise that shards cannot keep together. */
export function staysOnOneShard({ transaction, access }: SessionCore): boolean {
  return transaction.level === 'serializable' && access.crossShardSerializable === 'error'
}

async function openAll(
  core: SessionCore,
  shards: readonly number[],
  role: 'primary' | 'any',
): Promise<void> {
  const helds = await core.held.acquireAll(shards, role)
  await Promise.all(
    helds.map(async (held) => {
      await core.held.joinNow(held, core.transaction, 'SELECT 1')
      held.worked = true
    }),
  )
}
