/** What sessions ask of the proxy, answered from the configuration in force. One object for the life of the proxy; RELOAD changes what it answers. */
import type { AdminSession } from '../admin/admin-session.js'
import { openAdminSession } from '../admin/admin-session.js'
import type { ConsoleControl } from '../admin/move-control.js'
import type { ProxyView } from '../admin/proxy-view.js'
import type { Clock } from '../base/clock.js'
import type { Log } from '../base/log.js'
import type { LoadedConfig, User } from '../config/loaded-config.js'
import { engineError } from '../errors/engine-error.js'
import type { PipelineLimits } from '../executor/pipeline/lane-owner.js'
import { Pipelines } from '../executor/pipeline/pipelines.js'
import type { Pools } from '../pool/pool-map.js'
import type { UserPools } from '../pool/user-pools.js'
import type {
  ClientHandle,
  ClientIdentity,
  DatabaseAccess,
  SessionEnvironment,
} from '../session/environment.js'
import type { Cancels } from './clients/cancels.js'
import type { ClientRegistry } from './clients/client-registry.js'
import type { ListenHubs } from './clients/listen-hubs.js'
import { requestWatches } from './clients/request-watch.js'
import type { Standing } from './console/standing.js'
import type { TwoPhaseCommits } from './databases/two-phase-commits.js'
import type { DeadlockWatch } from './deadlocks/deadlock-watch.js'
import type { InForce } from './in-force.js'
import type { AuthQueries } from './logins/auth-queries.js'
import type { Guests } from './logins/guests.js'
import { loginRulesFor } from './logins/login-rules.js'
import type { Observed } from './observe/observed.js'
import { slowLogFor } from './observe/slow-log.js'
import type { TopologyWatch } from './topology/topology-watch.js'

export interface EnvironmentParts {
  readonly clock: Clock
  /** 0 ≤ x < 1. */
  readonly random: () => number
  readonly log: Log
  readonly pools: Pools
  readonly clients: ClientRegistry
  /** What the console sees and commands: all workers, when there are several. */
  readonly view: () => ProxyView | Promise<ProxyView>
  readonly control: ConsoleControl
  readonly cancels: Cancels
  readonly saltSecret?: Buffer
  /** Tells other workers that a statement changed the schema of a database. */
  readonly tellSchemaChanged?: (database: string) => void
  readonly guests: Guests
  readonly authQueries: AuthQueries
  inForce(): InForce
  isDraining(): boolean
  /** Absent: no transaction may write on several shards. */
  readonly twoPhase: TwoPhaseCommits
  readonly deadlocks: DeadlockWatch
  readonly topology: Pick<TopologyWatch, 'accessTo'>
  readonly listenHubs: ListenHubs
  readonly observed: Observed
  readonly standing: Standing
}

