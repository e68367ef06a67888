/** The views of several workers as one: rows beside each other, what is one thing for all of them summed. Plain data can be sent between processes. */
import type {
  ClientView,
  ConfigView,
  DatabaseView,
  ListenerView,
  MirrorView,
  NameView,
  PlanView,
  PoolView,
  PreparedView,
  ProxyView,
  ServerView,
  StatementView,
  TimesView,
  TopologyView,
  TransactionView,
  UsageView,
  WorkerView,
} from './proxy-view.js'

/** Everything that a view shows, at one moment. */
export interface ViewSnapshot {
  readonly version: string
  readonly instanceId: string
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
  readonly statements: readonly StatementView[]
  readonly prepared: readonly PreparedView[]
  readonly plans: readonly PlanView[]
  readonly names: readonly NameView[]
  readonly mirrors: readonly MirrorView[]
  readonly config: readonly ConfigView[]
  readonly workers: readonly WorkerView[]
  readonly transactions: readonly TransactionView[]
  readonly topology: readonly TopologyView[]
}

export function takeSnapshot(view: ProxyView): ViewSnapshot {
  return {
    version: view.version,
    instanceId: view.instanceId,
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
    statements: view.statements(),
    prepared: view.prepared(),
    plans: view.plans(),
    names: view.names(),
    mirrors: view.mirrors(),
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
    instanceId: first?.instanceId ?? '',
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
    statements: () => mergeStatements(snapshots.flatMap(({ statements }) => statements)),
    prepared: () => snapshots.flatMap(({ prepared }) => prepared),
    plans: () => snapshots.flatMap(({ plans }) => plans),
    names: () => snapshots.flatMap(({ names }) => names),
    mirrors: () => snapshots.flatMap(({ mirrors }) => mirrors),
    config: () => first?.config ?? [],
    workers: () => workers,
    transactions: () => distinctTransactions(snapshots),
    topology: () => snapshots.flatMap(({ topology }) => topology),
  }
}

function mergeStatements(rows: readonly StatementView[]): StatementView[] {
  const merged = new Map<string, StatementView>()
  for (const row of rows) {
    const key = JSON.stringify([row.database, row.text])
    const sum = merged.get(key)
    merged.set(
      key,
      sum === undefined
        ? row
        : {
            ...sum,
            count: sum.count + row.count,
            errors: sum.errors + row.errors,
            totalMs: sum.totalMs + row.totalMs,
            maxMs: Math.max(sum.maxMs, row.maxMs),
            shards: sum.shards + row.shards,
            hows: [...new Set([...sum.hows, ...row.hows])],
          },
    )
  }
  return [...merged.values()]
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
            reservePoolSize: sum.reservePoolSize + row.reservePoolSize,
            currentConnections: sum.currentConnections + row.currentConnections,
            isPaused: sum.isPaused || row.isPaused,
            isDisabled: sum.isDisabled || row.isDisabled,
          },
    )
  }
  return [...merged.values()]
}
