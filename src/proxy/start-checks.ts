/** Looks at every shard once when the proxy starts or reloads: can it be reached, does it allow prepared transactions, what is its search_path. Warns; never ends the proxy. */
import type { Log } from '../base/log.js'
import { toEngineError } from '../errors/engine-error.js'
import type { Pools } from '../pool/pool-map.js'
import type { UserPools } from '../pool/user-pools.js'
import type { DatabaseKnowledge } from './knowledge.js'

export async function checkShards(
  pools: Pools,
  knowledge: ReadonlyMap<string, DatabaseKnowledge>,
  log: Log,
): Promise<void> {
  await Promise.all([...knowledge.values()].map((database) => checkDatabase(pools, database, log)))
}

async function checkDatabase(pools: Pools, database: DatabaseKnowledge, log: Log): Promise<void> {
  const users = [...pools.users()].filter(({ definition }) => definition.database === database.name)
  const [first] = users
  if (!first) {
    log.warn('a database has no user: nobody can connect to it', { database: database.name })
    return
  }
  const shards = Array.from({ length: first.shardCount }, (_, shard) => shard)
  const settings = await Promise.all(shards.map((shard) => askShard(first, shard, log)))
  if (database.sharding.shardCount === 1) return
  if (settings.every((one) => one !== undefined))
    database.allowsTwoPhase = settings.every((one) => one?.maxPrepared !== '0')
  await Promise.all(users.map((user) => readSearchPath(user, database)))
}

interface ShardSettings {
  readonly maxPrepared: string | null
}

async function askShard(
  user: UserPools,
  shard: number,
  log: Log,
): Promise<ShardSettings | undefined> {
  try {
    const checkout = await user.checkout(shard, 'primary')
    try {
      const results = await checkout.resource.query('SHOW max_prepared_transactions')
      return { maxPrepared: results[0]?.rows[0]?.[0] ?? null }
    } finally {
      checkout.release()
    }
  } catch (error) {
    const { message, hint } = toEngineError(error)
    log.warn(message, { hint })
    return undefined
  }
}

async function readSearchPath(user: UserPools, database: DatabaseKnowledge): Promise<void> {
  try {
    const checkout = await user.checkout(0, 'primary')
    try {
      const [result] = await checkout.resource.query('SHOW search_path')
      const path = parseSearchPath(result?.rows[0]?.[0] ?? '')
      database.noteSearchPath(user.definition.user, path)
    } finally {
      checkout.release()
    }
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
