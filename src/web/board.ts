/** What the page shows besides its charts: rows of each table, made at each look. Plain data; the page formats it. */
import type { ClientView, PoolView, ProxyView, StatementView } from '../admin/proxy-view.js'
import { type HostRow, hostRows } from './hosts.js'
import type { Problem } from './problems.js'
import type { Figures } from './rates.js'

/** More rows cannot be read while they change; the console has all. */
const MOST_ROWS = 200

export interface Board {
  readonly atMs: number
  readonly version: string
  readonly uptimeMs: number
  readonly problems: readonly Problem[]
  readonly hosts: readonly (HostRow & { readonly share: number | null })[]
  readonly pools: readonly PoolRow[]
  readonly clients: readonly ClientRow[]
  readonly statements: readonly StatementRow[]
  readonly transactions: ReturnType<ProxyView['transactions']>
  readonly workers: ReturnType<ProxyView['workers']>
  readonly topology: ReturnType<ProxyView['topology']>
  /** How many rows there are of those tables that may be cut. */
  readonly counts: { readonly clients: number; readonly statements: number; readonly pools: number }
}

export interface PoolRow {
  readonly key: string
  readonly database: string
  readonly user: string
  readonly shard: number
  readonly role: string
  readonly address: string
  readonly mode: string
  readonly inUse: number
  readonly idle: number
  readonly opening: number
  readonly idleInTransaction: number
  readonly minSize: number
  readonly maxSize: number
  readonly waiting: number
  readonly maxWaitMs: number
  readonly waitP99Ms: number
  readonly connectP99Ms: number
  readonly state: string
}

export type ClientRow = Pick<
  ClientView,
  | 'worker'
  | 'id'
  | 'user'
  | 'database'
  | 'state'
  | 'applicationName'
  | 'transactions'
  | 'errors'
  | 'preparedStatements'
> & {
  readonly address: string
  readonly connectedMs: number
  readonly quietMs: number
  readonly waitsFor: string
  readonly pins: string
}

export interface StatementRow {
  readonly database: string
  readonly text: string
  readonly how: string
  readonly count: number
  readonly errors: number
  readonly totalMs: number
  readonly meanMs: number
  readonly maxMs: number
  /** Mean of the shards that worked for one. */
  readonly shards: number
  /** Several shards worked for some of them. */
  readonly isScattered: boolean
}

export function makeBoard(
  view: ProxyView,
  problems: readonly Problem[],
  shards: Readonly<Record<string, Figures>>,
): Board {
  const pools = poolRows(view.pools())
  const clients = view.clients()
  const statements = view.statements()
  return {
    atMs: view.nowMs(),
    version: view.version,
    uptimeMs: view.uptimeMs(),
    problems,
    hosts: withShares(hostRows(view.pools()), shards),
    pools: pools.slice(0, MOST_ROWS),
    clients: clientRows(clients, view.nowMs()),
    statements: statementRows(statements),
    transactions: view.transactions().slice(0, MOST_ROWS),
    workers: view.workers(),
    topology: view.topology(),
    counts: { clients: clients.length, statements: statements.length, pools: pools.length },
  }
}

/** Each shard's part in the queries of its database, now. */
function withShares(
  hosts: readonly HostRow[],
  shards: Readonly<Record<string, Figures>>,
): Board['hosts'] {
  const qps = (host: HostRow) => shards[`${host.database} shard ${host.shard}`]?.[1] ?? 0
  const ofDatabase = (database: string) => {
    const numbers = new Map(
      hosts.filter((one) => one.database === database).map((one) => [one.shard, qps(one)]),
    )
    return [...numbers.values()].reduce((sum, one) => sum + one, 0)
  }
  return hosts.map((host) => {
    const all = ofDatabase(host.database)
    return { ...host, share: all === 0 ? null : qps(host) / all }
  })
}

function stateOf(pool: PoolView): string {
  if (!pool.isOnline) return 'offline'
  if (pool.isPaused) return 'paused'
  if (pool.isBanned) return 'banned'
  return pool.isHealthy ? 'healthy' : 'cannot be reached'
}

