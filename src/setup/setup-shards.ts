/** Connections to all shards for one run of setup, and the lock that keeps two runs apart. */
import { adminQuery, closePg, type TextRow } from '../pg/admin-query.js'
import { connectPg } from '../pg/connect.js'
import type { SetupTarget } from './setup-target.js'

type Client = Awaited<ReturnType<typeof connectPg>>

export interface SetupShard {
  readonly label: string
  readonly client: Client
  readonly ask: (sql: string) => Promise<TextRow[]>
}

/** Session lock on the first shard. */
const RUN_LOCK = 7_307_498_302

/** Runs `work` with a connection to each shard, alone; closes them whatever happens. */
export async function withSetupShards<T>(
  target: SetupTarget,
  work: (shards: readonly SetupShard[]) => Promise<T>,
): Promise<T> {
  const open: Client[] = []
  try {
    const shards: SetupShard[] = []
    for (const { conninfo, label } of target.shards) {
      const client = await connectPg(conninfo, { applicationName: 'pgshard setup' })
      open.push(client)
      const ask = (sql: string) => adminQuery(client, sql)
      await ask(
        `SET search_path = pg_catalog; SET client_min_messages = warning; SET statement_timeout = 0`,
      )
      shards.push({ label, client, ask })
    }
    await shards[0]?.ask(`SELECT pg_advisory_lock(${RUN_LOCK})`)
    return await work(shards)
  } finally {
    await Promise.all(open.map((client) => closePg(client)))
  }
}
