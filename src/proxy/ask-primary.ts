/** Questions of the proxy itself to the primary of a shard: through the pool, or past it while PAUSE holds it, so that a RELOAD does not wait for RESUME. */
import type { OpenServer } from '../pool/definition.js'
import type { UserPools } from '../pool/user-pools.js'
import type { ServerConnection } from '../server/server-connection.js'

/** Runs `work` on a server of the shard's primary. Rejects as a checkout or an opening does. */
export async function withPrimary<T>(
  pools: UserPools,
  shard: number,
  openServer: OpenServer,
  work: (server: ServerConnection) => Promise<T>,
): Promise<T> {
  const hosts = pools.shards[shard] ?? []
  const paused = hosts.find(({ role, pool }) => role === 'primary' && pool.snapshot().isPaused)
  if (!paused) {
    const checkout = await pools.checkout(shard, 'primary')
    try {
      return await work(checkout.resource)
    } finally {
      checkout.release()
    }
  }
  const { timeoutMs } = paused.definition.connect
  const server = await openServer(paused.host.target, { timeoutMs })
  try {
    return await work(server)
  } finally {
    server.close()
  }
}
