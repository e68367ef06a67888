/**
 * What a client's session asks of the house around it. `proxy/` builds one and hands it to `acceptClient`;
 * it may be exchanged as a whole by RELOAD: sessions keep the object that they logged in with until `reloaded`.
 */
import type { Clock } from '../base/clock.js'
import type { Log } from '../base/log.js'
import type { ShardDifference } from '../catalog/read-habits.js'
import type { DeadlockParty } from '../executor/deadlock-graph.js'
import type { Pipelines } from '../executor/pipeline/pipelines.js'
import type { RequestTimes } from '../metrics/request-times.js'
import type { StatementBook } from '../metrics/statement-book.js'
import type { PlannedStatement, QueryPlanner } from '../plan/plan.js'
import type { ShardPools } from '../pool/shard-pools.js'
import type { ConnectionMemory, ServerConnection } from '../server/server-connection.js'
import type { StatementRegistry } from '../server/shared-statement.js'
import type { EpochAccess } from './epoch-access.js'
import type { ListenSource } from './listen/listening.js'
import type { LoginRequest, LoginRules } from './login/login-rules.js'

/** Figures of one client that the console shows; the session writes, the console reads. */
export interface ClientFigures {
  queries: number
  transactions: number
  /** Of them, those that two-phase commit ended. */
  twoPhase: number
  errors: number
  bytesReceived: number
  bytesSent: number
  /** Milliseconds, summed. */
  waitMs: number
  queryMs: number
  transactionMs: number
  /** Of it, waiting for the client. */
  idleTransactionMs: number
}

/** What a client keeps, for the console. */
export interface ClientHoldings {
  /** Those that it has now. */
  readonly servers: readonly ServerConnection[]
  readonly memory: ConnectionMemory
}

/** What the registry of clients sees of a session. */
export interface ClientHandle {
  readonly user: string
  readonly database: string
  readonly address: string
  readonly port: number
  readonly encrypted: boolean
  readonly connectedAtMs: number
  readonly figures: ClientFigures
  /** The value of application_name now. */
  readonly applicationName: string
  /** `idle`, `active`, `waiting` (for a server) or `idle in transaction`. */
  readonly state: 'idle' | 'active' | 'waiting' | 'idle in transaction'
  /** What it waits for while its state is `waiting`. */
  readonly waitsFor?: string | undefined
  /** Why it keeps its server; empty when it does not. */
  readonly pins: readonly string[]
  readonly preparedStatements: number
  readonly holdings: ClientHoldings
  readonly lastRequestAtMs: number
  /** Cancels what runs now, if anything does; kept when no statement that the client sends from then on can be hit. */
  cancel(): void | Promise<void>
  /** Ends the session with FATAL 57P01 as soon as no transaction is open, at once when `now`. */
  end(now: boolean): void
  /** True when it holds no server and nothing runs. */
  readonly isQuiet: boolean
}

/** Given to a client at login. */
export interface ClientIdentity {
  readonly id: number
  readonly processId: number
  /** 4 bytes for protocol 3.0, up to 32 for 3.2; random and unguessable. */
  readonly cancelKey: Buffer
  /** Must be called once, when the client has gone. */
  leave(): void
}

/** Hears of requests that took `minMs` or longer. */
export interface SlowLog {
  readonly minMs: number
  report(
    request: {
      readonly requestClass: number
      readonly shard: number
      readonly failed: boolean
      readonly only: PlannedStatement | undefined
    },
    elapsedMs: number,
  ): void
}

