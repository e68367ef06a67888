/** The console's view of the proxy: turns pools, clients and configuration into rows. Changes nothing. */
import type {
  ClientView,
  ConfigView,
  DatabaseView,
  PoolPlaceView,
  PoolView,
  ProxyView,
  ServerView,
  WorkerView,
} from '../../admin/proxy-view.js'
import type { Clock } from '../../base/clock.js'
import type { LoadedConfig, ShownValue } from '../../config/loaded-config.js'
import { keyHabits } from '../../config/show-config.js'
import type { Pools } from '../../pool/pool-map.js'
import type { ServerPool } from '../../pool/server-pool.js'
import type { ServerConnection } from '../../server/server-connection.js'
import { TX_IDLE } from '../../wire/tags.js'
import type { Cancels } from '../clients/cancels.js'
import type { ClientRegistry } from '../clients/client-registry.js'
import type { ListenHubs } from '../clients/listen-hubs.js'
import type { TwoPhaseCommits } from '../databases/two-phase-commits.js'
import { sharedId, type WorkerPlace } from '../fleet.js'
import { type Observed, poolKey, totalsOf, usageKey } from '../observe/observed.js'
import type { TopologyWatch } from '../topology/topology-watch.js'
import { replicationOf } from './replication-view.js'
import type { Standing } from './standing.js'

export interface ViewSources {
  readonly version: string
  readonly clock: Clock
  readonly startedAtMs: number
  readonly pools: Pools
  readonly clients: ClientRegistry
  readonly cancels: Cancels
  readonly place: WorkerPlace
  readonly listenHubs: ListenHubs
  readonly twoPhase: Pick<TwoPhaseCommits, 'unfinished'>
  readonly topology: Pick<TopologyWatch, 'states'>
  readonly observed: Observed
  readonly standing: Standing
  readonly inside: Pick<ProxyView, 'prepared' | 'plans' | 'names' | 'mirrors' | 'instanceId'>
  isDraining(): boolean
  /** The configuration in force. */
  config(): LoadedConfig
}

export function makeView(sources: ViewSources): ProxyView {
  const { clock, pools, clients, place, listenHubs, observed } = sources
  return {
    version: sources.version,
    nowMs: () => clock.nowMs(),
    uptimeMs: () => clock.monotonicMs() - sources.startedAtMs,
    clients: () => [...clients.all()].map(({ id, client }) => clientRow(place, id, client)),
    pools: () => {
      const looked = { nowMs: clock.monotonicMs(), holders: holdersOf(clients), observed }
      return [...pools.all()].map((pool) => poolRow(place, pool, looked))
    },
    servers: () => {
      const holders = holdersOf(clients)
      const own = [...pools.all()].flatMap((pool) => serverRows(place, pool, holders))
      return [...own, ...listenHubs.servers()]
    },
    listeners: () => listenHubs.listeners(),
    databases: () => databaseRows(sources.config(), pools, sources.standing),
    users: () => userRows(sources.config()),
    usage: () =>
      clients.usage().map((usage) => {
        const recent = observed.recent.usage(usageKey(usage))
        return { worker: place.number, ...usage, ...(recent ? { recent } : {}) }
      }),
    times: () => observed.times.rows(place.number),
    ...sources.inside,
    statements: () => observed.statements.rows(),
    config: () => configRows(sources.config()),
    workers: () => [workerRow(sources)],
    transactions: () => [...sources.twoPhase.unfinished()],
    topology: () => [...sources.topology.states()].map((one) => ({ ...one, worker: place.number })),
  }
}

function workerRow(sources: ViewSources): WorkerView {
  const { user, system } = process.cpuUsage()
  const { general } = sources.config()
  return {
    worker: sources.place.number,
    processId: process.pid,
    state: sources.isDraining() ? 'draining' : 'ready',
    uptimeMs: sources.clock.monotonicMs() - sources.startedAtMs,
    replaced: 0,
    clients: sources.clients.size,
    maxClients: general.maxClientConn,
    maxServers: general.maxDbConnections,
    cancels: sources.cancels.received,
    cancelsForwarded: sources.cancels.forwarded,
    cpuMs: (user + system) / 1000,
    memoryBytes: process.memoryUsage.rss(),
    isSuspended: sources.standing.isSuspended,
  }
}

function clientRow(
  place: WorkerPlace,
  id: number,
  client: ReturnType<ClientRegistry['byId']> & object,
): ClientView {
  return {
    worker: place.number,
    id: sharedId(place, id),
    user: client.user,
    database: client.database,
    address: client.address,
    port: client.port,
    state: client.state,
    isEncrypted: client.encrypted,
    applicationName: client.applicationName,
    connectedAtMs: client.connectedAtMs,
    lastRequestAtMs: client.lastRequestAtMs,
    ...client.figures,
    ...(client.waitsFor === undefined ? {} : { waitsFor: client.waitsFor }),
    pins: client.pins,
    preparedStatements: client.preparedStatements,
    memory: client.holdings.memory,
  }
}

const placeOf = (place: WorkerPlace, pool: ServerPool): PoolPlaceView => ({
  worker: place.number,
  poolId: sharedId(place, pool.id),
  database: pool.definition.database,
  user: pool.definition.user,
  address: pool.host.target.host,
  port: pool.host.target.port,
  shard: pool.shard,
  role: pool.role,
})

const isInTransaction = (server: ServerConnection): boolean =>
  server.status !== TX_IDLE && server.outstanding === 0

