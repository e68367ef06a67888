/** The three places where an oracle case runs: one plain PostgreSQL, the same through serve, and a sharded database. */
import { pipeline } from 'node:stream/promises'
import pg from 'pg'
import { from as copyFrom, to as copyTo } from 'pg-copy-streams'
import { afterAll, beforeAll } from 'vitest'
import type { ServerConnection } from '../../src/server/server-connection.js'
import { runCli } from '../support/run-cli.js'
import { type Served, startServe, writeServeConfig } from '../support/serve.js'
import { usePostgres } from '../support/use-postgres.js'
import { openTarget, type Target } from './ask.js'

export interface OracleSetup {
  /** Makes schema and rows on the plain database. */
  readonly setupSql: string
  /** Schema-only statements for every shard. */
  readonly shardSql: string
  /** Tables whose rows are copied from the plain database through the sharded proxy. */
  readonly tables: readonly string[]
  readonly shards: number
  /** TOML of the sharded tables of database `app`. */
  readonly sharding: string
  readonly searchPath: string
  /** Further lines of [general] of the sharded proxy. */
  readonly general?: readonly string[]
}

export interface Oracle {
  plain: ServerConnection
  proxied: ServerConnection
  sharded: ServerConnection
  served: Served
  /** Of the databases themselves, past all proxies. */
  plainUrl: string
  shardUrls: readonly string[]
  /** Empties the tables on all and loads them again. */
  reload(): Promise<void>
}

/** Starts the three for a test file. */
export function useOracle(setup: OracleSetup): () => Oracle {
  const postgres = usePostgres({
    version: 15,
    settings: { max_prepared_transactions: '64', max_connections: '200' },
  })
  let oracle: Oracle | undefined
  beforeAll(async () => {
    const server = postgres().servers[0]!
    const plainDatabase = postgres().database
    const admin = await postgres().connect()
    const names = Array.from({ length: setup.shards }, (_, shard) => `${plainDatabase}_s${shard}`)
    for (const name of names) await admin.query(`create database ${name}`)
    await admin.query(setup.setupSql)
    for (const name of names) {
      const shard = await postgres().connect(0, name)
      await shard.query(setup.shardSql)
      await shard.end()
    }
    const address = { host: server.host, port: server.port }
    const proxied = await startServe({ shards: [{ ...address, database: plainDatabase }] })
    const shardedSetup = {
      shards: names.map((database) => ({ ...address, database })),
      tables: setup.sharding,
      general: ['cross_shard_writes = "two_phase"', ...(setup.general ?? [])],
    }
    const files = writeServeConfig(shardedSetup)
    const prepared = await runCli([
      'setup',
      '--config',
      files.configPath,
      '--users',
      files.usersPath,
      '--database',
      'app',
    ])
    if (prepared.code !== 0) throw new Error(`setup failed:\n${prepared.stdout}${prepared.stderr}`)
    const served = await startServe(shardedSetup)
    const open = async (target: Target) => {
      const connection = await openTarget(target)
      await connection.query(`set search_path to ${setup.searchPath}`)
      return connection
    }
    const plain = await open({ name: 'plain', port: server.port, database: plainDatabase })
    const plainUrl = postgres().url()
    const shardUrls = names.map((name) => postgres().url(0, name))
    const reload = () => loadShards(setup, { plainUrl, served, shardUrls })
    await reload()
    oracle = {
      plain,
      proxied: await open({ name: 'proxied', port: proxied.port, database: 'app' }),
      sharded: await open({ name: 'sharded', port: served.port, database: 'app' }),
      served,
      plainUrl,
      shardUrls,
      reload,
    }
  })
  afterAll(() => {
    for (const connection of [oracle?.plain, oracle?.proxied, oracle?.sharded]) connection?.close()
  })
  return () => oracle!
}

/** Rows of the plain database to their shards, by COPY through the proxy. */
async function loadShards(
  setup: OracleSetup,
  where: { plainUrl: string; served: Served; shardUrls: string[] },
): Promise<void> {
  const path = `set search_path to ${setup.searchPath}`
  for (const url of where.shardUrls) {
    await withClient(url, (shard) => shard.query(`${path}; truncate ${setup.tables.join(', ')}`))
  }
  await withClient(where.plainUrl, (plain) =>
    withClient(where.served.url, async (sharded) => {
      await plain.query(path)
      await sharded.query(path)
      for (const table of setup.tables) {
        const rows = plain.query(copyTo(`copy ${table} to stdout`))
        await pipeline(rows, sharded.query(copyFrom(`copy ${table} from stdin`)))
      }
    }),
  )
}

async function withClient<T>(url: string, run: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return await run(client)
  } finally {
    await client.end()
  }
}
