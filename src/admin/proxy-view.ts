/**
 * What the console may see of the proxy: rows, made anew at each call. The console never holds a pool or a session.
 * Times are milliseconds; the console turns them into the units of its columns.
 */
import type { StatementRow } from '../metrics/statement-book.js'

export interface ClientView {
  /** Number of the worker that it is connected to; 0 in a proxy of one process. */
  readonly worker: number
  readonly id: number
  readonly user: string
  readonly database: string
  readonly address: string
  readonly port: number
  readonly state: string
  readonly isEncrypted: boolean
  readonly applicationName: string
  /** Since the epoch. */
  readonly connectedAtMs: number
  readonly lastRequestAtMs: number
  readonly queries: number
  readonly transactions: number
  readonly twoPhase: number
  readonly errors: number
  readonly bytesReceived: number
  readonly bytesSent: number
  readonly waitMs: number
  readonly queryMs: number
  readonly transactionMs: number
  readonly idleTransactionMs: number
  /** What it waits for, when it does. */
  readonly waitsFor?: string
  /** Why it keeps its server. */
  readonly pins: readonly string[]
  readonly preparedStatements: number
  readonly memory: MemoryView
}

/** Bytes that a connection keeps in memory. */
export interface MemoryView {
  /** Of messages that are not whole yet, and what is set aside for them. */
  readonly usedBytes: number
  readonly setAsideBytes: number
  /** Waiting to be sent. */
  readonly unsentBytes: number
  readonly preparedBytes: number
}

export interface PoolPlaceView {
  readonly worker: number
  readonly poolId: number
  readonly database: string
  readonly user: string
  readonly address: string
  readonly port: number
  readonly shard: number
  readonly role: string
}

/** What a pool has done since the start, or in a period. */
export interface PoolTotals {
  /** Errored connections. */
  readonly errors: number
  readonly checkouts: number
  readonly waitMs: number
  readonly connectMs: number
  readonly connects: number
  readonly connectAttempts: number
  readonly traffic: TrafficView
}

export interface PoolView extends PoolPlaceView, PoolTotals {
  readonly clientsActive: number
  readonly clientsWaiting: number
  readonly idle: number
  readonly active: number
  readonly idleInTransaction: number
  /** Kept by clients across transactions. */
  readonly locked: number
  readonly opening: number
  readonly total: number
  readonly minSize: number
  readonly maxSize: number
  readonly maxWaitMs: number
  readonly poolerMode: string
  readonly isPaused: boolean
  readonly isBanned: boolean
  readonly banReason: string | undefined
  /** Infinity: until it is lifted by hand. */
  readonly banLeftMs: number | undefined
  readonly isHealthy: boolean
  readonly isOnline: boolean
  /** Servers that came back out of step: thrown away, and of them those that were brought to their end. */
  readonly outOfSync: number
  readonly forceClosed: number
  readonly waits: PercentilesView
  readonly connectTimes: PercentilesView
  /** In the last whole `stats_period`; absent before the first has ended. */
  readonly recent?: PoolTotals & { readonly seconds: number }
  /** Its user may change the schema (`schema_admin`). */
  readonly isSchemaAdmin: boolean
  /** Absent when its host is not watched. */
  readonly replication?: ReplicationView
}

/** What a host last said of itself, plain enough for another process. */
export interface ReplicationView {
  /** As PostgreSQL writes it: `0/15D68A0`. */
  readonly lsn: string
  readonly timeline: number
  readonly isInRecovery: boolean
  /** Since it said so. */
  readonly ageMs: number
  readonly lagMs: number | undefined
  readonly lagBytes: number | undefined
}

/** Milliseconds. */
export interface PercentilesView {
  readonly p50Ms: number
  readonly p95Ms: number
  readonly p99Ms: number
  readonly maxMs: number
}

/** What went over servers, since the proxy started. */
export interface TrafficView {
  readonly transactions: number
  readonly queries: number
  readonly received: number
  readonly sent: number
  /** Statements of clients. */
  readonly reads: number
  readonly writes: number
  /** Uses of a prepared statement that a server had already, and those for which it was prepared. */
  readonly preparedHits: number
  readonly preparedMisses: number
  readonly preparedEvictions: number
  readonly preparedCloses: number
  readonly errors: number
  readonly rollbacks: number
  readonly cleaned: number
  readonly resynced: number
  readonly checks: number
  readonly rowsInserted: number
  readonly rowsUpdated: number
  readonly rowsDeleted: number
}

export interface ServerView extends PoolPlaceView {
  readonly state: string
  readonly processId: number
  readonly ageMs: number
  readonly idleMs: number
  /** Of the client that holds it. */
  readonly clientId: number | undefined
  readonly memory: MemoryView
  /** Replies are still owed. */
  readonly isWaiting: boolean
  readonly isEncrypted: boolean
  readonly preparedStatements: number
  readonly applicationName: string
  readonly traffic: TrafficView
}

/** A channel of LISTEN through transaction pools. */
export interface ListenerView {
  readonly worker: number
  readonly database: string
  /** As whom the proxy listens. */
  readonly user: string
  readonly shard: number
  readonly channel: string
  readonly listeners: number
  readonly received: number
  /** Clients that were disconnected because they did not read. */
  readonly dropped: number
}

export interface DatabaseView {
  readonly name: string
  readonly host: string
  readonly port: number
  readonly database: string
  readonly forceUser: string | undefined
  readonly shard: number
  readonly role: string
  readonly weight: number
  readonly poolSize: number
  readonly minPoolSize: number
  readonly reservePoolSize: number
  readonly poolMode: string
  readonly serverLifetimeMs: number
  readonly currentConnections: number
  readonly isPaused: boolean
  readonly isDisabled: boolean
}

