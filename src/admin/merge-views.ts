/** The views of several workers as one: rows beside each other, what is one thing for all of them summed. Plain data can be sent between processes. */
import type {
  ClientView,
  ConfigView,
  DatabaseView,
  ListenerView,
  PoolView,
  ProxyView,
  ServerView,
  TimesView,
  TopologyView,
  TransactionView,
  UsageView,
  WorkerView,
} from './proxy-view.js'

/** Everything that a view shows, at one moment. */
export interface ViewSnapshot {
  readonly version: string
  readonly nowMs: number
  readonly uptimeMs: number
  readonly clients: readonly ClientView[]
  readonly pools: readonly PoolView[]
  readonly servers: readonly ServerView[]
  readonly listeners: readonly ListenerView[]
  readonly databases: readonly DatabaseView[]
  readonly users: readonly { readonly name: string; readonly poolMode: string }[]
  readonly usage: readonly UsageView[]
  readonly times: readonly TimesView[]
  readonly config: readonly ConfigView[]
  readonly workers: readonly WorkerView[]
  readonly transactions: readonly TransactionView[]
  readonly topology: readonly TopologyView[]
}

export function takeSnapshot(view: ProxyView): ViewSnapshot {
  return {
    version: view.version,
    nowMs: view.nowMs(),
    uptimeMs: view.uptimeMs(),
    clients: view.clients(),
    pools: view.pools(),
    servers: view.servers(),
    listeners: view.listeners(),
    databases: view.databases(),
    users: view.users(),
    usage: view.usage(),
    times: view.times(),
    config: view.config(),
    workers: view.workers(),
    transactions: view.transactions(),
    topology: view.topology(),
  }
}

/** `workers`: all of them, also those that gave no snapshot. */
export function mergeViews(
  snapshots: readonly ViewSnapshot[],
  workers: readonly WorkerView[],
): ProxyView {
  const first = snapshots[0]
  const longest = Math.max(0, ...snapshots.map(({ uptimeMs }) => uptimeMs))
  return {
    version: first?.version ?? '',
    nowMs: () => first?.nowMs ?? 0,
    uptimeMs: () => longest,
    clients: () => snapshots.flatMap(({ clients }) => clients),
    pools: () => snapshots.flatMap(({ pools }) => pools),
    servers: () => snapshots.flatMap(({ servers }) => servers),
    listeners: () => snapshots.flatMap(({ listeners }) => listeners),
    databases: () => mergeDatabases(snapshots.flatMap(({ databases }) => databases)),
    users: () => first?.users ?? [],
    usage: () => snapshots.flatMap(({ usage }) => usage),
    times: () => snapshots.flatMap(({ times }) => times),
    config: () => first?.config ?? [],
    workers: () => workers,
    transactions: () => distinctTransactions(snapshots),
    topology: () => snapshots.flatMap(({ topology }) => topology),
  }
}

/** Each worker learns by itself who may not write on several shards; prepared ones are swept by one. */
function distinctTransactions(snapshots: readonly ViewSnapshot[]): TransactionView[] {
  const all = new Map<string, TransactionView>()
  for (const row of snapshots.flatMap(({ transactions }) => transactions)) {
    all.set(JSON.stringify([row.database, row.user, row.name]), row)
  }
  return [...all.values()]
}

/** One row a host, as with one process: sizes and connections of all workers together. */
function mergeDatabases(rows: readonly DatabaseView[]): DatabaseView[] {
  const merged = new Map<string, DatabaseView>()
  for (const row of rows) {
    const key = JSON.stringify([row.name, row.shard, row.host, row.port, row.database])
    const sum = merged.get(key)
    merged.set(
      key,
      sum === undefined
        ? row
        : {
            ...sum,
            poolSize: sum.poolSize + row.poolSize,
            minPoolSize: sum.minPoolSize + row.minPoolSize,
            currentConnections: sum.currentConnections + row.currentConnections,
            isPaused: sum.isPaused || row.isPaused,
          },
    )
  }
  return [...merged.values()]
}