/** Who holds a server now. */
type Holders = ReadonlyMap<ServerConnection, { readonly id: number; readonly isPinned: boolean }>

function holdersOf(clients: ClientRegistry): Holders {
  const holders = new Map<ServerConnection, { id: number; isPinned: boolean }>()
  for (const { id, client } of clients.all())
    for (const server of client.holdings.servers)
      holders.set(server, { id, isPinned: client.pins.length > 0 })
  return holders
}

interface Looked {
  readonly nowMs: number
  readonly holders: Holders
  readonly observed: Observed
}

function poolRow(
  place: WorkerPlace,
  pool: ServerPool,
  { nowMs, holders, observed }: Looked,
): PoolView {
  const replication = replicationOf(pool.hostState, nowMs)
  const now = pool.pool.snapshot()
  const { counters, limits } = pool.pool
  const recent = observed.recent.pool(poolKey(pool))
  const lent = [...pool.pool.resources()].filter((server) => server.isLent)
  const idleInTransaction = lent.filter(({ resource }) => isInTransaction(resource)).length
  return {
    ...placeOf(place, pool),
    clientsActive: now.lent,
    clientsWaiting: now.waiting,
    idle: now.idle,
    active: now.lent - idleInTransaction,
    idleInTransaction,
    locked: lent.filter(({ resource }) => holders.get(resource)?.isPinned).length,
    opening: now.opening,
    total: now.total,
    minSize: limits.minSize,
    maxSize: limits.maxSize,
    maxWaitMs: now.maxWaitMs,
    poolerMode: pool.definition.poolerMode,
    isPaused: now.isPaused,
    isBanned: pool.isBanned,
    banReason: pool.health.ban?.reason,
    banLeftMs: pool.health.banLeftMs,
    isHealthy: pool.isHealthy,
    isOnline: now.isOnline,
    outOfSync: counters.outOfSync,
    forceClosed: counters.forceClosed,
    ...totalsOf(pool),
    isSchemaAdmin: pool.definition.schemaAdmin,
    ...(recent ? { recent } : {}),
    waits: pool.waits.summary(),
    connectTimes: pool.connects.summary(),
    ...(replication ? { replication } : {}),
  }
}

function serverRows(place: WorkerPlace, pool: ServerPool, holders: Holders): ServerView[] {
  return [...pool.pool.resources()].map(({ resource, isLent, ageMs, idleMs }) => ({
    ...placeOf(place, pool),
    state: !isLent ? 'idle' : isInTransaction(resource) ? 'idle in transaction' : 'active',
    processId: resource.processId,
    ageMs,
    idleMs,
    isEncrypted: resource.socket.encrypted,
    preparedStatements: resource.prepared.size,
    applicationName: resource.parameters.get('application_name') ?? '',
    traffic: resource.traffic,
    memory: resource.memory,
    clientId: clientOf(place, holders.get(resource)?.id),
    isWaiting: resource.outstanding > 0,
  }))
}

const clientOf = (place: WorkerPlace, id: number | undefined): number | undefined =>
  id === undefined ? undefined : sharedId(place, id)

function databaseRows(config: LoadedConfig, pools: Pools, standing: Standing): DatabaseView[] {
  const all = [...pools.all()]
  return config.databases.flatMap(({ name, shards }) =>
    shards.flatMap(({ number, hosts }) =>
      hosts.map((host) => {
        const own = all.filter(
          ({ definition, shard, host: at }) =>
            definition.database === name &&
            shard === number &&
            at.target.host === host.host &&
            at.target.port === host.port,
        )
        const snapshots = own.map(({ pool }) => pool.snapshot())
        return {
          name,
          host: host.host,
          port: host.port,
          database: host.database,
          forceUser: host.user,
          shard: number,
          role: own[0]?.role ?? host.role,
          weight: host.weight,
          poolSize: own[0]?.pool.limits.maxSize ?? config.general.defaultPoolSize,
          minPoolSize: own[0]?.pool.limits.minSize ?? config.general.minPoolSize,
          reservePoolSize: own[0]?.pool.limits.reserveSize ?? config.general.reservePoolSize,
          poolMode: own[0]?.definition.poolerMode ?? config.general.poolerMode,
          serverLifetimeMs: own[0]?.pool.limits.lifetimeMs ?? config.general.serverLifetimeMs,
          currentConnections: snapshots.reduce((sum, snapshot) => sum + snapshot.total, 0),
          isPaused: snapshots.some((snapshot) => snapshot.isPaused),
          isDisabled: standing.disabled.has(name),
        }
      }),
    ),
  )
}

function userRows(config: LoadedConfig): { name: string; poolMode: string }[] {
  const modes = new Map<string, string>()
  for (const user of config.users)
    if (!modes.has(user.name)) modes.set(user.name, user.poolerMode ?? config.general.poolerMode)
  return [...modes].map(([name, poolMode]) => ({ name, poolMode }))
}

function configRows(config: LoadedConfig): ConfigView[] {
  return config.shown
    .filter((section) => section.index === undefined)
    .flatMap(({ section, keys }) =>
      keys.map(({ key, value, source }) => {
        const { fallback, isReloadable } = keyHabits(section, key)
        return {
          name: section === 'general' ? key : `${section}_${key}`,
          value: valueText(value),
          source,
          fallback: valueText(fallback),
          isReloadable,
        }
      }),
    )
}

const valueText = (value: ShownValue): string =>
  value === null ? '' : typeof value === 'object' ? JSON.stringify(value) : String(value)
