/** Looks at every shard once when the proxy starts or reloads: can it be reached, what is its search_path. Warns; never ends the proxy. */
import type { Log } from '../../base/log.js'
import { toEngineError } from '../../errors/engine-error.js'
import type { OpenServer } from '../../pool/definition.js'
import type { Pools } from '../../pool/pool-map.js'
import type { UserPools } from '../../pool/user-pools.js'
import { withPrimary } from './ask-primary.js'
import type { DatabaseKnowledge } from './knowledge.js'

export async function checkShards(
  pools: Pools,
  knowledge: ReadonlyMap<string, DatabaseKnowledge>,
  tools: CheckTools,
): Promise<void> {
  await Promise.all(
    [...knowledge.values()].map((database) => checkDatabase(pools, database, tools)),
  )
}

export interface CheckTools {
  readonly openServer: OpenServer
  readonly log: Log
}

async function checkDatabase(
  pools: Pools,
  database: DatabaseKnowledge,
  tools: CheckTools,
): Promise<void> {
  const users = [...pools.users()].filter(({ definition }) => definition.database === database.name)
  const [first] = users
  if (!first) {
    tools.log.warn('a database has no user: nobody can connect to it', { database: database.name })
    return
  }
  const shards = Array.from({ length: first.shardCount }, (_, shard) => shard)
  await Promise.all(shards.map((shard) => reachShard(first, shard, tools)))
  if (database.sharding.shardCount === 1) return
  await Promise.all(users.map((user) => readSearchPath(user, database, tools)))
}

async function reachShard(
  user: UserPools,
  shard: number,
  { openServer, log }: CheckTools,
): Promise<void> {
  try {
    await withPrimary(user, shard, openServer, async () => undefined)
  } catch (error) {
    const { code, message, hint } = toEngineError(error)
    // The pool itself has said that it cannot connect.
    if (!code.startsWith('POOL_CONNECT')) log.warn(message, { hint })
  }
}

async function readSearchPath(
  user: UserPools,
  database: DatabaseKnowledge,
  { openServer }: CheckTools,
): Promise<void> {
  try {
    const results = await withPrimary(user, 0, openServer, (server) =>
      server.query('SHOW search_path; SHOW default_transaction_isolation'),
    )
    const [path = '', isolation = ''] = results.map(({ rows }) => rows[0]?.[0] ?? '')
    database.noteDefaults(user.definition.user, parseSearchPath(path), isolation)
  } catch {
    // Said above, when the shard itself was asked.
  }
}

/** `"$user", public` → names, unquoted and folded. */
export function parseSearchPath(text: string): string[] {
  return [...text.matchAll(/"((?:[^"]|"")*)"|([^\s,"]+)/g)].map(([, quoted, plain]) =>
    quoted === undefined ? (plain ?? '').toLowerCase() : quoted.replaceAll('""', '"'),
  )
}
