/** The end of `serve` as its clients see it: no new ones, time for transactions, then a cancel, then the end of the connection. */
import type { Clock } from '../../base/clock.js'
import type { Log } from '../../base/log.js'
import type { ClientRegistry } from './client-registry.js'

export interface DrainParts {
  readonly log: Log
  readonly clock: Clock
  readonly clients: ClientRegistry
  readonly general: {
    readonly shutdownTimeoutMs: number
    readonly shutdownTerminationTimeoutMs: number | undefined
  }
  /** Aborted: whoever is left is cut off at once. */
  readonly cutNow: AbortSignal
}

/** Resolves with true when all went by themselves, false when some had to be cut. */
export async function drainClients(parts: DrainParts): Promise<boolean> {
  const { log, clock, clients, cutNow } = parts
  const { shutdownTimeoutMs, shutdownTerminationTimeoutMs } = parts.general
  for (const { client } of [...clients.all()]) client.end(false)
  if (await clients.emptyWithin(shutdownTimeoutMs, clock, cutNow)) return true
  log.warn('transactions are still open: cancelling them', { clients: clients.size })
  for (const { client } of [...clients.all()]) void client.cancel()
  await clients.emptyWithin(shutdownTerminationTimeoutMs ?? 0, clock, cutNow)
  for (const { client } of [...clients.all()]) client.end(true)
  return false
}
