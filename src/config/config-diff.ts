/**
 * What RELOAD has to do: which pools stay, which go, which come, and what only a restart changes.
 * Compares two loaded configurations; touches nothing.
 */
import type { DatabaseTopology, Host } from '../topology/topology.js'
import { type PoolSettings, poolSettings } from './compile/pool-settings.js'
import { generalKeys } from './keys/config-sections.js'
import { outputName } from './keys/key-types.js'
import type { LoadedConfig, User } from './loaded-config.js'

/** A pool by what it is made of. */
export interface PoolKey {
  readonly database: string
  readonly user: string
  readonly shard: number
  readonly host: string
  readonly port: number
  readonly serverDatabase: string
}

export interface PoolChange extends PoolKey {
  /** keep: the same. adjust: sizes or time-outs only, connections stay. replace: other credentials, role, TLS or server settings. */
  readonly action: 'keep' | 'adjust' | 'replace' | 'open' | 'close'
}

export interface ConfigDiff {
  /** Every pool of either side. */
  readonly pools: readonly PoolChange[]
  /** Databases whose sharding differs: their cached plans are void. */
  readonly resharded: readonly string[]
  /** Users whose password, verifier or rights differ; new logins see them. */
  readonly users: readonly string[]
  /** Keys of [general] that differ and count only after a restart, by their TOML name. */
  readonly needRestart: readonly string[]
  /** Other keys of [general] that differ. */
  readonly changed: readonly string[]
  /** False: RELOAD has nothing to do. */
  readonly any: boolean
}

interface PoolParts {
  readonly key: PoolKey
  readonly host: Host
  readonly user: User
  readonly settings: PoolSettings
  /** TLS towards servers, which every connection depends on. */
  readonly tls: readonly unknown[]
}

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b)

function poolsOf(config: LoadedConfig): Map<string, PoolParts> {
  const pools = new Map<string, PoolParts>()
  const { general } = config
  const tls = [
    general.tlsVerify,
    general.tlsServerCaCertificate,
    general.tlsServerCertificate,
    general.tlsServerPrivateKey,
  ]
  const add = (database: DatabaseTopology, user: User): void => {
    for (const shard of database.shards) {
      for (const host of shard.hosts) {
        const key = {
          database: database.name,
          user: user.name,
          shard: shard.number,
          host: host.host,
          port: host.port,
          serverDatabase: host.database,
        }
        const settings = poolSettings(general, host, user)
        pools.set(JSON.stringify(key), { key, host, user, settings, tls })
      }
    }
  }
  for (const database of config.databases) {
    for (const user of config.users) if (user.databases.includes(database.name)) add(database, user)
  }
  return pools
}

/** What an open connection was made with. */
function identity({ host, user, settings, tls }: PoolParts): unknown[] {
  const login = host.user ?? user.serverUser ?? user.name
  const password = host.password ?? user.serverPassword ?? user.passwords
  const { statementTimeoutMs, lockTimeoutMs, readOnly, mode } = settings
  return [
    login,
    password,
    user.serverAuth,
    host.role,
    tls,
    statementTimeoutMs,
    lockTimeoutMs,
    readOnly,
    mode,
  ]
}

/** Infinity is null in JSON, and so would equal "none": sizes are compared as words. */
const words = (settings: PoolSettings): string[] => Object.values(settings).map(String)

function actionOf(
  before: PoolParts | undefined,
  after: PoolParts | undefined,
): PoolChange['action'] {
  if (!before) return 'open'
  if (!after) return 'close'
  if (!same(identity(before), identity(after))) return 'replace'
  const equal =
    same(words(before.settings), words(after.settings)) && before.host.weight === after.host.weight
  return equal ? 'keep' : 'adjust'
}

function comparePools(before: LoadedConfig, after: LoadedConfig): PoolChange[] {
  const old = poolsOf(before)
  const fresh = poolsOf(after)
  return [...new Set([...old.keys(), ...fresh.keys()])].map((name) => {
    const [was, is] = [old.get(name), fresh.get(name)]
    const key = (is ?? was)?.key as PoolKey
    return { ...key, action: actionOf(was, is) }
  })
}

function compareGeneral(before: LoadedConfig, after: LoadedConfig) {
  const needRestart: string[] = []
  const changed: string[] = []
  const [old, fresh] = [before.general, after.general] as unknown as Record<string, unknown>[]
  for (const [key, definition] of Object.entries(generalKeys)) {
    const name = outputName(key, definition.unit)
    const [was, is] = [old?.[name], fresh?.[name]]
    if (was === is || (typeof was === 'object' && same(was, is))) continue
    const list = definition.takesEffect === 'restart' ? needRestart : changed
    list.push(key)
  }
  return { needRestart, changed }
}

const functionsOf = (config: LoadedConfig, name: string) =>
  config.functionRoutes.filter(({ database }) => database === name)

function differing(before: LoadedConfig, after: LoadedConfig): string[] {
  const names = new Set([...before.sharding.keys(), ...after.sharding.keys()])
  return [...names].filter(
    (name) =>
      !same(before.sharding.get(name), after.sharding.get(name)) ||
      !same(before.databaseOptions.get(name), after.databaseOptions.get(name)) ||
      !same(functionsOf(before, name), functionsOf(after, name)),
  )
}

function differingUsers(before: LoadedConfig, after: LoadedConfig): string[] {
  const of = (config: LoadedConfig, name: string) =>
    config.users.filter((user) => user.name === name)
  const names = new Set([...before.users, ...after.users].map(({ name }) => name))
  return [...names].filter((name) => !same(of(before, name), of(after, name)))
}

/** Compares what runs with what the files say now. */
export function diffConfig(before: LoadedConfig, after: LoadedConfig): ConfigDiff {
  const pools = comparePools(before, after)
  const resharded = differing(before, after)
  const users = differingUsers(before, after)
  const { needRestart, changed } = compareGeneral(before, after)
  const any =
    pools.some(({ action }) => action !== 'keep') ||
    [resharded, users, needRestart, changed].some((list) => list.length > 0)
  return { pools, resharded, users, needRestart, changed, any }
}
