/** Hosts of shards, each once: what the pools of all users and workers know of it. Pure. */
import type { PoolView } from '../admin/proxy-view.js'

export interface HostRow {
  readonly database: string
  readonly shard: number
  readonly address: string
  readonly role: string
  readonly isHealthy: boolean
  readonly isPaused: boolean
  readonly isManuallyBanned: boolean
  readonly banReason: string | undefined
  /** null: until it is lifted by hand. */
  readonly banLeftMs: number | null | undefined
  readonly servers: number
  readonly inUse: number
  readonly waiting: number
  readonly queries: number
  readonly lagMs: number | null
  readonly lagBytes: number | null
  readonly lsn: string | null
}

const keyOf = (pool: PoolView): string =>
  JSON.stringify([pool.database, pool.shard, pool.address, pool.port])

const addressOf = ({ address, port }: PoolView): string =>
  address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`

export function hostRows(pools: readonly PoolView[]): HostRow[] {
  const byHost = new Map<string, PoolView[]>()
  for (const pool of pools) {
    const known = byHost.get(keyOf(pool))
    if (known) known.push(pool)
    else byHost.set(keyOf(pool), [pool])
  }
  const rows = [...byHost.values()].map(hostOf)
  return rows.sort(
    (a, b) =>
      a.database.localeCompare(b.database) ||
      a.shard - b.shard ||
      a.role.localeCompare(b.role) ||
      a.address.localeCompare(b.address),
  )
}

function hostOf(pools: readonly PoolView[]): HostRow {
  const first = pools[0] as PoolView
  const banned = pools.find(({ isBanned }) => isBanned)
  const sum = (of: (pool: PoolView) => number) => pools.reduce((all, pool) => all + of(pool), 0)
  const replication = pools.find((pool) => pool.replication)?.replication
  const left = banned?.banLeftMs
  return {
    database: first.database,
    shard: first.shard,
    address: addressOf(first),
    role: first.role,
    // one worker that cannot reach it is enough to be told of
    isHealthy: pools.every(({ isHealthy }) => isHealthy),
    isPaused: pools.every(({ isPaused }) => isPaused),
    isManuallyBanned: banned?.banReason === 'manual ban',
    banReason: banned?.banReason,
    banLeftMs: left === undefined || Number.isFinite(left) ? left : null,
    servers: sum(({ total }) => total),
    inUse: sum(({ total, idle }) => total - idle),
    waiting: sum(({ clientsWaiting }) => clientsWaiting),
    queries: sum(({ traffic }) => traffic.queries),
    lagMs: replication?.lagMs ?? null,
    lagBytes: replication?.lagBytes ?? null,
    lsn: replication?.lsn ?? null,
  }
}
