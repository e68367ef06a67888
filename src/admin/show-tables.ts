/** The tables of SHOW: PgDog's columns first, then those that only PgBouncer has, then ours. Data, not logic. */

import { consoleHelp } from './console-help.js'
import type {
  ClientView,
  ConfigView,
  DatabaseView,
  ListenerView,
  PoolPlaceView,
  PoolView,
  ProxyView,
  ServerView,
  TopologyView,
  TransactionView,
  WorkerView,
} from './proxy-view.js'
import {
  bool,
  type ColumnOf,
  count,
  micros,
  type ShowTable,
  span,
  stamp,
  table,
  text,
} from './show-table.js'

interface TimedClient extends ClientView {
  readonly nowMs: number
}

const seconds = (ms: number): number => Math.floor(ms / 1000)

const clients = table<TimedClient>(
  [
    count('id', (c) => c.id),
    text('user', (c) => c.user),
    text('database', (c) => c.database),
    text('addr', (c) => c.address),
    count('port', (c) => c.port),
    text('state', (c) => c.state),
    text('replication', () => 'none'),
    text('connect_time', (c) => stamp(c.connectedAtMs)),
    text('last_request', (c) => stamp(c.lastRequestAtMs)),
    count('queries', (c) => c.queries),
    count('transactions', (c) => c.transactions),
    count('transactions_2pc', (c) => c.twoPhase),
    micros('wait_time', (c) => c.waitMs),
    micros('query_time', (c) => c.queryMs),
    micros('transaction_time', (c) => c.transactionMs),
    count('bytes_received', (c) => c.bytesReceived),
    count('bytes_sent', (c) => c.bytesSent),
    count('errors', (c) => c.errors),
    text('application_name', (c) => c.applicationName),
    bool('locked', (c) => c.pins.length > 0),
    count('prepared_statements', (c) => c.preparedStatements),
    text('type', () => 'C'),
    text('request_time', (c) => stamp(c.lastRequestAtMs)),
    count('wait', (c) => (c.state === 'waiting' ? seconds(c.nowMs - c.lastRequestAtMs) : 0)),
    text('tls', (c) => (c.isEncrypted ? 'TLS' : '')),
    text('pinned_by', (c) => c.pins.join(', ')),
    text('waits_for', (c) => c.waitsFor ?? ''),
    count('worker', (c) => c.worker),
  ],
  (view) => view.clients().map((client) => ({ ...client, nowMs: view.nowMs() })),
)

const place = [
  text<PoolPlaceView>('database', (p) => p.database),
  text<PoolPlaceView>('user', (p) => p.user),
  text<PoolPlaceView>('addr', (p) => p.address),
  count<PoolPlaceView>('port', (p) => p.port),
]
const shardAndRole = [
  count<PoolPlaceView>('shard', (p) => p.shard),
  text<PoolPlaceView>('role', (p) => p.role),
]

/** A whole number, or NULL while it is not known. */
const optional = <R>(name: string, value: (row: R) => number | undefined): ColumnOf<R> => ({
  name,
  type: 'int8',
  value: (row) => {
    const known = value(row)
    return known === undefined ? null : Math.trunc(known)
  },
})

const worker = count<PoolPlaceView>('worker', (p) => p.worker)

const servers = table<ServerView & { readonly nowMs: number }>(
  [
    count('pool_id', (s) => s.poolId),
    ...place,
    text('state', (s) => s.state),
    text('connect_time', (s) => stamp(s.nowMs - s.ageMs)),
    text('request_time', (s) => stamp(s.nowMs - s.idleMs)),
    count('remote_pid', (s) => s.processId),
    optional('client_id', (s) => s.clientId),
    count('transactions', (s) => s.traffic.transactions),
    count('queries', (s) => s.traffic.queries),
    count('rollbacks', (s) => s.traffic.rollbacks),
    count('prepared_statements', (s) => s.preparedStatements),
    count('healthchecks', (s) => s.traffic.checks),
    count('errors', (s) => s.traffic.errors),
    count('bytes_received', (s) => s.traffic.received),
    count('bytes_sent', (s) => s.traffic.sent),
    text('last_sent', (s) => stamp(s.nowMs - s.idleMs)),
    text('last_received', (s) => (s.isWaiting ? null : stamp(s.nowMs - s.idleMs))),
    count('age', (s) => s.ageMs),
    text('application_name', (s) => s.applicationName),
    text('type', () => 'S'),
    text('tls', (s) => (s.isEncrypted ? 'TLS' : '')),
    ...shardAndRole,
    worker,
  ],
  (view) => view.servers().map((server) => ({ ...server, nowMs: view.nowMs() })),
)

