/** Two sides of a move on one server, and statements on their shards. */
import type { HostTarget } from '../../../src/pg/host-client.js'
import type { ReshardSide } from '../../../src/reshard/side.js'
import type { ShardingConfig } from '../../../src/sharding/sharded-table.js'
import { connect, shardOf, shopSharding } from '../../support/moving-shop.js'
import type { TestPostgres } from '../../support/postgres.js'
import { usePostgres } from '../../support/use-postgres.js'

/** A server for the file, and `side`, which makes a database a shard on it. */
export function useSides(): {
  side(name: string, count: number, sharding?: ShardingConfig): Promise<ReshardSide>
} {
  const settings = {
    max_wal_senders: '60',
    max_replication_slots: '60',
    max_prepared_transactions: '10',
  }
  const postgres = usePostgres({ version: 15, settings })
  return { side: (name, count, sharding) => makeSide(postgres(), name, count, sharding) }
}

/** A side on the first server, with a new database a shard. */
export async function makeSide(
  postgres: TestPostgres,
  name: string,
  count: number,
  sharding = shopSharding(count),
): Promise<ReshardSide> {
  const [server] = postgres.servers
  const shards: HostTarget[] = []
  for (let shard = 0; shard < count; shard++) {
    const database = await postgres.createDatabase()
    shards.push({ host: server!.host, port: server!.port, user: postgres.user, database })
  }
  return { name, shards, sharding }
}

/** Statements on one connection; rows of the last. */
export async function on<R = Record<string, unknown>>(
  target: HostTarget,
  ...statements: string[]
): Promise<R[]> {
  const client = await connect(target)
  try {
    let rows: R[] = []
    for (const sql of statements) rows = (await client.query(sql)).rows as R[]
    return rows
  } finally {
    await client.end()
  }
}

export const everywhere = (one: ReshardSide, ...sql: string[]) =>
  Promise.all(one.shards.map((shard) => on(shard, ...sql)))

/** Statements on the shard of a tenant. */
export const at = (one: ReshardSide, tenant: number, ...sql: string[]) =>
  on(one.shards[shardOf(tenant, one.sharding)] as HostTarget, ...sql)