/** One database as one user sees it. */
export interface DatabaseAccess {
  readonly pools: ShardPools
  readonly planner: QueryPlanner
  readonly statements: StatementRegistry
  /** Told of requests that take long. Absent: nobody wants to know. */
  readonly slow?: SlowLog
  /** Takes the time of each request. Absent: nobody wants to know. */
  readonly times?: RequestTimes
  /** Where its statements are noted. Absent: nowhere. */
  readonly seen?: StatementBook
  /** Absent: nobody follows moves of the database. */
  readonly epoch?: EpochAccess
  /** Absent: every request gets a server of its own. */
  readonly pipelines?: Pipelines
  readonly poolerMode: 'transaction' | 'session' | 'statement'
  readonly crossShardWrites: 'two_phase' | 'best_effort' | 'error'
  /** Told of the clients that may hold servers of several shards. Absent: nobody looks for their deadlocks. */
  readonly deadlocks?: { enter(party: DeadlockParty): void; leave(party: DeadlockParty): void }
  /** SERIALIZABLE over several shards: refused, or serializable on each of them only. */
  readonly crossShardSerializable: 'error' | 'per_shard'
  /** `[rewrite]`: an INSERT of rows of several shards is cut; an UPDATE of the key moves rows. */
  readonly rewrites: { readonly splitsInserts: boolean; readonly movesRows: boolean }
  /** Reads of reference tables stay on one shard for a client, while it is up. */
  readonly readsOneShard: boolean
  /** Commits what several servers have written, as one: all or none (executor/two-phase.ts); gives the shards that will commit a little later. @throws the refusal, after rolling back everywhere */
  commitTwoPhase(
    parts: readonly {
      readonly shard: number
      readonly server: ServerConnection
      readonly cannotPrepare: boolean
    }[],
    /** Told of the key in the gids before the first PREPARE. */
    onDecision: (key: string) => void,
  ): Promise<readonly number[]>
  /** Most rows of several shards that are brought to one place for a statement. */
  readonly gatherLimits: { readonly maxRows: number; readonly maxBytes: number }
  /** Milliseconds; Infinity is off. */
  readonly limits: {
    readonly queryTimeoutMs: number
    readonly clientIdleTimeoutMs: number
    readonly clientIdleInTransactionTimeoutMs: number
    readonly rollbackTimeoutMs: number
  }
  /** search_path of a session that sets none: what `SHOW search_path` says on a fresh server. */
  readonly defaultSearchPath: readonly string[]
  /** default_transaction_isolation of such a session, as ALTER ROLE or ALTER DATABASE may have set it. */
  readonly defaultIsolation: string
  /** Absent: a client that listens keeps its server. */
  readonly listen?: ListenSource
  /** Clients are disconnected by an error that says that there was no server for them. Absent: they stay. */
  readonly dropsUnserved?: boolean
  readonly connectionRecovery: 'recover' | 'rollback_only' | 'drop'
  /** Tells that a statement changed the schema: planner and catalogue are read again, until the promise is kept. */
  schemaChanged(): void | Promise<void>
  /** What shards do otherwise than shard 0; a session may have set some of it for itself. Absent: nothing. */
  readonly shardDifferences?: () => readonly ShardDifference[]
  /** Where rows of a COPY go: undefined when the table is not known. */
  readonly copyTarget: (
    table: { schema?: string; name: string },
    searchPath: readonly string[],
  ) => CopyTarget | undefined
}

/** A table as COPY sees it. */
export interface CopyTarget {
  readonly kind: 'sharded' | 'reference' | 'unsharded'
  /** Columns in order that COPY without a list takes (no dropped or generated ones). */
  readonly columns: readonly string[]
  readonly keyColumn?: string
  readonly placer?: import('../sharding/key-placer.js').KeyPlacer
  /** Where a row belongs that leaves the key to its default; undefined: nobody knows. */
  readonly placesDefault?: () => number | undefined
  readonly shard?: number
}

/** Looks at each Query and Parse of one client before it runs. */
export interface RequestWatch {
  /** `bytes`: of the whole message. @throws SESSION_STATEMENT_SIZE */
  statement(text: () => string, bytes: number): void
}

export interface SessionEnvironment {
  /** Absent, or nothing given: nobody looks. */
  readonly watchRequests?: (user: string, database: string) => RequestWatch | undefined
  readonly clock: Clock
  readonly log: Log
  /** Milliseconds for the whole login. */
  readonly loginTimeoutMs: number
  /** TLS for clients: undefined refuses SSLRequest with N. */
  readonly tls: import('../net/tls-upgrade.js').TlsServer | undefined
  readonly tlsRequired: boolean
  /** The newest minor version of protocol 3 that the servers of a database speak; of all databases when it is not named. */
  protocolMinor(database: string | undefined): number
  /** Takes a place for a client until its login has ended: then the result is called, once. @throws PROXY_CLIENT_LIMIT */
  admitClient(user: string, database: string): () => void
  /** How this client may log in. @throws the FATAL for one that may not even try: AUTH_NO_ENTRY, AUTH_REJECTED, AUTH_CERTIFICATE_* */
  loginRules(request: LoginRequest): Promise<LoginRules>
  /** True for the name of the admin database. */
  isAdminDatabase(database: string): boolean
  /** Pools and planner; throws an EngineError (3D000) when there is none. */
  access(user: string, database: string): DatabaseAccess
  /** @throws AUTH_USER_LIMIT */
  register(client: ClientHandle, cancelKeyBytes: number): ClientIdentity
  /** Cancels the request of the client with this key, in whichever worker it is; unknown keys are ignored. */
  cancelByKey(processId: number, key: Buffer): void | Promise<void>
  /** For the salts of users that do not exist; absent: one of this process. */
  readonly saltSecret?: Buffer
  /** The console: takes frames after login. */
  openAdmin(
    client: ClientHandle,
    send: (bytes: Buffer) => void,
  ): { frame(tag: number, body: Buffer): Promise<void> }
  /** True while shutting down: idle sessions end. */
  readonly isDraining: boolean
}
