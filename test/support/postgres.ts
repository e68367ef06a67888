/**
 * Real PostgreSQL servers for tests. Servers are shared by all files of a run (the first that asks
 * starts them, the end of the run stops them); each call gets a database of its own on each server.
 * Settings of one's own, replicas, or `own: true` give servers that nobody else uses.
 */
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { inject } from 'vitest'
import { type Cluster, destroyCluster, startCluster } from '../../src/cluster/cluster.js'

export type PostgresMajor = 15 | 16 | 17 | 18

export interface PostgresOptions {
  version?: PostgresMajor
  /** Number of servers; 1 when absent. */
  count?: number
  /** Replicas of each; they make the servers our own. */
  replicas?: number
  /** Settings of postgresql.conf; they make the servers our own. */
  settings?: Record<string, string>
  /** Password of the superuser with SCRAM; without one everyone is trusted. It makes the servers our own. */
  password?: string
  /** Servers that no other test uses, which may be stopped and killed. */
  own?: boolean
}

export interface TestServer {
  host: string
  port: number
  dataDirectory: string
  pid: number
}

export interface TestPostgres {
  major: PostgresMajor
  user: string
  password: string | undefined
  /** Name of our database, the same on every server. */
  database: string
  /** Primaries, in order. */
  servers: TestServer[]
  replicas: (TestServer & { of: number })[]
  /** Where the cluster lives, for `cluster` functions; meaningful for own servers. */
  directory: string
  url(server?: number, database?: string): string
  /** Rows of one statement, on a connection of its own. */
  query(sql: string, values?: unknown[], server?: number): Promise<Record<string, unknown>[]>
  /** A connected client; it is ended by `stop` when the test has not done so. */
  connect(server?: number, database?: string): Promise<pg.Client>
  /** Another database on every server; dropped by `stop`. */
  createDatabase(): Promise<string>
  /** Drops our databases; ends own servers. */
  stop(): Promise<void>
}

const DEBIAN_15 = '/usr/lib/postgresql/15/bin'

/** Not durable: a test's data need not survive the machine. */
const fastSettings = { fsync: 'off', full_page_writes: 'off', max_connections: '400' }

let calls = 0

function start(options: PostgresOptions): Promise<Cluster> {
  const { version = 18, count = 1, replicas = 0, settings, password, own } = options
  const isOwn = own || replicas > 0 || settings !== undefined || password !== undefined
  const suffix = isOwn ? `-${process.pid}-${++calls}` : ''
  return startCluster({
    directory: join(inject('runDirectory'), `v${version}x${count}${suffix}`),
    shards: count,
    replicas,
    postgresVersion: version,
    ...(version === 15 && existsSync(join(DEBIAN_15, 'postgres'))
      ? { binDirectory: DEBIAN_15 }
      : {}),
    ...(password === undefined ? {} : { password }),
    settings: { ...fastSettings, ...settings },
  })
}

const toServer = ({ port, dataDirectory, pid }: Cluster['servers'][number]): TestServer => ({
  host: '127.0.0.1',
  port,
  dataDirectory,
  pid: pid ?? 0,
})

/** Starts or shares servers; call it in beforeAll and `stop()` in afterAll, or use `usePostgres`. */
export async function startPostgres(options: PostgresOptions = {}): Promise<TestPostgres> {
  const cluster = await start(options)
  const primaries = cluster.servers.filter(({ role }) => role === 'primary')
  const isOwn = !/x\d+$/.test(cluster.directory)
  const databases: string[] = []
  const clients = new Set<pg.Client>()
  const url = (server = 0, database = databases[0] ?? 'postgres') => {
    const target = new URL(primaries[server]!.url)
    target.pathname = `/${database}`
    return target.href
  }
  const connect = async (server = 0, database?: string) => {
    const client = new pg.Client({ connectionString: url(server, database) })
    client.on('error', () => undefined) // tests kill servers; the query reports it
    await client.connect()
    clients.add(client)
    client.once('end', () => clients.delete(client))
    return client
  }
  const ask = async (
    server: number,
    database: string | undefined,
    sql: string,
    values: unknown[] = [],
  ) => {
    const client = await connect(server, database)
    try {
      return (await client.query(sql, values)).rows as Record<string, unknown>[]
    } finally {
      await client.end()
    }
  }
  const everywhere = (sql: string) =>
    Promise.all(primaries.map((_, server) => ask(server, 'postgres', sql)))
  const createDatabase = async () => {
    const name = `t_${process.pid}_${randomBytes(4).toString('hex')}`
    await everywhere(`CREATE DATABASE ${name}`)
    databases.push(name)
    return name
  }
  const stop = async () => {
    await Promise.all([...clients].map((client) => client.end().catch(() => undefined)))
    if (isOwn) await destroyCluster(cluster.directory)
    else for (const name of databases) await everywhere(`DROP DATABASE IF EXISTS ${name} (FORCE)`)
  }
  return {
    major: options.version ?? 18,
    user: cluster.user,
    password: cluster.password,
    database: await createDatabase(),
    servers: primaries.map(toServer),
    replicas: cluster.servers
      .filter(({ role }) => role === 'replica')
      .map((server) => ({ ...toServer(server), of: server.shard })),
    directory: cluster.directory,
    url,
    query: (sql, values, server = 0) => ask(server, undefined, sql, values),
    connect,
    createDatabase,
    stop,
  }
}