const pools = table<PoolView>(
  [
    count('id', (p) => p.poolId),
    ...place,
    ...shardAndRole,
    count('cl_waiting', (p) => p.clientsWaiting),
    count('sv_idle', (p) => p.idle),
    count('sv_active', (p) => p.active),
    count('sv_idle_xact', (p) => p.idleInTransaction),
    count('sv_total', (p) => p.total),
    count('maxwait', (p) => seconds(p.maxWaitMs)),
    count('maxwait_us', (p) => (p.maxWaitMs % 1000) * 1000),
    text('pool_mode', (p) => p.poolerMode),
    bool('paused', (p) => p.isPaused),
    bool('banned', (p) => p.isBanned),
    bool('healthy', (p) => p.isHealthy),
    count('errors', (p) => p.errors),
    count('re_synced', (p) => p.traffic.resynced),
    count('out_of_sync', (p) => p.outOfSync),
    count('force_closed', (p) => p.forceClosed),
    bool('online', (p) => p.isOnline),
    bool('schema_admin', (p) => p.isSchemaAdmin),
    count('cl_active', (p) => p.clientsActive),
    count('sv_used', () => 0),
    count('sv_tested', () => 0),
    count('sv_login', (p) => p.opening),
    count('pool_size', (p) => p.maxSize),
    count('min_pool_size', (p) => p.minSize),
    worker,
  ],
  (view) => view.pools(),
)

const replication = table<PoolView>(
  [
    count('id', (p) => p.poolId),
    ...place,
    ...shardAndRole,
    optional('replica_lag', (p) => p.replication?.lagMs),
    text('pg_lsn', (p) => p.replication?.lsn ?? null),
    optional('lsn_age', (p) => p.replication?.ageMs),
    text('pg_is_in_recovery', (p) =>
      p.replication === undefined ? null : p.replication.isInRecovery ? 't' : 'f',
    ),
    optional('replica_lag_bytes', (p) => p.replication?.lagBytes),
    optional('timeline', (p) => p.replication?.timeline),
    worker,
  ],
  (view) => view.pools(),
)

const bans = table<PoolView>(
  [
    count('id', (p) => p.poolId),
    ...place,
    ...shardAndRole,
    text('ban_reason', (p) => p.banReason ?? null),
    text('ban_time_left', (p) => {
      if (p.banLeftMs === undefined) return null
      return p.banLeftMs === Number.POSITIVE_INFINITY ? 'until UNBAN' : span(p.banLeftMs)
    }),
    worker,
  ],
  (view) => view.pools().filter((pool) => pool.isBanned),
)

const databases = table<DatabaseView>(
  [
    text('name', (d) => d.name),
    text('host', (d) => d.host),
    count('port', (d) => d.port),
    text('database', (d) => d.database),
    text('force_user', (d) => d.forceUser ?? null),
    count('pool_size', (d) => d.poolSize),
    count('min_pool_size', (d) => d.minPoolSize),
    count('reserve_pool', (d) => d.reservePoolSize),
    count('server_lifetime', (d) => seconds(d.serverLifetimeMs)),
    text('pool_mode', (d) => d.poolMode),
    count('max_connections', () => 0),
    count('current_connections', (d) => d.currentConnections),
    count('paused', (d) => (d.isPaused ? 1 : 0)),
    count('disabled', (d) => (d.isDisabled ? 1 : 0)),
    count('shard', (d) => d.shard),
    text('role', (d) => d.role),
    count('weight', (d) => d.weight),
  ],
  (view) => view.databases(),
)

const users = table<{ name: string; poolMode: string }>(
  [text('name', (u) => u.name), text('pool_mode', (u) => u.poolMode)],
  (view) => view.users(),
)

