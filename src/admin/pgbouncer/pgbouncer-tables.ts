/**
 * SHOW on the console's database `pgbouncer`: names, order and types of PgBouncer 1.25, one row where PgBouncer has one,
 * for exporters and tools that were made for it. What pgshard does not count is NULL, what it does not have 0. Data, not logic.
 */
import type {
  ClientView,
  ConfigView,
  DatabaseView,
  PoolView,
  ProxyView,
  ServerView,
} from '../proxy-view.js'
import { insideTables } from '../show-inside.js'
import {
  type ColumnOf,
  type ColumnType,
  type ShowTable,
  stamp,
  table,
  text,
} from '../show-table.js'
import { plainTables } from '../show-tables.js'
import { statsTables } from './pgbouncer-stats.js'
import { userPoolKey, userPools } from './pool-sums.js'

const int = <R>(name: string, value: (row: R) => number): ColumnOf<R> => ({
  name,
  type: 'int4',
  value: (row) => Math.trunc(value(row)),
})
const none = <R>(name: string): ColumnOf<R> => int(name, () => 0)
const unknown = <R>(name: string): ColumnOf<R> => text(name, () => null)
const secondsOf = (ms: number): number => Math.floor(ms / 1000)
const microsOf = (ms: number): number => Math.floor((ms % 1000) * 1000)

/** A client or a server, as PgBouncer's sockets. */
interface Socket {
  readonly type: 'C' | 'S'
  readonly of: ClientView | ServerView
  readonly state: string
  readonly connectedAtMs: number
  readonly usedAtMs: number
  readonly waitMs: number
  readonly link: string
  readonly processId: number
  readonly id: number
}

const nameOf = ({ type, id }: { type: 'C' | 'S'; id: number }): string => `${type}${id}`

/** PgBouncer's `active` is whoever has a server. */
const stateOf = (state: string): string => (state === 'idle in transaction' ? 'active' : state)

function clientSockets(view: ProxyView): Socket[] {
  const servers = new Map(view.servers().map((server) => [server.clientId, server.processId]))
  return view.clients().map((client): Socket => {
    const server = servers.get(client.id)
    return {
      type: 'C',
      of: client,
      state: stateOf(client.state),
      connectedAtMs: client.connectedAtMs,
      usedAtMs: client.lastRequestAtMs,
      waitMs: client.state === 'waiting' ? Math.max(0, view.nowMs() - client.lastRequestAtMs) : 0,
      link: server === undefined ? '' : nameOf({ type: 'S', id: server }),
      processId: 0,
      id: client.id,
    }
  })
}

const serverSockets = (view: ProxyView): Socket[] =>
  view.servers().map(
    (server): Socket => ({
      type: 'S',
      of: server,
      state: stateOf(server.state),
      connectedAtMs: view.nowMs() - server.ageMs,
      usedAtMs: view.nowMs() - server.idleMs,
      waitMs: 0,
      link: server.clientId === undefined ? '' : nameOf({ type: 'C', id: server.clientId }),
      processId: server.processId,
      id: server.processId,
    }),
  )

const socketColumns: readonly ColumnOf<Socket>[] = [
  text('type', (s) => s.type),
  text('user', (s) => s.of.user),
  text('database', (s) => s.of.database),
  text('replication', () => 'none'),
  text('state', (s) => s.state),
  text('addr', (s) => s.of.address),
  int('port', (s) => s.of.port),
  unknown('local_addr'),
  none('local_port'),
  text('connect_time', (s) => stamp(s.connectedAtMs)),
  text('request_time', (s) => stamp(s.usedAtMs)),
  int('wait', (s) => secondsOf(s.waitMs)),
  int('wait_us', (s) => microsOf(s.waitMs)),
  none('close_needed'),
  text('ptr', nameOf),
  text('link', (s) => s.link),
  int('remote_pid', (s) => s.processId),
  text('tls', (s) => (s.of.isEncrypted ? 'TLS' : '')),
  text('application_name', (s) => s.of.applicationName),
  int('prepared_statements', (s) => s.of.preparedStatements),
  int('id', (s) => s.id),
]

const bufferColumns: readonly ColumnOf<Socket>[] = [
  none('recv_pos'),
  none('pkt_pos'),
  none('pkt_remain'),
  none('send_pos'),
  int('send_remain', (s) => s.of.memory.unsentBytes),
  int('pkt_avail', (s) => s.of.memory.usedBytes),
  none('send_avail'),
]

const allSockets = (view: ProxyView): Socket[] => [...clientSockets(view), ...serverSockets(view)]

