/** Other proxies of the databases, as they write it into schema pgshard of shard 0 (SHOW PEERS). */
import type { PeerView } from '../../admin/proxy-view.js'
import { engineError } from '../../errors/engine-error.js'
import type { OpenServer } from '../../pool/definition.js'
import type { Pools } from '../../pool/pool-map.js'
import type { UserPools } from '../../pool/user-pools.js'
import { hasTopologySql, LIVE_SECONDS } from '../../topology/epoch.js'
import { withPrimary } from '../databases/ask-primary.js'

const peersSql = (ownProcess: number) => `SELECT host, port::text, version, database,
  (pg_catalog.date_part('epoch', heartbeat_at) * 1000)::bigint::text
  FROM pgshard.proxy WHERE heartbeat_at > pg_catalog.now() - interval '${LIVE_SECONDS} s'
  AND process_id <> ${ownProcess} ORDER BY host, port`

/** Each other proxy once; databases without schema pgshard, and those that cannot be asked, know none. */
export async function findPeers(pools: Pools, openServer: OpenServer): Promise<PeerView[]> {
  const asked = new Map<string, UserPools>()
  for (const user of pools.users()) asked.set(user.definition.database, user)
  const found = await Promise.allSettled(
    [...asked.values()].map((user) => peersOf(user, openServer)),
  )
  return found.flatMap((one) => (one.status === 'fulfilled' ? one.value : []))
}

async function peersOf(user: UserPools, openServer: OpenServer): Promise<PeerView[]> {
  return withPrimary(user, 0, openServer, async (server) => {
    const [has] = await server.query(hasTopologySql)
    if (has?.rows[0]?.[0] !== 't') return []
    const [result] = await server.query(peersSql(process.pid))
    if (!result) throw engineError('INTERNAL', { message: 'the registry gave no answer' })
    return result.rows.map(([host, port, version, database, seen]) => ({
      address: `${host}:${port}`,
      version: version ?? '',
      database: database ?? '',
      seenAtMs: Number(seen),
    }))
  })
}
