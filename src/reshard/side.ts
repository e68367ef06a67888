/** The two sides of a move, and how their shards are reached. */
import { type HostClient, type HostTarget, openHostClient } from '../pg/host-client.js'
import type { ShardingConfig } from '../sharding/sharded-table.js'

/** One database of the configuration: its primaries in the order of shards, and where its rows live. */
export interface ReshardSide {
  readonly name: string
  readonly shards: readonly HostTarget[]
  readonly sharding: ShardingConfig
  /** Logins of proxies, which register on the first shard. */
  readonly roles?: readonly string[]
  /**
   * Set where the two databases of a move share shards: `shards` are those of this one that the other has not, `sharding`
   * places all other keys behind them, and this is the database whole. Only rows of buckets that change shards move.
   */
  readonly whole?: ReshardSide
  /**
   * Set beside `whole` where the shards of the new side serve already, as in a move that takes shards away: rows come to
   * tables of schema pgshard, and from there into those that clients see, in the cutover.
   */
  readonly isStaged?: boolean
}

/** Output in one canonical form, whatever the server, role or database sets. */
export const canonicalSettings: Readonly<Record<string, string>> = {
  DateStyle: 'ISO',
  IntervalStyle: 'postgres',
  TimeZone: 'UTC',
  extra_float_digits: '3',
  bytea_output: 'hex',
  statement_timeout: '0',
  idle_in_transaction_session_timeout: '0',
  lock_timeout: '0',
}

export const placeOf = (target: HostTarget): string =>
  `${target.host}:${target.port}/${target.database}`

export function openShard(
  target: HostTarget,
  settings: Readonly<Record<string, string>> = {},
): Promise<HostClient> {
  return openHostClient(target, {
    applicationName: 'pgshard reshard',
    settings: { ...canonicalSettings, ...settings },
  })
}

/** Runs `work` on a connection of its own. */
export async function withShard<T>(
  target: HostTarget,
  work: (client: HostClient) => Promise<T>,
  settings?: Readonly<Record<string, string>>,
): Promise<T> {
  const client = await openShard(target, settings)
  try {
    return await work(client)
  } finally {
    await client.end().catch(() => undefined)
  }
}

/** Runs `work` on every shard of a side at once; the first failure wins, after all have ended. */
export async function onEachShard<T>(
  side: ReshardSide,
  work: (client: HostClient, shard: number) => Promise<T>,
  settings?: Readonly<Record<string, string>>,
): Promise<T[]> {
  const ends = await Promise.allSettled(
    side.shards.map((target, shard) =>
      withShard(target, (client) => work(client, shard), settings),
    ),
  )
  return ends.map((end) => {
    if (end.status === 'rejected') throw end.reason
    return end.value
  })
}
