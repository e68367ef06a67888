/** Tables of SHOW about what stands inside the proxy: sockets, memory, caches, names, other proxies. PgBouncer's and PgDog's columns first. Data, not logic. */
import type {
  ClientView,
  MemoryView,
  MirrorView,
  NameView,
  PeerView,
  PlanView,
  PreparedView,
  ProxyView,
  ServerView,
  WorkerView,
} from './proxy-view.js'
import {
  type Cell,
  type ColumnOf,
  count,
  type ShowTable,
  stamp,
  table,
  text,
} from './show-table.js'
import { averageOf, type StatsFigure, statsFigures, statsRows } from './stats-figures.js'

interface SocketRow {
  readonly type: 'C' | 'S'
  readonly of: ClientView | ServerView
  readonly connectedAtMs: number
  readonly usedAtMs: number
  readonly waitsMs: number
  readonly processId: number | null
  readonly link: string
}

/** A column of PgBouncer's that says nothing here. */
const nothing = <R>(name: string): ColumnOf<R> => ({ name, type: 'int8', value: () => 0 })
const noText = <R>(name: string): ColumnOf<R> => text(name, () => null)

const socketColumns: readonly ColumnOf<SocketRow>[] = [
  text('type', (s) => s.type),
  text('user', (s) => s.of.user),
  text('database', (s) => s.of.database),
  text('state', (s) => s.of.state),
  text('addr', (s) => s.of.address),
  count('port', (s) => s.of.port),
  noText('local_addr'),
  nothing('local_port'),
  text('connect_time', (s) => stamp(s.connectedAtMs)),
  text('request_time', (s) => stamp(s.usedAtMs)),
  count('wait', (s) => s.waitsMs / 1000),
  count('wait_us', (s) => (s.waitsMs % 1000) * 1000),
  nothing('close_needed'),
  noText('ptr'),
  text('link', (s) => s.link),
  { name: 'remote_pid', type: 'int8', value: (s) => s.processId },
  text('tls', (s) => (s.of.isEncrypted ? 'TLS' : '')),
  text('application_name', (s) => s.of.applicationName),
  nothing('recv_pos'),
  nothing('pkt_pos'),
  nothing('pkt_remain'),
  nothing('send_pos'),
  count('send_remain', (s) => s.of.memory.unsentBytes),
  count('pkt_avail', (s) => s.of.memory.usedBytes),
  nothing('send_avail'),
  count('worker', (s) => s.of.worker),
]

function socketRows(view: ProxyView): SocketRow[] {
  const now = view.nowMs()
  const ofClients = view.clients().map((client): SocketRow => {
    const waitsMs = client.state === 'waiting' ? Math.max(0, now - client.lastRequestAtMs) : 0
    const { connectedAtMs, lastRequestAtMs: usedAtMs } = client
    return { type: 'C', of: client, connectedAtMs, usedAtMs, waitsMs, processId: null, link: '' }
  })
  const ofServers = view.servers().map(
    (server): SocketRow => ({
      type: 'S',
      of: server,
      connectedAtMs: now - server.ageMs,
      usedAtMs: now - server.idleMs,
      waitsMs: 0,
      processId: server.processId,
      link: server.clientId === undefined ? '' : String(server.clientId),
    }),
  )
  return [...ofClients, ...ofServers]
}

const isAtWork = ({ of }: SocketRow): boolean => of.state !== 'idle'

type Remembered = { readonly memory: MemoryView }

const memoryColumns: readonly ColumnOf<Remembered>[] = [
  nothing('buffer_reallocs'),
  nothing('buffer_reclaims'),
  count('buffer_bytes_used', (r) => r.memory.usedBytes),
  count('buffer_bytes_alloc', (r) => r.memory.setAsideBytes),
  count('prepared_statements_bytes', (r) => r.memory.preparedBytes),
  count('net_buffer_bytes', (r) => r.memory.unsentBytes),
  count(
    'total_bytes',
    ({ memory }) => memory.setAsideBytes + memory.preparedBytes + memory.unsentBytes,
  ),
]

const where = <R extends ClientView | ServerView>(): ColumnOf<R>[] => [
  text('database', (r) => r.database),
  text('user', (r) => r.user),
  text('addr', (r) => r.address),
  count('port', (r) => r.port),
]

/** Sums over all pools: PgBouncer's SHOW TOTALS. */
function totalRows(view: ProxyView): { name: string; value: number }[] {
  const rows = statsRows(view)
  const sum = (of: (figure: StatsFigure) => number[]) => (figure: StatsFigure) =>
    of(figure).reduce((total, one) => total + one, 0)
  const totals = sum((figure) => rows.map(figure.of))
  const averages = sum((figure) => rows.map((row) => averageOf(figure, row)))
  return [
    ...statsFigures.map((figure) => ({ name: `total_${figure.name}`, value: totals(figure) })),
    ...statsFigures.map((figure) => ({ name: `avg_${figure.name}`, value: averages(figure) })),
  ]
}