/** Sums over the clients of one user on one database, gone ones too. */
export interface UsageView extends UsageTotals {
  readonly worker: number
  readonly database: string
  readonly user: string
  /** In the last whole `stats_period`; absent before the first has ended. */
  readonly recent?: UsageTotals & { readonly seconds: number }
}

export interface UsageTotals {
  readonly queries: number
  readonly transactions: number
  readonly twoPhase: number
  readonly errors: number
  readonly bytesReceived: number
  readonly bytesSent: number
  readonly waitMs: number
  readonly queryMs: number
  readonly transactionMs: number
  readonly idleTransactionMs: number
}

/** Times of requests of one class on one shard, of one user on one database. */
export interface TimesView {
  readonly worker: number
  readonly database: string
  readonly user: string
  /** read, write, scatter, merge, gather, split, everywhere, copy, explain, two_phase or control. */
  readonly requestClass: string
  /** -1: none, or several. */
  readonly shard: number
  /** Of each bucket of TIME_BOUNDS by itself, and of what is longer. */
  readonly counts: readonly number[]
  readonly sumMs: number
}

/** All statements of one text without literals, since the start or until it was pushed out. */
export interface StatementView extends StatementRow {
  readonly database: string
}

export interface ConfigView {
  readonly name: string
  readonly value: string
  /** `pgdog.toml:12`, `environment …` or `default`. */
  readonly source: string
  /** What counts where nothing is written; empty: none. */
  readonly fallback: string
  /** A new value counts after RELOAD. */
  readonly isReloadable: boolean
}

/** One process of the proxy. */
export interface WorkerView {
  readonly worker: number
  readonly processId: number
  /** `ready`, `starting`, `draining` or `silent`: it does not answer. */
  readonly state: string
  readonly uptimeMs: number
  /** How often a process in this place was replaced. */
  readonly replaced: number
  readonly clients: number
  /** Its share of max_client_conn and of max_db_connections; Infinity: unlimited. */
  readonly maxClients: number
  readonly maxServers: number
  readonly cancels: number
  /** Cancels for clients of other workers. */
  readonly cancelsForwarded: number
  readonly cpuMs: number
  readonly memoryBytes: number
  /** After SUSPEND. */
  readonly isSuspended: boolean
}

/** A prepared transaction that waits for its end, or (`unavailable`) a user who may not write on several shards. */
export interface TransactionView {
  readonly database: string
  readonly user: string
  /** The gid; empty for `unavailable`. */
  readonly name: string
  readonly state: 'prepared' | 'unavailable'
  readonly shard?: number
  readonly ageMs?: number
  /** Why it is still there, or not allowed. */
  readonly reason: string
}

/** One database as the epochs say it, seen by one process. */
export interface TopologyView {
  readonly database: string
  /** Its row in pgshard.proxy. */
  readonly proxyId: string
  readonly epoch: number
  /** `serving`, `inactive` (another side has the truth, or will), `held` (nobody knows yet) or `fenced` (held in vain). */
  readonly state: string
  /** Since it was looked at. */
  readonly ageMs: number
  readonly worker: number
}

/** Another `serve` of a database whose shards keep the registry of `setup`. */
export interface PeerView {
  readonly address: string
  /** Since the epoch, by the clock of the database. */
  readonly seenAtMs: number
  readonly version: string
  readonly database: string
}

/** A prepared statement that clients share. */
export interface PreparedView {
  readonly worker: number
  readonly database: string
  readonly name: string
  readonly text: string
  /** How often clients have prepared it. */
  readonly uses: number
  readonly bytes: number
}

/** A statement whose plan is kept. */
export interface PlanView {
  readonly worker: number
  readonly database: string
  readonly text: string
  readonly hits: number
  /** Of them, for one shard and for several. */
  readonly direct: number
  readonly several: number
}

/** Statements of one user of a database that are repeated on another database. */
export interface MirrorView {
  readonly worker: number
  readonly database: string
  readonly user: string
  readonly total: number
  readonly mirrored: number
  readonly dropped: number
  readonly errors: number
  readonly queueLength: number
}

/** A host name whose addresses are kept for `dns_ttl`. */
export interface NameView {
  readonly worker: number
  readonly name: string
  readonly addresses: readonly string[]
  readonly ttlMs: number
}

export interface ProxyView {
  readonly version: string
  /** The same for all processes of one `serve`. */
  readonly instanceId: string
  /** Since the epoch, of this moment. */
  nowMs(): number
  /** Milliseconds since the proxy started. */
  uptimeMs(): number
  clients(): readonly ClientView[]
  pools(): readonly PoolView[]
  servers(): readonly ServerView[]
  listeners(): readonly ListenerView[]
  databases(): readonly DatabaseView[]
  users(): readonly { readonly name: string; readonly poolMode: string }[]
  usage(): readonly UsageView[]
  times(): readonly TimesView[]
  statements(): readonly StatementView[]
  prepared(): readonly PreparedView[]
  plans(): readonly PlanView[]
  names(): readonly NameView[]
  mirrors(): readonly MirrorView[]
  config(): readonly ConfigView[]
  workers(): readonly WorkerView[]
  /** As the sweep of a moment ago has found them. */
  transactions(): readonly TransactionView[]
  /** Databases whose shards keep an epoch. */
  topology(): readonly TopologyView[]
}