/** How many clients have each key. */
function countClients(view: ProxyView, keyOf: (client: ClientView) => string): Map<string, number> {
  const counts = new Map<string, number>()
  for (const client of view.clients()) {
    const key = keyOf(client)
    counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  return counts
}

interface PoolRow {
  readonly pool: PoolView
  readonly clients: number
}

/** Clients with a server, and those that ask for none. */
const clientsOf = ({ pool, clients }: PoolRow): number => Math.max(0, clients - pool.clientsWaiting)

function poolRows(view: ProxyView): PoolRow[] {
  const clients = countClients(view, userPoolKey)
  return userPools(view).map((pool) => ({ pool, clients: clients.get(userPoolKey(pool)) ?? 0 }))
}

const pools = table<PoolRow>(
  [
    text('database', ({ pool }) => pool.database),
    text('user', ({ pool }) => pool.user),
    int('cl_active', clientsOf),
    int('cl_waiting', ({ pool }) => pool.clientsWaiting),
    none('cl_active_cancel_req'),
    none('cl_waiting_cancel_req'),
    int('sv_active', ({ pool }) => pool.active + pool.idleInTransaction),
    none('sv_active_cancel'),
    none('sv_being_canceled'),
    int('sv_idle', ({ pool }) => pool.idle),
    none('sv_used'),
    none('sv_tested'),
    int('sv_login', ({ pool }) => pool.opening),
    int('maxwait', ({ pool }) => secondsOf(pool.maxWaitMs)),
    int('maxwait_us', ({ pool }) => microsOf(pool.maxWaitMs)),
    text('pool_mode', ({ pool }) => pool.poolerMode),
    unknown('load_balance_hosts'),
  ],
  poolRows,
)

interface DatabaseRow extends DatabaseView {
  readonly clients: number
}

const databases = table<DatabaseRow>(
  [
    text('name', (d) => d.name),
    text('host', (d) => d.host),
    int('port', (d) => d.port),
    text('database', (d) => d.database),
    text('force_user', (d) => d.forceUser ?? null),
    int('pool_size', (d) => d.poolSize),
    int('min_pool_size', (d) => d.minPoolSize),
    int('reserve_pool_size', (d) => d.reservePoolSize),
    int('server_lifetime', (d) => secondsOf(d.serverLifetimeMs)),
    text('pool_mode', (d) => d.poolMode),
    unknown('load_balance_hosts'),
    none('max_connections'),
    int('current_connections', (d) => d.currentConnections),
    none('max_client_connections'),
    int('current_client_connections', (d) => d.clients),
    int('paused', (d) => (d.isPaused ? 1 : 0)),
    int('disabled', (d) => (d.isDisabled ? 1 : 0)),
  ],
  (view) => {
    const clients = countClients(view, ({ database }) => database)
    return view
      .databases()
      .map((database) => ({ ...database, clients: clients.get(database.name) ?? 0 }))
  },
)

interface UserRow {
  readonly name: string
  readonly poolMode: string
  readonly servers: number
  readonly clients: number
}

const users = table<UserRow>(
  [
    text('name', (u) => u.name),
    unknown('pool_size'),
    unknown('reserve_pool_size'),
    text('pool_mode', (u) => u.poolMode),
    none('max_user_connections'),
    int('current_connections', (u) => u.servers),
    none('max_user_client_connections'),
    int('current_client_connections', (u) => u.clients),
  ],
  (view) => {
    const pools = view.pools()
    const clients = countClients(view, ({ user }) => user)
    return view.users().map(({ name, poolMode }) => ({
      name,
      poolMode,
      servers: pools.filter(({ user }) => user === name).reduce((sum, { total }) => sum + total, 0),
      clients: clients.get(name) ?? 0,
    }))
  },
)

/** PgBouncer has no word for a limit that is none. */
const plainValue = (value: string): string => (value === 'unlimited' ? '0' : value)

const config = table<ConfigView>(
  [
    text('key', (c) => c.name),
    text('value', (c) => plainValue(c.value)),
    text('default', (c) => plainValue(c.fallback)),
    text('changeable', (c) => (c.isReloadable ? 'yes' : 'no')),
  ],
  (view) => view.config(),
)

/** A table of ours without what PgBouncer does not have, whole numbers being as wide as there. */
function narrowed(table: ShowTable, columns: Readonly<Record<string, ColumnType>>): ShowTable {
  const wanted = Object.entries(columns).map(([name, type]) => ({ name, type }))
  const places = wanted.map(({ name }) => table.columns.findIndex((column) => column.name === name))
  return {
    columns: wanted,
    rows: (view) => table.rows(view).map((row) => places.map((i) => row[i] ?? null)),
  }
}

/** Peers are written into a pgbouncer.ini; a `serve` needs none (SHOW PEERS on the other databases). */
const peers = table<never>(
  [none('peer_id'), unknown('host'), none('port'), none('pool_size')],
  () => [],
)

/** In place of the tables of the same name. */
export const pgbouncerTables: Readonly<Record<string, ShowTable>> = {
  clients: table(socketColumns, clientSockets),
  servers: table(socketColumns, serverSockets),
  sockets: table([...socketColumns, ...bufferColumns], allSockets),
  active_sockets: table([...socketColumns, ...bufferColumns], (view) =>
    allSockets(view).filter(({ state }) => state !== 'idle'),
  ),
  pools,
  databases,
  users,
  config,
  ...statsTables,
  peers,
  lists: narrowed(plainTables.lists, { list: 'text', items: 'int4' }),
  peer_pools: narrowed(insideTables.peer_pools, {
    peer_id: 'int4',
    cl_active_cancel_req: 'int4',
    cl_waiting_cancel_req: 'int4',
    sv_active_cancel: 'int4',
    sv_login: 'int4',
  }),
  dns_hosts: narrowed(insideTables.dns_hosts, { hostname: 'text', ttl: 'int8', addrs: 'text' }),
  dns_zones: narrowed(insideTables.dns_zones, { zonename: 'text', serial: 'int8', count: 'int4' }),
}
