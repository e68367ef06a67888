/** Everything that the demo's steps share: where things are, how to reach them, how to end them. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Clock } from '../base/clock.js'
import { type Cluster, destroyCluster, startCluster } from '../cluster/cluster.js'
import type { Guardian } from '../cluster/guardian.js'
import { adminQuery, closePg, type TextRow } from '../pg/admin-query.js'
import { type HostClient, openHostClient } from '../pg/host-client.js'
import type { ProxyProcess } from './proxy-process.js'
import type { Story } from './story.js'
import type { UndoList } from './undo-list.js'

/** Names of the two databases of the configuration: before the move and after it. */
export const DATABASE = 'shop'
export const NEXT_DATABASE = 'shop_next'
export const USER = 'postgres'
/** Who may use the proxy's console. */
export const ADMIN = { database: 'admin', user: 'admin', password: 'demo' }
/** Name of the database on every server. */
const ON_SERVER = 'shop'

export interface Stage {
  directory: string
  /** bin/run.js of this installation. */
  program: string
  customers: number
  story: Story
  clock: Clock
  signal: AbortSignal
  undo: UndoList
  guardian: Guardian
  configPath: string
  usersPath: string
}

/** Starts a cluster of `shards` servers that ends with the demo. */
export async function startShards(stage: Stage, name: string, shards: number): Promise<Cluster> {
  const directory = join(stage.directory, name)
  stage.undo.add(`the servers of ${name}`, () => destroyCluster(directory))
  return startCluster({
    directory,
    shards,
    replicas: 0,
    database: ON_SERVER,
    clock: stage.clock,
    // the data lives for a minute: it need not survive the machine
    settings: { fsync: 'off', synchronous_commit: 'off', max_wal_size: '4GB' },
  })
}

const toml = (value: string): string => JSON.stringify(value)

function databaseEntries(name: string, cluster: Cluster): string {
  const databases = cluster.servers.map(({ port, shard }) =>
    [
      '[[databases]]',
      `name = ${toml(name)}`,
      'host = "127.0.0.1"',
      `port = ${port}`,
      `database_name = ${toml(ON_SERVER)}`,
      `shard = ${shard}`,
    ].join('\n'),
  )
  const tables = [
    ['customers', 'id'],
    ['orders', 'customer_id'],
  ].map(([table, column]) =>
    [
      '[[sharded_tables]]',
      `database = ${toml(name)}`,
      `name = "${table}"`,
      `column = "${column}"`,
      'data_type = "bigint"',
    ].join('\n'),
  )
  return [...databases, ...tables].join('\n\n')
}

/** Writes pgdog.toml and users.toml for these databases, as a person would. */
export function writeConfig(
  stage: Stage,
  databases: readonly (readonly [string, Cluster])[],
): void {
  const config = [
    '[general]\nhost = "127.0.0.1"\nport = 6432\nauth_type = "trust"\ndefault_pool_size = 12',
    `[admin]\nname = ${toml(ADMIN.database)}\nuser = ${toml(ADMIN.user)}\npassword = ${toml(ADMIN.password)}`,
    ...databases.map(([name, cluster]) => databaseEntries(name, cluster)),
  ]
  const users = databases.map(
    ([name]) => `[[users]]\nname = ${toml(USER)}\ndatabase = ${toml(name)}`,
  )
  writeFileSync(stage.configPath, `${config.join('\n\n')}\n`)
  writeFileSync(stage.usersPath, `${users.join('\n\n')}\n`)
}

/** Runs `work` on a connection to the proxy. */
export async function withProxy<T>(
  proxy: ProxyProcess,
  work: (client: HostClient) => Promise<T>,
): Promise<T> {
  const client = await openHostClient(
    { host: proxy.host, port: proxy.port, user: USER, database: DATABASE, password: '' },
    { applicationName: 'pgshard demo' },
  )
  try {
    return await work(client)
  } finally {
    await closePg(client)
  }
}

/** Rows of a statement on each server itself, past the proxy, in the order of shards. */
export function askShards(cluster: Cluster, sql: string): Promise<TextRow[][]> {
  return Promise.all(
    cluster.servers.map(async ({ port }) => {
      const client = await openHostClient({
        host: '127.0.0.1',
        port,
        user: USER,
        database: ON_SERVER,
        password: '',
      })
      try {
        return await adminQuery(client, sql)
      } finally {
        await closePg(client)
      }
    }),
  )
}
