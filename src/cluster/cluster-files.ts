/** The files beside a cluster's state: pgshard.env, pgdog.toml and users.toml with its database over all shards. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type ClusterState, writeWhole } from './cluster-state.js'
import { SUPERUSER } from './template.js'

/** Connection URL of a server of the cluster. */
export function urlOf(
  state: Pick<ClusterState, 'password' | 'database'>,
  port: number,
  database = state.database,
): string {
  const secret = state.password === undefined ? '' : `:${encodeURIComponent(state.password)}`
  return `postgres://${SUPERUSER}${secret}@127.0.0.1:${port}/${encodeURIComponent(database)}`
}

const primaries = (state: ClusterState) => state.instances.filter(({ role }) => role === 'primary')

/** Single quotes that a shell and dotenv readers both take. */
const shellQuoted = (value: string): string => `'${value.replaceAll("'", `'\\''`)}'`

function environmentFile(state: ClusterState, directory: string): string {
  const lines = primaries(state).map(
    ({ shard, port }) => `PGSHARD_SHARD_${shard}=${shellQuoted(urlOf(state, port))}`,
  )
  for (const { name, role, port } of state.instances)
    if (role === 'replica')
      lines.push(`PGSHARD_${name.toUpperCase()}=${shellQuoted(urlOf(state, port))}`)
  const all = primaries(state).map(({ port }) => urlOf(state, port))
  return [
    '# the servers of this cluster; read with: set -a; . ./pgshard.env',
    `PGSHARD_SHARDS=${shellQuoted(all.join(' '))}`,
    ...lines,
    `PGSHARD_CONFIG=${shellQuoted(join(directory, 'pgdog.toml'))}`,
    `PGSHARD_USERS=${shellQuoted(join(directory, 'users.toml'))}`,
    '',
  ].join('\n')
}

const toml = (value: string): string => JSON.stringify(value)

function configFile(state: ClusterState): string {
  const databases = state.instances.map(({ shard, role, port }) =>
    [
      '[[databases]]',
      `name = ${toml(state.database)}`,
      'host = "127.0.0.1"',
      `port = ${port}`,
      `database_name = ${toml(state.database)}`,
      `shard = ${shard}`,
      ...(role === 'replica' ? ['role = "replica"'] : []),
      '',
    ].join('\n'),
  )
  return [
    '# written by "pgshard cluster start"; once edited it is kept as it is',
    '[general]',
    'host = "127.0.0.1"',
    'port = 6432',
    `auth_type = ${state.password === undefined ? '"trust"' : '"scram"'}`,
    '',
    ...databases,
    '# say here which tables are sharded, and by which column:',
    '# [[sharded_tables]]',
    `# database = ${toml(state.database)}`,
    '# name = "orders"',
    '# column = "customer_id"',
    '# data_type = "bigint"',
    '',
  ].join('\n')
}

const usersFile = (state: ClusterState): string =>
  [
    '[[users]]',
    `name = "${SUPERUSER}"`,
    `database = ${toml(state.database)}`,
    ...(state.password === undefined ? [] : [`password = ${toml(state.password)}`]),
    '',
    '# the console: psql -h 127.0.0.1 -p 6432 -U admin pgshard; "reshard run" speaks with it too',
    '[admin]',
    `password = ${toml(state.password ?? 'admin')}`,
    '',
  ].join('\n')

const digest = (text: string): string => createHash('sha256').update(text).digest('hex')

/** Writes the three files, but for those that were edited since; returns their names. */
export function writeClusterFiles(
  directory: string,
  state: ClusterState,
  onNote?: (note: string) => void,
): string[] {
  const files: [string, string][] = [
    ['pgshard.env', environmentFile(state, directory)],
    ['pgdog.toml', configFile(state)],
    ['users.toml', usersFile(state)],
  ]
  for (const [name, text] of files) {
    const path = join(directory, name)
    if (wasEdited(path, state.written[name])) {
      if (digest(text) !== state.written[name])
        onNote?.(
          `${name} was edited and is kept; the servers moved, their ports are in pgshard.env`,
        )
      continue
    }
    writeWhole(path, text, 0o600)
    state.written[name] = digest(text)
  }
  return files.map(([name]) => join(directory, name))
}

function wasEdited(path: string, written: string | undefined): boolean {
  try {
    return digest(readFileSync(path, 'utf8')) !== written
  } catch {
    return false // not there
  }
}
