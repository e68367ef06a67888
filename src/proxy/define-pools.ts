/** From a loaded configuration to definitions of pools: one for each user and database. Reads certificate files; opens no connection. */
import { readFileSync } from 'node:fs'
import type { GeneralConfig, LoadedConfig, User } from '../config/loaded-config.js'
import { type PoolSettings, poolSettings } from '../config/pool-settings.js'
import { engineError } from '../errors/engine-error.js'
import type { BalancingStrategy } from '../pool/balancer.js'
import type { HostDefinition, PoolDefinition } from '../pool/definition.js'
import type { ServerTarget } from '../server/server-target.js'
import type { DatabaseTopology, Host } from '../topology/topology.js'

/** @throws PROXY_NOT_YET, FILE_MISSING */
export function definePools(config: LoadedConfig): PoolDefinition[] {
  const tls = tlsToServers(config.general)
  return config.databases.flatMap((database) => {
    // Of several entries of one user the first that names the database counts, as at login.
    const users = new Map<string, User>()
    for (const user of config.users)
      if (user.databases.includes(database.name) && !users.has(user.name))
        users.set(user.name, user)
    const layout = layoutOf(config, database.name)
    return [...users.values()].map((user) => ({
      ...definePool(config.general, database, user, tls),
      layout,
    }))
  })
}

/** Equal when the same keys live on the same shard numbers, and these on the same servers. */
export function layoutOf(config: LoadedConfig, database: string): string {
  const shards = config.databases.find(({ name }) => name === database)?.shards ?? []
  const places = shards.map(({ hosts }) =>
    hosts
      .filter((host) => !host.reshardingOnly)
      .map((host) => [host.host, host.port, host.database]),
  )
  // One shard has nothing to decide: its hosts may change under who waits.
  const sharding = config.sharding.get(database)
  return shards.length === 1 ? 'one shard' : JSON.stringify([places, sharding])
}

/** TLS for one host, or none. */
type TlsOf = (host: Host) => ServerTarget['tls']

function definePool(
  general: GeneralConfig,
  database: DatabaseTopology,
  user: User,
  tls: TlsOf,
): Omit<PoolDefinition, 'layout'> {
  const isSharded = database.shards.length > 1
  const shards = database.shards.map(({ hosts }) => ({
    hosts: hosts
      .filter((host) => !host.reshardingOnly)
      .map((host) => defineHost(general, host, user, { isSharded, tls: tls(host) })),
  }))
  const firstHost = database.shards[0]?.hosts[0]
  const mode = firstHost ? poolSettings(general, firstHost, user).mode : general.poolerMode
  return {
    user: user.name,
    database: database.name,
    shards,
    strategy: strategyOf(general),
    readWriteSplit: general.readWriteSplit,
    connect: {
      timeoutMs: general.connectTimeoutMs,
      attempts: general.connectAttempts,
      attemptDelayMs: general.connectAttemptDelayMs,
    },
    health: {
      idleCheckIntervalMs: general.idleHealthcheckIntervalMs,
      firstCheckDelayMs: general.idleHealthcheckDelayMs,
      banTimeoutMs: general.banTimeoutMs,
      checkTimeoutMs: general.healthcheckTimeoutMs,
    },
    roleCheckIntervalMs: general.lsnCheckIntervalMs,
    watchesLag: general.lsnCheckDelayMs !== Number.POSITIVE_INFINITY,
    poolerMode: mode,
  }
}

function defineHost(
  general: GeneralConfig,
  host: Host,
  user: User,
  at: { isSharded: boolean; tls: ServerTarget['tls'] },
): HostDefinition {
  const settings = poolSettings(general, host, user)
  const password = host.password ?? user.serverPassword ?? user.passwords[0]
  return {
    target: {
      host: host.host,
      port: host.port,
      user: host.user ?? user.serverUser ?? user.name,
      database: host.database,
      parameters: startupParameters(settings),
      ...(password === undefined ? {} : { password }),
      ...(at.tls ? { tls: at.tls } : {}),
    },
    role: host.role,
    weight: host.weight,
    limits: {
      minSize: settings.minSize,
      maxSize: settings.maxSize,
      // Only a transaction over several shards can wait while it holds.
      reservedForHolders: at.isSharded && settings.maxSize > 1 ? 1 : 0,
      checkoutTimeoutMs: general.checkoutTimeoutMs,
      lifetimeMs: settings.serverLifetimeMs,
      lifetimeJitterMs: settings.serverLifetimeJitterMs,
      idleTimeoutMs: settings.idleTimeoutMs,
      checkIntervalMs: general.healthcheckIntervalMs,
    },
  }
}

function startupParameters(settings: PoolSettings): Record<string, string> {
  const { statementTimeoutMs, lockTimeoutMs, readOnly } = settings
  return {
    application_name: 'pgshard',
    ...(statementTimeoutMs === undefined ? {} : { statement_timeout: String(statementTimeoutMs) }),
    ...(lockTimeoutMs === undefined ? {} : { lock_timeout: String(lockTimeoutMs) }),
    ...(readOnly ? { default_transaction_read_only: 'on' } : {}),
  }
}

function strategyOf(general: GeneralConfig): BalancingStrategy {
  const { loadBalancingStrategy: strategy } = general
  if (strategy !== 'best_response_time' && strategy !== 'server_affinity') return strategy
  throw engineError('PROXY_NOT_YET', { what: `load_balancing_strategy = "${strategy}"` })
}

/** TLS towards the servers as `tls_verify` says; never over a Unix socket. */
function tlsToServers(general: GeneralConfig): TlsOf {
  const { tlsVerify } = general
  if (tlsVerify === 'disabled') return () => undefined
  const files = {
    ...readInto('ca', general.tlsServerCaCertificate),
    ...readInto('cert', general.tlsServerCertificate),
    ...readInto('key', general.tlsServerPrivateKey),
  }
  const verify = { prefer: 'none', verify_ca: 'ca', verify_full: 'full' } as const
  return (host) =>
    host.host.startsWith('/')
      ? undefined
      : {
          mode: tlsVerify === 'prefer' ? 'prefer' : 'require',
          options: { host: host.host, verify: verify[tlsVerify], ...files },
        }
}

function readInto<N extends string>(name: N, path: string | undefined): Partial<Record<N, Buffer>> {
  return path === undefined ? {} : ({ [name]: readOrRefuse(path) } as Record<N, Buffer>)
}

/** @throws FILE_MISSING */
export function readOrRefuse(path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace(/,.*/, '') : String(error)
    throw engineError('FILE_MISSING', { path, reason }, { cause: error })
  }
}
