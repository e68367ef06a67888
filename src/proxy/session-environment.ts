/** What sessions ask of the proxy, answered from the configuration in force. One object for the life of the proxy; RELOAD changes what it answers. */
import type { AdminSession } from '../admin/admin-session.js'
import { openAdminSession } from '../admin/admin-session.js'
import type { ProxyControl } from '../admin/proxy-control.js'
import type { ProxyView } from '../admin/proxy-view.js'
import { secretsOf, type UserTable } from '../auth/user-table.js'
import type { Clock } from '../base/clock.js'
import type { Log } from '../base/log.js'
import type { LoadedConfig, User } from '../config/loaded-config.js'
import { engineError } from '../errors/engine-error.js'
import type { PipelineLimits } from '../executor/pipeline/lane-owner.js'
import { Pipelines } from '../executor/pipeline/pipelines.js'
import type { TlsServerOptions } from '../net/tls-upgrade.js'
import type { Pools } from '../pool/pool-map.js'
import type { UserPools } from '../pool/user-pools.js'
import type { DatabaseAccess, LoginRules, SessionEnvironment } from '../session/environment.js'
import type { Cancels } from './cancels.js'
import type { ClientRegistry } from './client-registry.js'
import type { Guests } from './guests.js'
import type { InForce } from './in-force.js'
import type { ListenHubs } from './listen-hubs.js'
import { loginRulesFor } from './login-rules.js'
import type { TwoPhaseCommits } from './two-phase-commits.js'

/** The configuration in force and what was made of it; replaced whole. */
export interface InForce {
  readonly config: LoadedConfig
  readonly users: UserTable<User>
  readonly knowledge: ReadonlyMap<string, DatabaseKnowledge>
  readonly tls: TlsServerOptions | undefined
}

export interface EnvironmentParts {
  readonly clock: Clock
  readonly log: Log
  readonly pools: Pools
  readonly clients: ClientRegistry
  /** What the console sees and commands: all workers, when there are several. */
  readonly view: () => ProxyView | Promise<ProxyView>
  readonly control: ProxyControl
  readonly cancels: Cancels
  readonly saltSecret?: Buffer
  /** Tells other workers that a statement changed the schema of a database. */
  readonly tellSchemaChanged?: (database: string) => void
  inForce(): InForce
  isDraining(): boolean
  /** Absent: no transaction may write on several shards. */
  readonly twoPhase: TwoPhaseCommits
  readonly listenHubs: ListenHubs
}

export function makeEnvironment(parts: EnvironmentParts): SessionEnvironment {
  const { clock, log, pools, clients, view, control } = parts
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
    get isDraining() {
      return parts.isDraining()
    },
    admitClient: (_user, database) => {
      // The console stays open to the operator who must see why.
      if (isConsole(parts, database)) return () => undefined
      const limit = general().maxClientConn
      if (!clients.admit(limit)) throw engineError('PROXY_CLIENT_LIMIT', { limit })
      return () => clients.loggedIn()
    },
    loginRules: (user, database) =>
      isConsole(parts, database) ? consoleRules(parts, user) : loginRules(parts, user, database),
    isAdminDatabase: (database) => isConsole(parts, database),
    access: (user, database) => access(parts, user, database),
    register: (client) => clients.register(client, isConsole(parts, client.database)),
    cancelByKey: (processId, key) => parts.cancels.byKey(processId, key),
    ...(parts.saltSecret === undefined ? {} : { saltSecret: parts.saltSecret }),
    openAdmin: (client, send): AdminSession =>
      openAdminSession(send, view, control, { user: client.user, database: client.database }),
  }

  function access(from: EnvironmentParts, user: string, database: string): DatabaseAccess {
    const { users, knowledge } = from.inForce()
    const known = knowledge.get(database)
    const entry = users.find(user, database)
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
      pipelines: pipelinesOf(shardPools),
      statements: known.statements,
      poolerMode,
      crossShardWrites: crossShardWrites(from, entry, shardPools),
      commitTwoPhase: (writers) => from.twoPhase.commit(shardPools, writers),
      limits: {
        queryTimeoutMs: settings.queryTimeoutMs,
        clientIdleTimeoutMs: settings.clientIdleTimeoutMs,
        clientIdleInTransactionTimeoutMs: settings.clientIdleInTransactionTimeoutMs,
        rollbackTimeoutMs: settings.rollbackTimeoutMs,
      },
      defaultSearchPath: known.searchPathOf(user),
      connectionRecovery: settings.connectionRecovery,
      schemaChanged: () => {
        known.statements.schemaChanged()
        void known.refresh()
        from.tellSchemaChanged?.(database)
      },
      copyTarget: known.copyTarget,
    }
  }
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

/** The console always asks for the password, whatever `auth_type` says; without one nobody gets in. */
function consoleRules(parts: EnvironmentParts, user: string): LoginRules {
  const { admin } = parts.inForce().config
  const known = user === admin.user && admin.password !== undefined
  return {
    method: 'scram-sha-256',
    secrets: known && admin.password !== undefined ? [admin.password] : [],
    known,
  }
}

function loginRules(parts: EnvironmentParts, user: string, database: string): LoginRules {
  const { users, config } = parts.inForce()
  const entry = users.find(user, database)
  const method = methods[entry?.authType ?? config.general.authType] ?? 'scram-sha-256'
  if (entry) return { method, secrets: secretsOf(entry), known: true }
  if (config.databases.some(({ name }) => name === database)) {
    return { method, secrets: [], known: false }
  }
  // As in PostgreSQL, only who has proved to be who it is learns that there is no such database.
  const refusal = engineError('PROXY_NO_DATABASE', { database })
  return { method, secrets: users.secretsAnywhere(user), known: false, refusal }
}

/** @throws FILE_MISSING */
export function tlsToClients(config: LoadedConfig): TlsServerOptions | undefined {
  const { tlsCertificate, tlsPrivateKey, tlsClientCaCertificate } = config.general
  if (tlsCertificate === undefined || tlsPrivateKey === undefined) return undefined
  return {
    cert: readOrRefuse(tlsCertificate),
    key: readOrRefuse(tlsPrivateKey),
    ...(tlsClientCaCertificate === undefined ? {} : { ca: readOrRefuse(tlsClientCaCertificate) }),
  }
}
