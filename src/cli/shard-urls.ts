/** Connection strings of the shards of a configured database, for commands that talk to the servers themselves. */
import type { LoadedConfig, User } from '../config/loaded-config.js'
import { engineError } from '../errors/engine-error.js'
import type { Host } from '../topology/topology.js'

/**
 * One connection string per shard, in order, each reaching the shard's primary (of `auto` hosts, the one that takes writes).
 * Credentials of the database entry win, then those of the user named, else of the first user of the database.
 */
export function shardUrls(config: LoadedConfig, database: string, userName?: string): string[] {
  const topology = config.databases.find(({ name }) => name === database)
  if (topology === undefined) {
    const known = config.databases.map(({ name }) => name).join(', ')
    throw engineError(
      'USAGE',
      { message: `database "${database}" is not configured` },
      { hint: `configured: ${known}` },
    )
  }
  const user = findUser(config, database, userName)
  return topology.shards.map(({ number, hosts }) => {
    const primaries = hosts.filter(({ role }) => role !== 'replica')
    if (primaries.length === 0)
      throw engineError('USAGE', { message: `shard ${number} of "${database}" has no primary` })
    return hostsUrl(primaries, user)
  })
}

function findUser(
  config: LoadedConfig,
  database: string,
  name: string | undefined,
): User | undefined {
  const users = config.users.filter(
    (user) => user.databases.includes(database) && (name === undefined || user.name === name),
  )
  if (name !== undefined && users.length === 0)
    throw engineError('USAGE', {
      message: `user "${name}" of database "${database}" is not configured`,
    })
  return users.find(({ schemaAdmin }) => schemaAdmin) ?? users[0]
}

function hostsUrl(hosts: readonly Host[], user: User | undefined): string {
  const [first] = hosts as [Host]
  const name = first.user ?? user?.serverUser ?? user?.name
  const password = first.password ?? user?.serverPassword ?? user?.passwords[0]
  const secret = password === undefined ? '' : `:${encodeURIComponent(password)}`
  const login = name === undefined ? '' : `${encodeURIComponent(name)}${secret}@`
  const places = hosts.map(({ host, port }) => `${encodeHost(host)}:${port}`).join(',')
  const query = hosts.length > 1 ? '?target_session_attrs=read-write' : ''
  return `postgresql://${login}${places}/${encodeURIComponent(first.database)}${query}`
}

const encodeHost = (host: string): string =>
  host.includes(':') && !host.startsWith('/') ? `[${host}]` : encodeURIComponent(host)