const config = table<ConfigView>(
  [text('name', (c) => c.name), text('value', (c) => c.value), text('source', (c) => c.source)],
  (view) => view.config(),
)

const listeners = table<ListenerView>(
  [
    text('database', (l) => l.database),
    text('user', (l) => l.user),
    count('shard', (l) => l.shard),
    text('channel', (l) => l.channel),
    count('listeners', (l) => l.listeners),
    count('received', (l) => l.received),
    count('dropped', (l) => l.dropped),
    count('worker', (l) => l.worker),
  ],
  (view) => view.listeners(),
)

/** Empty when there is none. */
const limit = <R>(name: string, value: (row: R) => number): ColumnOf<R> => ({
  name,
  type: 'int8',
  value: (row) => (Number.isFinite(value(row)) ? value(row) : null),
})

const workers = table<WorkerView>(
  [
    count('worker', (w) => w.worker),
    count('pid', (w) => w.processId),
    text('state', (w) => w.state),
    count('uptime', (w) => seconds(w.uptimeMs)),
    count('replaced', (w) => w.replaced),
    count('clients', (w) => w.clients),
    limit('max_client_conn', (w) => w.maxClients),
    limit('max_db_connections', (w) => w.maxServers),
    count('cancels', (w) => w.cancels),
    count('cancels_forwarded', (w) => w.cancelsForwarded),
    micros('cpu_time', (w) => w.cpuMs),
    count('memory', (w) => w.memoryBytes),
  ],
  (view) => view.workers(),
)

const version = table<string>([text('version', (line) => line)], (view) => [
  `pgshard ${view.version}`,
])

const distinct = (values: readonly string[]): number => new Set(values).size

function countThings(view: ProxyView): { list: string; items: number }[] {
  const poolRows = view.pools()
  const sum = (of: (pool: PoolView) => number) =>
    poolRows.reduce((total, pool) => total + of(pool), 0)
  return [
    { list: 'databases', items: distinct(view.databases().map((database) => database.name)) },
    { list: 'users', items: view.users().length },
    { list: 'peers', items: 0 },
    { list: 'pools', items: poolRows.length },
    { list: 'peer_pools', items: 0 },
    { list: 'free_clients', items: 0 },
    { list: 'used_clients', items: view.clients().length },
    { list: 'login_clients', items: 0 },
    { list: 'free_servers', items: sum((pool) => pool.idle) },
    { list: 'used_servers', items: sum((pool) => pool.active) },
    { list: 'dns_names', items: distinct(view.names().map(({ name }) => name)) },
    { list: 'dns_zones', items: 0 },
    { list: 'dns_queries', items: 0 },
    { list: 'dns_pending', items: 0 },
  ]
}

const topology = table<TopologyView>(
  [
    text('database', (t) => t.database),
    text('proxy_id', (t) => t.proxyId),
    count('epoch', (t) => t.epoch),
    text('state', (t) => t.state),
    count('age_ms', (t) => t.ageMs),
    count('worker', (t) => t.worker),
  ],
  (view) => view.topology(),
)

const transactions = table<TransactionView>(
  [
    text('database', (t) => t.database),
    text('user', (t) => t.user),
    text('transaction_name', (t) => t.name),
    text('transaction_state', (t) => t.state),
    text('shard', (t) => (t.shard === undefined ? '' : String(t.shard))),
    micros('age', (t) => t.ageMs ?? 0),
    text('reason', (t) => t.reason),
  ],
  (view) => view.transactions(),
)

const lists = table<{ list: string; items: number }>(
  [text('list', (l) => l.list), count('items', (l) => l.items)],
  countThings,
)

const help = table<readonly [string, string]>(
  [text('command', ([command]) => command), text('does', ([, does]) => does)],
  () => consoleHelp,
)

/** All but STATS, which has a file of its own. */
export const plainTables = {
  bans,
  clients,
  config,
  databases,
  help,
  listeners,
  lists,
  pools,
  replication,
  servers,
  topology,
  transactions,
  users,
  version,
  workers,
} satisfies Readonly<Record<string, ShowTable>>
