/** The shards of a database as setup reaches them: the primary of each, by an account that may make objects. */
import { engineError } from '../errors/engine-error.js'
import type { DatabaseTopology, Host, Shard } from '../topology/topology.js'

/** The part of a configured user that setup looks at. */
export interface SetupUser {
  readonly name: string
  readonly databases: readonly string[]
  readonly passwords: readonly string[]
  readonly serverUser?: string
  readonly serverPassword?: string
  readonly schemaAdmin: boolean
}

export interface SetupTarget {
  readonly database: string
  /** Connection strings in the order of shards; each leads to the primary. */
  readonly shards: readonly { readonly conninfo: string; readonly label: string }[]
  /** Roles that the proxy uses towards the servers; they get the grants. */
  readonly roles: readonly string[]
}

/** An account given on the command line, which wins. */
export interface SetupAccount {
  readonly user: string
  readonly password?: string
}

/**
 * Finds the database and how to reach it. `name` may be left out when there is one.
 * @throws SETUP_DATABASE_UNKNOWN, SETUP_NO_ACCOUNT
 */
export function findSetupTarget(
  databases: readonly DatabaseTopology[],
  users: readonly SetupUser[],
  name: string | undefined,
  account?: SetupAccount,
): SetupTarget {
  const database =
    name === undefined && databases.length === 1
      ? databases[0]
      : databases.find((one) => one.name === name)
  if (!database) {
    const known = databases.map((one) => one.name).join(', ')
    throw engineError('SETUP_DATABASE_UNKNOWN', { name: name ?? '(none given)', known })
  }
  const mine = users.filter((user) => user.databases.includes(database.name))
  const configured = account ?? configuredAccount(mine)
  return {
    database: database.name,
    shards: database.shards.map((shard) => reach(shard, account, configured, database.name)),
    roles: rolesOf(database, mine),
  }
}

function configuredAccount(users: readonly SetupUser[]): SetupAccount | undefined {
  const user = users.find((one) => one.schemaAdmin) ?? users[0]
  if (!user) return undefined
  const password = user.serverPassword ?? user.passwords[0]
  return { user: user.serverUser ?? user.name, ...(password === undefined ? {} : { password }) }
}

function rolesOf(database: DatabaseTopology, users: readonly SetupUser[]): string[] {
  const ofHosts = database.shards.flatMap((shard) => shard.hosts.map((host) => host.user))
  const ofUsers = users.map((user) => user.serverUser ?? user.name)
  return [...new Set([...ofHosts, ...ofUsers])].filter((role) => role !== undefined).sort()
}

function reach(
  shard: Shard,
  given: SetupAccount | undefined,
  configured: SetupAccount | undefined,
  database: string,
): { conninfo: string; label: string } {
  const usable = shard.hosts.filter((host) => !host.reshardingOnly)
  const primaries = usable.filter((host) => host.role === 'primary')
  const hosts = primaries.length > 0 ? primaries : usable.filter((host) => host.role === 'auto')
  const first = hosts[0]
  if (!first) throw engineError('SETUP_NO_PRIMARY', { database, shard: shard.number })
  const ofHost =
    first.user === undefined
      ? undefined
      : { user: first.user, ...(first.password === undefined ? {} : { password: first.password }) }
  const account = given ?? ofHost ?? configured
  if (!account) throw engineError('SETUP_NO_ACCOUNT', { database })
  return { conninfo: conninfoOf(hosts, account), label: `shard ${shard.number}` }
}

function conninfoOf(hosts: readonly Host[], account: SetupAccount): string {
  const first = hosts[0] as Host
  const pairs: [string, string][] = [
    ['host', hosts.map((host) => host.host).join(',')],
    ['port', hosts.map((host) => host.port).join(',')],
    ['dbname', first.database],
    ['user', account.user],
    ['target_session_attrs', 'primary'],
    ['connect_timeout', '10'],
  ]
  if (account.password !== undefined) pairs.push(['password', account.password])
  return pairs.map(([key, value]) => `${key}='${value.replace(/[\\']/g, '\\$&')}'`).join(' ')
}