/** Workers' pools of one user on one host are one row. */
function poolRows(pools: readonly PoolView[]): PoolRow[] {
  const merged = new Map<string, PoolRow>()
  for (const pool of pools) {
    const key = JSON.stringify([pool.database, pool.user, pool.shard, pool.address, pool.port])
    const row = poolRow(key, pool)
    const before = merged.get(key)
    merged.set(key, before ? addPools(before, row) : row)
  }
  return [...merged.values()].sort(
    (a, b) =>
      b.waiting - a.waiting ||
      a.database.localeCompare(b.database) ||
      a.user.localeCompare(b.user) ||
      a.shard - b.shard ||
      a.address.localeCompare(b.address),
  )
}

const poolRow = (key: string, pool: PoolView): PoolRow => ({
  key,
  database: pool.database,
  user: pool.user,
  shard: pool.shard,
  role: pool.role,
  address: `${pool.address}:${pool.port}`,
  mode: pool.poolerMode,
  inUse: pool.active,
  idle: pool.idle,
  opening: pool.opening,
  idleInTransaction: pool.idleInTransaction,
  minSize: pool.minSize,
  maxSize: pool.maxSize,
  waiting: pool.clientsWaiting,
  maxWaitMs: pool.maxWaitMs,
  waitP99Ms: pool.waits.p99Ms,
  connectP99Ms: pool.connectTimes.p99Ms,
  state: stateOf(pool),
})

const addPools = (a: PoolRow, b: PoolRow): PoolRow => ({
  ...a,
  inUse: a.inUse + b.inUse,
  idle: a.idle + b.idle,
  opening: a.opening + b.opening,
  idleInTransaction: a.idleInTransaction + b.idleInTransaction,
  minSize: a.minSize + b.minSize,
  maxSize: a.maxSize + b.maxSize,
  waiting: a.waiting + b.waiting,
  maxWaitMs: Math.max(a.maxWaitMs, b.maxWaitMs),
  waitP99Ms: Math.max(a.waitP99Ms, b.waitP99Ms),
  connectP99Ms: Math.max(a.connectP99Ms, b.connectP99Ms),
  state: a.state === 'healthy' ? b.state : a.state,
})

const rank: Readonly<Record<string, number>> = {
  waiting: 0,
  active: 1,
  'idle in transaction': 2,
  idle: 3,
}

/** Those that wait first, each state with who has been in it for longest. */
function clientRows(clients: readonly ClientView[], nowMs: number): ClientRow[] {
  const sorted = [...clients].sort(
    (a, b) => (rank[a.state] ?? 9) - (rank[b.state] ?? 9) || a.lastRequestAtMs - b.lastRequestAtMs,
  )
  return sorted.slice(0, MOST_ROWS).map((client) => ({
    worker: client.worker,
    id: client.id,
    user: client.user,
    database: client.database,
    state: client.state,
    applicationName: client.applicationName,
    transactions: client.transactions,
    errors: client.errors,
    preparedStatements: client.preparedStatements,
    address: `${client.address}:${client.port}`,
    connectedMs: nowMs - client.connectedAtMs,
    quietMs: nowMs - client.lastRequestAtMs,
    waitsFor: client.waitsFor ?? '',
    pins: client.pins.join(', '),
  }))
}

function statementRows(statements: readonly StatementView[]): StatementRow[] {
  const sorted = [...statements].sort((a, b) => b.totalMs - a.totalMs)
  return sorted.slice(0, MOST_ROWS).map((one) => ({
    database: one.database,
    text: one.text,
    how: one.hows.join(', '),
    count: one.count,
    errors: one.errors,
    totalMs: one.totalMs,
    meanMs: one.totalMs / Math.max(one.count, 1),
    maxMs: one.maxMs,
    shards: one.shards / Math.max(one.count, 1),
    isScattered: one.shards > one.count,
  }))
}
