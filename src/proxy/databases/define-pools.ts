/** From a loaded configuration to definitions of pools: one for each user and database. Reads certificate files; opens no connection. */

import { type PoolSettings, poolSettings } from '../../config/compile/pool-settings.js'
import type { GeneralConfig, LoadedConfig, User } from '../../config/loaded-config.js'
import { engineError } from '../../errors/engine-error.js'
import type { HostDefinition, PoolDefinition } from '../../pool/definition.js'
import type { LoginProof } from '../../session/login/login-rules.js'
import type { DatabaseTopology, Host } from '../../topology/topology.js'
import {
  configuredLogins,
  guestLogin,
  type LoginOf,
  type ProtectionOf,
  protectionOf,
} from './server-login.js'

/** @throws FILE_MISSING, NET_TLS_MATERIAL */
export function definePools(config: LoadedConfig): PoolDefinition[] {
  const how = { login: configuredLogins(config), protection: protectionOf(config.general) }
  return config.databases.flatMap((database) => {
    // Of several entries of one user the first that names the database counts, as at login.
    const users = new Map<string, User>()
    for (const user of config.users)
      if (user.databases.includes(database.name) && !users.has(user.name))
        users.set(user.name, user)
    for (const user of users.values()) if (isGuest(config, user)) users.delete(user.name)
    const layout = layoutOf(config, database.name)
    return [...users.values()].map((user) => ({
      ...definePool(config.general, database, user, how),
      layout,
    }))
  })
}

/** Without a secret in users.toml the servers judge the client's own, and its pools come with it. */
function isGuest({ general }: LoadedConfig, user: User): boolean {
  const { passwords, passwordHash, serverPassword, identity, authType, serverAuth } = user
  if (general.passthroughAuth === 'disabled' || authType === 'trust') return false
  const secrets = [passwordHash, serverPassword, identity, passwords[0]]
  return serverAuth === 'password' && secrets.every((secret) => secret === undefined)
}

/**
 * The pools of a user who is not configured, by what it has proved. They keep no server that nobody uses.
 * @throws FILE_MISSING, NET_TLS_MATERIAL
 */
export function defineGuestPool(
  config: LoadedConfig,
  database: string,
  user: User,
  proof: LoginProof,
): PoolDefinition {
  const topology = config.databases.find(({ name }) => name === database)
  if (!topology) throw engineError('PROXY_NO_DATABASE', { database })
  const how = { login: guestLogin(proof), protection: protectionOf(config.general) }
  const definition = definePool(config.general, topology, user, how)
  const shards = definition.shards.map(({ hosts }) => ({
    hosts: hosts.map((host) => ({ ...host, limits: { ...host.limits, minSize: 0 } })),
  }))
  return { ...definition, shards, layout: layoutOf(config, database) }
}

/** Equal when the same keys live on the same shard numbers, and these on the same servers. */
export function layoutOf(config: LoadedConfig, database: string): string {
  const shards = config.databases.find(({ name }) => name === database)?.shards ?? []
  // One shard has nothing to decide: its hosts may change under who waits.
  if (shards.length === 1) return 'one shard'
  return JSON.stringify([placesOf(config, database), config.sharding.get(database)])
}

/** Where the rows of each shard are written. Replicas may come and go: what they hold is the same. */
export function placesOf(config: LoadedConfig, database: string): string {
  const shards = config.databases.find(({ name }) => name === database)?.shards ?? []
  const places = shards.map(({ hosts }) =>
    hosts
      .filter((host) => !host.reshardingOnly && host.role !== 'replica')
      .map((host) => [host.host, host.port, host.database]),
  )
  return JSON.stringify(places)
}

interface HowToLogIn {
  readonly login: LoginOf
  readonly protection: ProtectionOf
}

function definePool(
  general: GeneralConfig,
  database: DatabaseTopology,
  user: User,
  how: HowToLogIn,
): Omit<PoolDefinition, 'layout'> {
  const isSharded = database.shards.length > 1
  const shards = database.shards.map(({ hosts }) => ({
    hosts: hosts
      .filter((host) => !host.reshardingOnly)
      .map((host) => defineHost(general, host, user, { isSharded, ...how })),
  }))
  const firstHost = database.shards[0]?.hosts[0]
  const mode = firstHost ? poolSettings(general, firstHost, user).mode : general.poolerMode
  return {
    user: user.name,
    database: database.name,
    shards,
    strategy: general.loadBalancingStrategy,
    readWriteSplit: general.readWriteSplit,
    readWriteStrategy: general.readWriteStrategy,
    readsYourWrites: general.readYourWrites,
    maxDbConnections: general.maxDbConnections,
    maxUserConnections: general.maxUserConnections,
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
      isDistrustful: general.requireHealthcheckOnDiscovery,
      banLagMs: general.banReplicaLagMs,
      banLagBytes: general.banReplicaLagBytes,
    },
    roleCheckIntervalMs: general.lsnCheckIntervalMs,
    lagCheckDelayMs: lagCheckDelayOf(general),
    poolerMode: mode,
    schemaAdmin: user.schemaAdmin,
    preparedTtlMs: general.preparedStatementsTtlMs ?? Number.POSITIVE_INFINITY,
    preparedTtlJitterMs: general.preparedStatementsTtlJitterMs,
  }
}

/** Bans of lagging replicas and read-your-writes must know how far hosts are, asked for or not. */
function lagCheckDelayOf(general: GeneralConfig): number {
  const { lsnCheckDelayMs, banReplicaLagMs, banReplicaLagBytes, readYourWrites } = general
  const isNeeded =
    readYourWrites || Number.isFinite(banReplicaLagMs) || Number.isFinite(banReplicaLagBytes)
  return isNeeded && !Number.isFinite(lsnCheckDelayMs) ? 0 : lsnCheckDelayMs
}

function defineHost(
  general: GeneralConfig,
  host: Host,
  user: User,
  at: { isSharded: boolean } & HowToLogIn,
): HostDefinition {
  const settings = poolSettings(general, host, user)
  return {
    target: {
      host: host.host,
      port: host.port,
      database: host.database,
      parameters: startupParameters(settings),
      ...at.login(host, user),
      ...at.protection(host),
    },
    role: host.role,
    weight: host.weight,
    limits: {
      minSize: settings.minSize,
      maxSize: settings.maxSize,
      // Only a transaction over several shards can wait while it holds.
      reservedForHolders: at.isSharded && settings.maxSize > 1 ? 1 : 0,
      reserveSize: general.reservePoolSize,
      reserveAfterMs: general.reservePoolTimeoutMs,
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
