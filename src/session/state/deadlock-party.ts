/** A client's transaction on several servers, as the search for deadlocks over shards sees it. */
import { engineError } from '../../errors/engine-error.js'
import type { DeadlockParty } from '../../executor/deadlock-graph.js'
import type { SessionCore } from '../session-core.js'

export function deadlockParty(core: SessionCore): DeadlockParty {
  return {
    get order() {
      return core.held.order
    },
    get servers() {
      return core.held
        .all()
        .filter((held) => held.joined)
        .map(({ shard, server }) => ({ shard, pid: server.processId }))
    },
    get waitsSinceMs() {
      return core.held.size > 0 ? core.running?.startedMs : undefined
    },
    get waitsForPool() {
      return core.held.size > 0 ? core.held.wantedShard : undefined
    },
    get decision() {
      return core.held.ending?.decision
    },
    owner: core.held.owner,
    giveWay: () => giveWay(core),
  }
}

const nothing = (): void => undefined

/**
 * One PostgreSQL lets all locks of the victim go at once. Here the servers that do not work for it are rolled back, unless
 * there is a savepoint that the client may go back to: its other locks are the client's to release then, as it likes.
 */
function giveWay(core: SessionCore): void {
  const { held, transaction } = core
  core.timedOut = engineError('SESSION_DEADLOCK_SHARDS')
  core.cancelled = true
  if (held.isWaiting) held.stopWaiting()
  else held.cancel()
  if (!transaction.isExplicit || transaction.hasSavepoints || held.ending !== undefined) return
  const idle = held.all().filter((one) => one.joined && one.server.outstanding === 0)
  // even if the statement has just got its lock: what it did elsewhere is undone
  transaction.fail()
  for (const one of idle) {
    one.joined = false
    one.worked = false
    one.wrote = false
    one.server.settings = transaction.base
    // a server that could not do it is not idle, and will not be given back
    held.keepUntil(one.server.query('ROLLBACK').then(nothing, nothing))
  }
}
