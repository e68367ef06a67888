/** The limits of a configuration divided among workers, so that all together never pass the total. Pure. */

import { poolSettings } from '../config/compile/pool-settings.js'
import type { LoadedConfig, User } from '../config/loaded-config.js'
import { engineError } from '../errors/engine-error.js'
import type { DatabaseTopology, Host, PoolOverrides } from '../topology/topology.js'

interface Limit {
  readonly name: string
  readonly value: number
}

/** What one of `count` workers may have. */
const floor = (total: number, count: number): number =>
  Number.isFinite(total) ? Math.floor(total / count) : total

/** Of a minimum: kept open by each, however many there are. */
const atLeastOne = (total: number, count: number): number =>
  total === 0 ? 0 : Math.max(1, floor(total, count))

const sizes = ['poolSize', 'poolSizePrimary', 'poolSizeReplica'] as const
const minima = ['minPoolSize', 'minPoolSizePrimary', 'minPoolSizeReplica'] as const

/** The configuration of one worker. Every limit is floor(total / count); none is 0 when `tightestLimit` allows the count. */
export function shareLimits(config: LoadedConfig, count: number): LoadedConfig {
  const { general } = config
  return {
    ...config,
    general: {
      ...general,
      maxClientConn: floor(general.maxClientConn, count),
      maxUserClientConnections: floor(general.maxUserClientConnections, count),
      maxDbConnections: floor(general.maxDbConnections, count),
      maxUserConnections: floor(general.maxUserConnections, count),
      defaultPoolSize: floor(general.defaultPoolSize, count),
      minPoolSize: atLeastOne(general.minPoolSize, count),
      // An extra that not every worker must have.
      reservePoolSize: floor(general.reservePoolSize, count),
    },
    databases: config.databases.map((database) => shareDatabase(database, count)),
    users: config.users.map((user) => shareUser(user, count)),
    // Said once, by the primary.
    warnings: [],
  }
}

function shareDatabase(database: DatabaseTopology, count: number): DatabaseTopology {
  return {
    ...database,
    shards: database.shards.map((shard) => ({
      ...shard,
      hosts: shard.hosts.map((host) => shareOverrides(host, count)),
    })),
  }
}

function shareUser(user: User, count: number): User {
  const shared = shareOverrides(user, count)
  const { maxUserClientConnections: total } = user
  return total === undefined ? shared : { ...shared, maxUserClientConnections: floor(total, count) }
}

function shareOverrides<T extends PoolOverrides>(from: T, count: number): T {
  const shared: Record<string, number> = {}
  for (const name of sizes) {
    const total = from[name]
    if (total !== undefined) shared[name] = floor(total, count)
  }
  for (const name of minima) {
    const total = from[name]
    if (total !== undefined) shared[name] = atLeastOne(total, count)
  }
  return { ...from, ...shared }
}

/** The limit that the fewest workers can share. */
export function tightestLimit(config: LoadedConfig): Limit {
  const { general } = config
  const limits = [
    { name: 'max_client_conn', value: general.maxClientConn },
    { name: 'max_user_client_connections', value: general.maxUserClientConnections },
    { name: 'max_db_connections', value: general.maxDbConnections },
    { name: 'max_user_connections', value: general.maxUserConnections },
    ...config.users.map(({ name, maxUserClientConnections }) => ({
      name: `max_user_client_connections of user "${name}"`,
      value: maxUserClientConnections ?? general.maxUserClientConnections,
    })),
    ...config.databases.flatMap((database) => poolLimits(config, database)),
  ]
  return limits.reduce((least, limit) => (limit.value < least.value ? limit : least))
}

function poolLimits(config: LoadedConfig, database: DatabaseTopology): Limit[] {
  const users = config.users.filter(({ databases }) => databases.includes(database.name))
  const hosts = database.shards
    .flatMap((shard) => shard.hosts)
    .filter((host) => !host.reshardingOnly)
  return users.flatMap((user) => hosts.flatMap((host) => hostLimits(config, user, host)))
}

function hostLimits({ general }: LoadedConfig, user: User, host: Host): Limit[] {
  const roles = host.role === 'auto' ? (['primary', 'replica'] as const) : [host.role]
  return roles.map((role) => ({
    name: `the pool size of user "${user.name}"`,
    value: poolSettings(general, host, user, role).maxSize,
  }))
}

/** @throws WORKERS_TOO_MANY */
export function assertShareable(config: LoadedConfig, count: number): void {
  const { name, value } = tightestLimit(config)
  if (value < count)
    throw engineError('WORKERS_TOO_MANY', { limit: `${name} = ${value}`, workers: count })
}
