/** Questions of the proxy itself to the primary of a shard: through the pool, or past it while PAUSE holds it, so that a RELOAD does not wait for RESUME. */
import { engineError } from '../../errors/engine-error.js'
import type { OpenServer } from '../../pool/definition.js'
import type { UserPools } from '../../pool/user-pools.js'
import type { ServerConnection } from '../../server/server-connection.js'
import { Settings, settingsDifference } from '../../server/settings.js'

/** PAUSE holds the pool of the shard's primary. */
export const isPaused = (pools: UserPools, shard: number): boolean =>
  (pools.shards[shard] ?? []).some(
    ({ role, pool }) => role === 'primary' && pool.snapshot().isPaused,
  )

/** A connection of its own to the primary of a shard, past its pool. @throws POOL_NO_PRIMARY and what an opening does */
export async function openPastPool(
  pools: UserPools,
  shard: number,
  openServer: OpenServer,
): Promise<ServerConnection> {
  const hosts = pools.shards[shard] ?? []
  const primary = hosts.find(({ role }) => role === 'primary')
  if (primary) {
    return openServer(primary.host.target, { timeoutMs: primary.definition.connect.timeoutMs })
  }
  const what = `shard ${shard} of database "${pools.definition.database}"`
  const known = hosts.map(({ address, role }) => `${address} (${role})`).join(', ')
  throw engineError('POOL_NO_PRIMARY', { what, hosts: known })
}

/** The settings and the unnamed statement of the client that had it last are none of ours. */
async function putOff(server: ServerConnection): Promise<void> {
  server.unnamed = undefined
  const reset = settingsDifference(server.settings, Settings.none)
  if (reset === '') return
  await server.query(reset)
  server.settings = Settings.none
}

/** Runs `work` on a server of the shard's primary. Rejects as a checkout or an opening does. */
export async function withPrimary<T>(
  pools: UserPools,
  shard: number,
  openServer: OpenServer,
  work: (server: ServerConnection) => Promise<T>,
): Promise<T> {
  if (isPaused(pools, shard)) {
    const own = await openPastPool(pools, shard, openServer)
    try {
      return await work(own)
    } finally {
      own.close()
    }
  }
  const checkout = await pools.checkout(shard, 'primary')
  const server = checkout.resource
  try {
    await putOff(server)
    return await work(server)
  } finally {
    checkout.release()
  }
}
