/** A proxy of two pools and one client for the console, and a record of what it was asked to do. */
import type { ConsoleControl } from '../../../src/admin/move-control.js'
import type { ClientView, PoolView, ProxyView } from '../../../src/admin/proxy-view.js'
import { noTraffic } from '../../../src/server/traffic.js'

const traffic = {
  ...noTraffic(),
  transactions: 10,
  queries: 30,
  received: 1000,
  sent: 500,
  reads: 20,
  writes: 5,
  preparedHits: 4,
  preparedMisses: 2,
}

const recent = {
  errors: 0,
  checkouts: 7,
  waitMs: 4,
  connectMs: 2,
  connects: 5,
  connectAttempts: 6,
  traffic,
}

export const fakePool = (rest: Partial<PoolView> = {}): PoolView => ({
  worker: 0,
  poolId: 1,
  database: 'app',
  user: 'alice',
  address: '10.0.0.1',
  port: 5432,
  shard: 0,
  role: 'primary',
  clientsActive: 2,
  clientsWaiting: 1,
  idle: 3,
  active: 1,
  idleInTransaction: 1,
  locked: 0,
  opening: 0,
  total: 5,
  minSize: 1,
  maxSize: 10,
  maxWaitMs: 1234.5,
  poolerMode: 'transaction',
  isPaused: false,
  isBanned: false,
  banReason: undefined,
  banLeftMs: undefined,
  isHealthy: true,
  isOnline: true,
  errors: 0,
  outOfSync: 0,
  forceClosed: 0,
  checkouts: 7,
  waitMs: 4,
  connectMs: 2,
  connects: 5,
  connectAttempts: 6,
  isSchemaAdmin: false,
  waits: { p50Ms: 1, p95Ms: 2, p99Ms: 3, maxMs: 4 },
  connectTimes: { p50Ms: 1, p95Ms: 2, p99Ms: 3, maxMs: 4 },
  traffic,
  recent: { ...recent, seconds: 10 },
  ...rest,
})

export const fakeClient: ClientView = {
  worker: 0,
  id: 42,
  user: 'alice',
  database: 'app',
  address: '127.0.0.1',
  port: 40000,
  state: 'active',
  isEncrypted: false,
  applicationName: 'psql',
  connectedAtMs: 0,
  lastRequestAtMs: 0,
  queries: 3,
  transactions: 1,
  twoPhase: 0,
  errors: 0,
  bytesReceived: 10,
  bytesSent: 20,
  waitMs: 0.5,
  queryMs: 1.5,
  transactionMs: 2,
  idleTransactionMs: 1,
  pins: ['temporary object'],
  preparedStatements: 0,
  memory: { usedBytes: 1, setAsideBytes: 2, unsentBytes: 3, preparedBytes: 4 },
}

export function fakeProxy() {
  const log: string[] = []
  const view: ProxyView = {
    version: '1.2.3',
    instanceId: 'abcd1234',
    nowMs: () => 1000,
    uptimeMs: () => 10_000,
    clients: () => [fakeClient],
    pools: () => [
      fakePool(),
      fakePool({ poolId: 2, shard: 1, isBanned: true, banReason: 'refused', banLeftMs: 61_000 }),
    ],
    servers: () => [],
    listeners: () => [],
    databases: () => [],
    users: () => [{ name: 'alice', poolMode: 'transaction' }],
    usage: () => [],
    times: () => [],
    statements: () => [],
    prepared: () => [],
    plans: () => [],
    names: () => [],
    mirrors: () => [],
    config: () => [
      { name: 'port', value: '6432', source: 'default', fallback: '6432', isReloadable: false },
      {
        name: 'max_client_conn',
        value: 'unlimited',
        source: 'default',
        fallback: 'unlimited',
        isReloadable: true,
      },
    ],
    workers: () => [],
    transactions: () => [],
    topology: () => [],
  }
  const control: ConsoleControl = {
    pause: async (pools) => void log.push(`pause ${JSON.stringify(pools)}`),
    resume: (pools) => void log.push(`resume ${JSON.stringify(pools)}`),
    reconnect: (pools) => void log.push(`reconnect ${JSON.stringify(pools)}`),
    reload: async () => void log.push('reload'),
    forceReload: async () => void log.push('force reload'),
    set: async (name, value) => void log.push(`set ${name} = ${value}`),
    suspend: async () => void log.push('suspend'),
    maintenance: (isOn, database) => void log.push(`maintenance ${isOn} ${database}`),
    waitClose: async (database) => void log.push(`wait close ${database}`),
    disable: (database) => void log.push(`disable ${database}`),
    enable: (database) => void log.push(`enable ${database}`),
    healthcheck: async (id) => void log.push(`healthcheck ${id}`),
    reset: (what) => void log.push(`reset ${what}`),
    probe: async (url) => url.length,
    peers: async () => [],
    shutdown: () => void log.push('shutdown'),
    kill: (database) => void log.push(`kill ${database}`),
    killClient: (id) => void log.push(`kill client ${id}`),
    ban: (id) => void log.push(`ban ${id}`),
    unban: (id) => void log.push(`unban ${id}`),
    restartWorkers: async () => void log.push('restart workers'),
    moves: {
      begin: async (kind, from, to) => {
        log.push(`${kind} ${from} ${to}`)
        return 'a1b2c3d4'
      },
      cutover: async (task) => {
        log.push(`cutover ${task}`)
        return task ?? 'a1b2c3d4'
      },
      stop: async (task) => void log.push(`stop ${task}`),
      set: async (name, value) => void log.push(`set ${name} ${value}`),
      look: async () => ({
        tasks: [
          {
            id: 'a1b2c3d4',
            from: 'shop',
            to: 'shop_new',
            state: 'copying',
            step: 'copy',
            startedAtMs: 0,
            updatedAtMs: 61_000,
            error: null,
          },
        ],
        copies: [],
        slots: [],
      }),
    },
  }
  return { view, control, log }
}
