/** A client's transaction on several servers, as the search for deadlocks over shards sees it. */
import { engineError } from '../../errors/engine-error.js'
import type { DeadlockParty } from '../../executor/deadlock-graph.js'
import { TX_OPEN } from '../../wire/tags.js'
import type { SessionCore } from '../session-core.js'

export function deadlockParty(core: SessionCore): DeadlockParty {
  return {
    get order() {
      return core.held.order
    },
    get servers() {
      return core.held
        .all()
        .filter((held) => held.joined || held.shard < 0)
        .map(({ shard, server: { processId: pid } }) =>
          shard < 0 ? { shard: -1 - shard, pid, isApart: true } : { shard, pid },
        )
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
 * One PostgreSQL lets all locks of the victim go at once. Here the servers that do not work for it are rolled back as soon
 * as its statement has failed, unless there is a savepoint that the client may go back to: its other locks are the
 * client's to release then, as it likes. A statement that got its lock just before it could be stopped goes on.
 */
function giveWay(core: SessionCore): void {
  const { held, running } = core
  core.timedOut = engineError('SESSION_DEADLOCK_SHARDS')
  core.cancelled = true
  // not at once: whoever read the reply still gives the servers their receivers back
  if (running) running.whenEnded = () => setImmediate(() => letGo(core))
  if (held.isWaiting) held.stopWaiting()
  else held.cancel()
}

function letGo({ held, transaction, running }: SessionCore): void {
  // the client has gone on by itself: its ROLLBACK is under way, and has the servers' ear
  if (running || transaction.phase !== 'failed' || transaction.hasSavepoints) return
  // no server knows of it any more
  transaction.fail()
  for (const one of held.all()) {
    // one whose statement failed has let go by itself
    if (!one.joined || one.server.outstanding > 0 || one.server.status !== TX_OPEN) continue
    one.joined = false
    one.worked = false
    one.wrote = false
    one.server.settings = transaction.base
    // a server that could not do it is not idle, and will not be given back
    held.keepUntil(one.server.query('ROLLBACK').then(nothing, nothing))
  }
}
