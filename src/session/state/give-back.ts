/** A server goes back to its pool clean, or not at all. */
import type { ServerCheckout } from '../../pool/shard-pools.js'
import type { ServerConnection } from '../../server/server-connection.js'
import { Settings } from '../../server/settings.js'

/** hard-parts §2: a tainted server is made clean by a statement of its own before anyone else gets it. */
export async function giveBack(held: {
  readonly server: ServerConnection
  readonly checkout: ServerCheckout
}): Promise<void> {
  const { server, checkout } = held
  if (!server.isIdle) return checkout.discard('not idle at check-in')
  if (!server.tainted) return checkout.release()
  try {
    await cleanServer(server)
    checkout.release()
  } catch {
    checkout.discard('could not be cleaned')
  }
}

/** DISCARD ALL, and the books with it. */
export async function cleanServer(server: ServerConnection): Promise<void> {
  await server.query('DISCARD ALL')
  server.traffic.cleaned++
  server.forgetStatements()
  server.settings = Settings.none
  server.unnamed = undefined
  server.tainted = false
}
