/** Who each shard is, by an id that never changes; read from all shards before anything is written. */
import { engineError } from '../errors/engine-error.js'
import type { TextRow } from '../pg/admin-query.js'
import { quoteLiteral } from '../pg/sql-names.js'

/** What one shard says of itself. */
export interface ShardState {
  /** 0: the schema is not there. */
  readonly version: number
  readonly clusterId?: string
  readonly shardId?: number
  /** Database oid and the server's system identifier: the same database named twice shows here. */
  readonly place: string
  readonly serverVersion: number
  readonly maxPrepared: number
}

export interface Identity {
  readonly clusterId: string
  /** By shard number. */
  readonly shardIds: readonly number[]
}

export type Ask = (sql: string) => Promise<TextRow[]>

export async function readShardState(ask: Ask): Promise<ShardState> {
  const [facts] = await ask(`
    SELECT (SELECT system_identifier FROM pg_control_system()) || '/' ||
      (SELECT oid FROM pg_database WHERE datname = current_database()) AS place,
      current_setting('server_version_num') AS version,
      current_setting('max_prepared_transactions') AS prepared,
      to_regclass('pgshard.schema_version') IS NOT NULL AS present`)
  const base = {
    place: facts?.['place'] ?? '',
    serverVersion: Number(facts?.['version']),
    maxPrepared: Number(facts?.['prepared']),
  }
  if (facts?.['present'] !== 't') return { version: 0, ...base }
  const [row] = await ask(`
    SELECT v.version, s.id, s.cluster_id FROM pgshard.schema_version v
    LEFT JOIN pgshard.shard s ON s.is_here`)
  return {
    ...base,
    version: Number(row?.['version'] ?? 0),
    ...(row?.['id'] ? { shardId: Number(row['id']), clusterId: row['cluster_id'] as string } : {}),
  }
}

/**
 * Keeps the ids that are there and gives new ones to new shards; a set without any gets `newClusterId`.
 * @throws SETUP_SAME_DATABASE, SETUP_SHARD_CONFLICT
 */
export function assignIdentity(
  database: string,
  states: readonly ShardState[],
  newClusterId: string,
): Identity {
  states.forEach((state, number) => {
    const other = states.findIndex((one) => one.place === state.place)
    if (other < number) throw engineError('SETUP_SAME_DATABASE', { database, a: other, b: number })
  })
  const clusters = new Set(states.flatMap((state) => state.clusterId ?? []))
  if (clusters.size > 1) {
    const reason = `its shards belong to clusters ${[...clusters].join(', ')}`
    throw engineError('SETUP_SHARD_CONFLICT', { database, reason })
  }
  const taken = new Map<number, number>()
  states.forEach((state, number) => {
    if (state.shardId === undefined) return
    const other = taken.get(state.shardId)
    if (other !== undefined) {
      const reason = `shards ${other} and ${number} both have id ${state.shardId}`
      throw engineError('SETUP_SHARD_CONFLICT', { database, reason })
    }
    taken.set(state.shardId, number)
  })
  let last = Math.max(0, ...taken.keys())
  const shardIds = states.map((state) => state.shardId ?? ++last)
  return { clusterId: [...clusters][0] ?? newClusterId, shardIds }
}

/** Writes the rows of `pgshard.shard` of the shard `here`. Ids of shards that left stay taken. */
export function identitySql(identity: Identity, here: number): string {
  const cluster = quoteLiteral(identity.clusterId)
  const rows = identity.shardIds.map(
    (id, number) => `(${id}, ${cluster}, ${number}, ${number === here})`,
  )
  return `INSERT INTO pgshard.shard (id, cluster_id, number, is_here) VALUES
  ${rows.join(',\n  ')}
  ON CONFLICT (id) DO UPDATE SET number = excluded.number
  WHERE pgshard.shard.number <> excluded.number;
`
}
