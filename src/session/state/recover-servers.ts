/** What becomes of the servers of a client that has gone: cancelled, rolled back, cleaned and given back, or dropped. */

import { deferred } from '../../base/deferred.js'
import type { ServerConnection } from '../../server/server-connection.js'
import type { SessionCore } from '../session-core.js'
import { cleanServer } from './give-back.js'
import type { HeldServer } from './held-servers.js'

/** Never rejects because of a server; each is recovered by itself within `rollback_timeout`. */
export async function recoverServers(core: SessionCore): Promise<void> {
  core.listening?.close()
  core.held.stopWaiting()
  core.script = undefined
  const pinned = core.held.pins.size > 0
  const lateOnes = core.held.close()
  await endOfCommit(core)
  await Promise.all(
    [...core.held.all(), ...(await lateOnes)].map((held) => recover(core, held, pinned)),
  )
}

/** A commit over servers that is under way goes on: cut off, it would leave prepared transactions to the sweep. */
async function endOfCommit(core: SessionCore): Promise<void> {
  const { ending } = core.held
  if (!ending) return
  const late = deferred<void>()
  const timer = core.environment.clock.after(core.access.limits.rollbackTimeoutMs, late.resolve)
  await Promise.race([
    ending.done.then(
      () => late.resolve(),
      () => late.resolve(),
    ),
    late.promise,
  ])
  timer.cancel()
}

async function recover(core: SessionCore, held: HeldServer, pinned: boolean): Promise<void> {
  const { server } = held
  const { connectionRecovery, limits } = core.access
  core.held.forget(held)
  const isBusy = server.outstanding > 0 || server.status !== 0x49
  if (server.closed || (isBusy && connectionRecovery === 'drop')) {
    return abandon(held, 'client vanished')
  }
  if (server.isUnsynced) {
    // a Sync would commit what the client has not; without one only the end of the connection rolls back
    await server.cancel().catch(() => undefined)
    return held.checkout.discard('client vanished before its Sync')
  }
  const timer = core.environment.clock.after(limits.rollbackTimeoutMs, () => server.destroy())
  try {
    if (server.outstanding > 0) await settle(held, connectionRecovery)
    if (server.status !== 0x49) await rollBack(server)
    // what ran to its end unheard may have set, listened or locked anything
    if (pinned || isBusy || server.tainted) await cleanServer(server)
    else
      server.settings = core.transaction.isExplicit
        ? core.transaction.base
        : core.transaction.settings
    held.checkout.release()
  } catch {
    abandon(held, 'client vanished and the server could not be recovered')
  } finally {
    timer.cancel()
  }
}

async function rollBack(server: ServerConnection): Promise<void> {
  await server.query('ROLLBACK')
  server.traffic.rollbacks++
}

/** A server does not look at its connection while it works: without a cancel it would go on, and keep its locks. */
function abandon(held: HeldServer, why: string): void {
  const { server } = held
  if (server.outstanding > 0 && !server.closed) server.cancel().catch(() => undefined)
  held.checkout.discard(why)
}

/** Stops what runs for the client and reads its replies to the end. */
async function settle(
  held: HeldServer,
  recovery: 'recover' | 'rollback_only' | 'drop',
): Promise<void> {
  const { server } = held
  if (recovery !== 'recover') throw new Error('not recovered by configuration')
  // together: a server that is lost before the cancel is through must not reject unheard
  await Promise.all([server.drain(), server.cancel()])
  server.traffic.resynced++
}