/** PgBouncer's three words; `active` while neither of the others. */
function stateRows(view: ProxyView): { key: string; value: string }[] {
  const pools = view.pools()
  const isPaused = pools.length > 0 && pools.every((pool) => pool.isPaused)
  const isSuspended = view.workers().some((worker) => worker.isSuspended)
  const said = (isIt: boolean) => (isIt ? 'yes' : 'no')
  return [
    { key: 'active', value: said(!isPaused && !isSuspended) },
    { key: 'paused', value: said(isPaused && !isSuspended) },
    { key: 'suspended', value: said(isSuspended) },
  ]
}

export const insideTables = {
  sockets: table(socketColumns, socketRows),
  active_sockets: table(socketColumns, (view) => socketRows(view).filter(isAtWork)),
  client_memory: table<ClientView>(
    [count('client_id', (c) => c.id), ...where<ClientView>(), ...memoryColumns],
    (view) => view.clients(),
  ),
  server_memory: table<ServerView>(
    [
      count('pool_id', (s) => s.poolId),
      ...where<ServerView>(),
      count('remote_pid', (s) => s.processId),
      ...memoryColumns,
    ],
    (view) => view.servers(),
  ),
  prepared: table<PreparedView>(
    [
      text('name', (p) => p.name),
      text('statement', (p) => p.text),
      noText('rewrite'),
      count('used_by', (p) => p.uses),
      count('memory_used', (p) => p.bytes),
      text('database', (p) => p.database),
      count('worker', (p) => p.worker),
    ],
    (view) => view.prepared(),
  ),
  query_cache: table<PlanView>(
    [
      text('query', (p) => p.text),
      count('hits', (p) => p.hits),
      count('direct', (p) => p.direct),
      count('multi', (p) => p.several),
      text('database', (p) => p.database),
      count('worker', (p) => p.worker),
    ],
    (view) => view.plans(),
  ),
  mirrors: table<MirrorView>(
    [
      text('database', (m) => m.database),
      text('user', (m) => m.user),
      count('total_count', (m) => m.total),
      count('mirrored_count', (m) => m.mirrored),
      count('dropped_count', (m) => m.dropped),
      count('error_count', (m) => m.errors),
      count('queue_length', (m) => m.queueLength),
      count('worker', (m) => m.worker),
    ],
    (view) => view.mirrors(),
  ),
  dns_hosts: table<NameView>(
    [
      text('hostname', (n) => n.name),
      count('ttl', (n) => n.ttlMs / 1000),
      text('addrs', (n) => n.addresses.join(',')),
      count('worker', (n) => n.worker),
    ],
    (view) => view.names(),
  ),
  dns_zones: table<never>([noText('zonename'), nothing('serial'), nothing('count')], () => []),
  peer_pools: table<never>(
    [
      nothing('peer_id'),
      nothing('cl_active_cancel_req'),
      nothing('cl_waiting_cancel_req'),
      nothing('sv_active_cancel'),
      nothing('sv_login'),
    ],
    () => [],
  ),
  mem: table<WorkerView>(
    [
      text('name', (w) => `worker ${w.worker}`),
      nothing('size'),
      count('used', (w) => w.memoryBytes),
      nothing('free'),
      count('memtotal', (w) => w.memoryBytes),
    ],
    (view) => view.workers(),
  ),
  state: table<{ key: string; value: string }>(
    [text('key', (s) => s.key), text('value', (s) => s.value)],
    stateRows,
  ),
  totals: table<{ name: string; value: number }>(
    [text('name', (t) => t.name), count('value', (t) => t.value)],
    totalRows,
  ),
  instance_id: table<string>([text('instance_id', (id) => id)], (view) => [view.instanceId]),
} satisfies Readonly<Record<string, ShowTable>>

const peerColumns: readonly ColumnOf<PeerView>[] = [
  text('addr', (p) => p.address),
  text('last_seen', (p) => stamp(p.seenAtMs)),
  { name: 'clients', type: 'int8', value: () => null },
  text('version', (p) => p.version),
  text('database', (p) => p.database),
]

/** Asked of the databases when it is shown. */
export const peerTable = {
  columns: peerColumns,
  rows: (peers: readonly PeerView[]): Cell[][] =>
    peers.map((peer) => peerColumns.map((column) => column.value(peer))),
}
