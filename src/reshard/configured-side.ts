/** A side of a move, and the console of the proxy, out of a configuration. Pure. */
import { engineError } from '../errors/engine-error.js'
import type { HostTarget } from '../pg/host-client.js'
import type { ShardingConfig } from '../sharding/sharded-table.js'
import type { DatabaseTopology, Host } from '../topology/topology.js'
import type { ReshardSide } from './side.js'

/** The part of a configuration that a move needs; `LoadedConfig` fits. */
export interface MoveConfig {
  readonly databases: readonly DatabaseTopology[]
  readonly sharding: ReadonlyMap<string, ShardingConfig>
  readonly users: readonly ConfiguredUser[]
  readonly general: { readonly host: string; readonly port: number }
  readonly replication: { readonly pgDumpPath: string }
  readonly admin: {
    readonly names: readonly string[]
    readonly user: string
    readonly password?: string
  }
}

interface ConfiguredUser {
  readonly name: string
  readonly databases: readonly string[]
  readonly passwords: readonly string[]
  readonly serverUser?: string
  readonly serverPassword?: string
  readonly schemaAdmin: boolean
}

/** @throws RESHARD_UNKNOWN_DATABASE, RESHARD_NO_USER */
export function sideOf(config: MoveConfig, name: string): ReshardSide {
  const database = config.databases.find((one) => one.name === name)
  const sharding = config.sharding.get(name)
  if (!database || !sharding) {
    const known = config.databases.map((one) => one.name).join(', ') || 'none'
    throw engineError('RESHARD_UNKNOWN_DATABASE', { name, known })
  }
  const mine = config.users.filter((user) => user.databases.includes(name))
  const user = mine.find((one) => one.schemaAdmin) ?? mine[0]
  const shards = database.shards.map(({ hosts }) => targetOf(primaryOf(hosts), user, name))
  const roles = [...new Set(mine.map((one) => one.serverUser ?? one.name))]
  return { name, shards, sharding, roles }
}

/** The primary that is written; `auto` hosts count where none is named. */
function primaryOf(hosts: readonly Host[]): Host {
  const own = hosts.filter((host) => !host.reshardingOnly)
  return (own.find((host) => host.role === 'primary') ?? own[0] ?? hosts[0]) as Host
}

function targetOf(host: Host, user: ConfiguredUser | undefined, name: string): HostTarget {
  const login = host.user ?? user?.serverUser ?? user?.name
  if (login === undefined) throw engineError('RESHARD_NO_USER', { name })
  const password = host.password ?? user?.serverPassword ?? user?.passwords[0]
  const { host: address, port, database } = host
  return {
    host: address,
    port,
    database,
    user: login,
    ...(password === undefined ? {} : { password }),
  }
}

/** Where the console of the proxy is that serves this configuration, or the one that a URL names. */
export function consoleOf(config: MoveConfig, url: string | undefined): HostTarget {
  const { general, admin } = config
  const every = ['0.0.0.0', '*', '', '::']
  const own = {
    host: every.includes(general.host) ? '127.0.0.1' : general.host,
    port: general.port,
    database: admin.names[0] ?? 'admin',
    user: admin.user,
    ...(admin.password === undefined ? {} : { password: admin.password }),
  }
  if (url === undefined) return own
  let given: URL
  try {
    given = new URL(url)
  } catch (cause) {
    throw engineError(
      'USAGE',
      { message: '--proxy wants postgres://user:password@host:port/admin' },
      { cause },
    )
  }
  const text = (part: string): string => decodeURIComponent(part)
  const password = given.password === '' ? admin.password : text(given.password)
  return {
    host: given.hostname || own.host,
    port: given.port === '' ? own.port : Number(given.port),
    database: text(given.pathname.slice(1)) || own.database,
    user: text(given.username) || own.user,
    ...(password === undefined ? {} : { password }),
  }
}
