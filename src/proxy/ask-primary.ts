/** Questions of the proxy itself to the primary of a shard: through the pool, or past it while PAUSE holds it, so that a RELOAD does not wait for RESUME. */
import type { OpenServer } from '../pool/definition.js'
import type { UserPools } from '../pool/user-pools.js'
import type { ServerConnection } from '../server/server-connection.js'

/** A connection of its own to the primary of a shard whose pool is paused; undefined when it is not paused. */
export async function openPastPause(
  pools: UserPools,
  shard: number,
  openServer: OpenServer,
): Promise<ServerConnection | undefined> {
  const hosts = pools.shards[shard] ?? []
  const paused = hosts.find(({ role, pool }) => role === 'primary' && pool.snapshot().isPaused)
  if (!paused) return undefined
  return openServer(paused.host.target, { timeoutMs: paused.definition.connect.timeoutMs })
}

/** Runs `work` on a server of the shard's primary. Rejects as a checkout or an opening does. */
export async function withPrimary<T>(
  pools: UserPools,
  shard: number,
  openServer: OpenServer,
  work: (server: ServerConnection) => Promise<T>,
): Promise<T> {
  const own = await openPastPause(pools, shard, openServer)
  if (own) {
    try {
      return await work(own)
    } finally {
      own.close()
    }
  }
  const checkout = await pools.checkout(shard, 'primary')
  try {
    return await work(checkout.resource)
  } finally {
    checkout.release()
  }
}