export function makeEnvironment(parts: EnvironmentParts): SessionEnvironment {
  const { clock, log, pools, view, control } = parts
  const general = () => parts.inForce().config.general
  const pipelinesOf = pipelinesIn(clock, general)
  return {
    clock,
    log,
    get loginTimeoutMs() {
      return general().clientLoginTimeoutMs
    },
    get tls() {
      return parts.inForce().tls
    },
    get tlsRequired() {
      return general().tlsClientRequired
    },
    protocolMinor: (database) => protocolMinor(parts, database),
    get isDraining() {
      return parts.isDraining()
    },
    admitClient: (_user, database) => admitClient(parts, database),
    watchRequests: requestWatches({ clock, log, general }),
    loginRules: (request) => loginRulesFor(parts, request),
    isAdminDatabase: (database) => isConsole(parts, database),
    access: (user, database) => access(parts, user, database),
    register: (client, cancelKeyBytes) => register(parts, client, cancelKeyBytes),
    cancelByKey: (processId, key) => parts.cancels.byKey(processId, key),
    ...(parts.saltSecret === undefined ? {} : { saltSecret: parts.saltSecret }),
    openAdmin: (client, send): AdminSession =>
      openAdminSession(send, view, control, { user: client.user, database: client.database }),
  }

  function access(from: EnvironmentParts, user: string, database: string): DatabaseAccess {
    const { users, knowledge } = from.inForce()
    const known = knowledge.get(database)
    const entry = users.find(user, database) ?? from.guests.find(user, database)
    const shardPools = pools.shardPools(user, database)
    if (!known || !entry || !shardPools) throw engineError('PROXY_NO_DATABASE', { database })
    known.assertReady()
    const settings = general()
    const { poolerMode } = shardPools.definition
    const listen = from.listenHubs.sourceFor(database, poolerMode)
    return {
      ...(listen ? { listen } : {}),
      pools: shardPools,
      planner: known.planner,
      epoch: from.topology.accessTo(database),
      pipelines: pipelinesOf(shardPools),
      ...observing(from, user, database),
      statements: known.statements,
      poolerMode,
      crossShardWrites: crossShardWrites(from, entry, shardPools),
      ...(shardPools.shardCount > 1 ? { deadlocks: from.deadlocks.of(shardPools) } : {}),
      ...shardHabits(from.inForce().config, database),
      commitTwoPhase: (writers, onKey) => from.twoPhase.commit(shardPools, writers, onKey),
      ...limitsOf(settings),
      defaultSearchPath: known.searchPathOf(user),
      defaultIsolation: known.isolationOf(user),
      schemaChanged: () => {
        known.statements.schemaChanged()
        from.tellSchemaChanged?.(database)
        return known.refresh()
      },
      copyTarget: known.copyTarget,
      shardDifferences: () => known.differences,
    }
  }
}

function shardHabits(
  { general, rewrite, databaseOptions }: LoadedConfig,
  database: string,
): Pick<DatabaseAccess, 'rewrites' | 'readsOneShard'> {
  const sticky = databaseOptions.get(database)?.stickyTables ?? []
  return {
    rewrites: {
      splitsInserts: rewrite.splitInserts !== 'error',
      movesRows: rewrite.shardKey !== 'error',
    },
    readsOneShard: general.omnishardedSticky || sticky.length > 0,
  }
}

/** Where the times of its requests are noted, and who hears of slow ones. */
function observing(
  { log, random, observed, inForce }: EnvironmentParts,
  user: string,
  database: string,
): Pick<DatabaseAccess, 'times' | 'seen' | 'slow'> {
  const { general } = inForce().config
  const slow = slowLogFor({ log, random, general }, { user, database })
  return {
    times: observed.times.of(user, database),
    seen: observed.statements.of(database),
    ...(slow ? { slow } : {}),
  }
}

type Limited =
  | 'limits'
  | 'gatherLimits'
  | 'crossShardSerializable'
  | 'connectionRecovery'
  | 'dropsUnserved'

const limitsOf = (settings: LoadedConfig['general']): Pick<DatabaseAccess, Limited> => ({
  gatherLimits: { maxRows: settings.gatherMaxRows, maxBytes: settings.gatherMaxBytes },
  crossShardSerializable: settings.crossShardSerializable,
  connectionRecovery: settings.connectionRecovery,
  dropsUnserved: settings.clientConnectionRecovery === 'drop',
  limits: {
    queryTimeoutMs: settings.queryTimeoutMs,
    clientIdleTimeoutMs: settings.clientIdleTimeoutMs,
    clientIdleInTransactionTimeoutMs: settings.clientIdleInTransactionTimeoutMs,
    rollbackTimeoutMs: settings.rollbackTimeoutMs,
  },
})

function admitClient(from: EnvironmentParts, database: string): () => void {
  // The console stays open to the operator who must see why.
  if (isConsole(from, database)) return () => undefined
  if (from.standing.disabled.has(database)) throw engineError('PROXY_DISABLED', { database })
  const limit = from.inForce().config.general.maxClientConn
  if (!from.clients.admit(limit)) throw engineError('PROXY_CLIENT_LIMIT', { limit })
  return () => from.clients.loggedIn()
}

/** As a direct server would answer: 3.2 came with PostgreSQL 18. Versions that nobody has seen yet count as older. */
function protocolMinor(from: EnvironmentParts, database: string | undefined): number {
  if (database !== undefined && isConsole(from, database)) return 2
  const { knowledge } = from.inForce()
  const asked = database === undefined ? [...knowledge.values()] : [knowledge.get(database)]
  return asked.every((one) => (one?.serverVersion ?? 0) >= 180_000) ? 2 : 0
}

/** Two-phase where every shard allows it; asked for by name it is only as good as the shards. */
function crossShardWrites(
  from: EnvironmentParts,
  user: User,
  shardPools: UserPools,
): DatabaseAccess['crossShardWrites'] {
  const wanted = user.crossShardWrites ?? 'two_phase'
  if (wanted !== 'two_phase') return wanted
  return from.twoPhase.allows(shardPools) ? 'two_phase' : 'error'
}

/** The pipelines of each user's pools, made when they are first asked for. */
function pipelinesIn(
  clock: Clock,
  general: () => LoadedConfig['general'],
): (user: UserPools) => Pipelines {
  const known = new WeakMap<UserPools, Pipelines>()
  const limits = pipelineLimits(general)
  return (user) => {
    const pipelines = known.get(user) ?? new Pipelines(user, { clock, limits })
    known.set(user, pipelines)
    return pipelines
  }
}

/** Those in force, made anew when RELOAD has brought another configuration. */
function pipelineLimits(general: () => LoadedConfig['general']): () => PipelineLimits {
  let of: LoadedConfig['general'] | undefined
  let made: PipelineLimits = { depth: 0, stallMs: 20, replyBufferBytes: 0 }
  return () => {
    const now = general()
    if (now === of) return made
    of = now
    const { pipelineDepth: depth, pipelineStallMs: stallMs, pipelineReplyBufferBytes } = now
    made = { depth, stallMs, replyBufferBytes: pipelineReplyBufferBytes }
    return made
  }
}

const isConsole = (parts: EnvironmentParts, database: string): boolean =>
  parts.inForce().config.admin.names.includes(database)

/** @throws AUTH_USER_LIMIT */
function register(
  parts: EnvironmentParts,
  client: ClientHandle,
  cancelKeyBytes: number,
): ClientIdentity {
  const isAdmin = isConsole(parts, client.database)
  if (!isAdmin) assertUserLimit(parts, client)
  const identity = parts.clients.register(client, isAdmin, cancelKeyBytes)
  return isAdmin ? identity : loggedComing(parts, client, identity)
}

/** Says who comes and who goes (`log_connections`, `log_disconnections`). */
function loggedComing(
  { log, clock, inForce }: EnvironmentParts,
  client: ClientHandle,
  identity: ClientIdentity,
): ClientIdentity {
  const { user, database, address, port } = client
  const who = { user, database, client: `${address}:${port}` }
  const sinceMs = clock.monotonicMs()
  if (inForce().config.general.logConnections)
    log.info('client connected', { ...who, tls: client.encrypted })
  const leave = () => {
    identity.leave()
    if (!inForce().config.general.logDisconnections) return
    const seconds = Math.round(clock.monotonicMs() - sinceMs) / 1000
    log.info('client disconnected', { ...who, seconds, queries: client.figures.queries })
  }
  return { ...identity, leave }
}

/** After its login, so that nobody hears of limits who has not proved to be the user. @throws AUTH_USER_LIMIT */
function assertUserLimit(parts: EnvironmentParts, { user, database }: ClientHandle): void {
  const { config, users } = parts.inForce()
  const limit =
    users.find(user, database)?.maxUserClientConnections ?? config.general.maxUserClientConnections
  if (parts.clients.countOf(user) >= limit) throw engineError('AUTH_USER_LIMIT', { user, limit })
}
