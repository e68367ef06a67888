/** A running `pgshard serve` in front of given servers, from config files that are written for it. */
import { mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { inject } from 'vitest'
import { type CliProgram, startCli } from './run-cli.js'

export interface ShardAddress {
  readonly host: string
  readonly port: number
  readonly database: string
  /** `primary` when absent. */
  readonly role?: 'primary' | 'replica' | 'auto'
  /** Number of the shard; that of the entry's place when absent. */
  readonly shard?: number
}

export interface ServeSetup {
  /** One server (or database) a shard, in order. */
  readonly shards: readonly ShardAddress[]
  /** Name that clients connect to; `app` when absent. */
  readonly database?: string
  /** Lines of [general] beyond the test's own. */
  readonly general?: readonly string[]
  /** Further TOML: sharded tables and their kin. */
  readonly tables?: string
  /** Password of user postgres; without it everyone is trusted. */
  readonly password?: string
  /** Lines of the user's entry. */
  readonly user?: readonly string[]
  /** Further arguments of `serve`. */
  readonly args?: readonly string[]
}

export interface Served {
  readonly port: number
  readonly database: string
  readonly program: CliProgram
  readonly configPath: string
  readonly usersPath: string
  /** For any client library. */
  readonly url: string
  readonly adminUrl: string
  /** A connected node-postgres client; end it yourself. */
  connect(): Promise<pg.Client>
  /** Rows of one statement on a connection of its own. */
  query(sql: string, values?: unknown[]): Promise<Record<string, unknown>[]>
}

export const ADMIN_PASSWORD = 'console'

/** Writes the files of a setup into a fresh folder. */
export function writeServeConfig(setup: ServeSetup): { configPath: string; usersPath: string } {
  const directory = mkdtempSync(join(inject('runDirectory'), 'serve-'))
  const database = setup.database ?? 'app'
  const lines = [
    '[general]',
    'host = "127.0.0.1"',
    'port = 0',
    `auth_type = "${setup.password === undefined ? 'trust' : 'scram'}"`,
    ...(setup.general ?? []),
    '[admin]',
    `password = "${ADMIN_PASSWORD}"`,
  ]
  for (const [shard, address] of setup.shards.entries()) {
    lines.push('[[databases]]', `name = "${database}"`, `host = "${address.host}"`)
    lines.push(
      `port = ${address.port}`,
      `database_name = "${address.database}"`,
      `shard = ${address.shard ?? shard}`,
      `role = "${address.role ?? 'primary'}"`,
    )
  }
  const configPath = join(directory, 'pgdog.toml')
  writeFileSync(configPath, `${lines.join('\n')}\n${setup.tables ?? ''}\n`)
  const usersPath = join(directory, 'users.toml')
  const user = [
    '[[users]]',
    'name = "postgres"',
    `database = "${database}"`,
    `password = "${setup.password ?? 'unused'}"`,
    ...(setup.user ?? []),
  ]
  writeFileSync(usersPath, `${user.join('\n')}\n`)
  return { configPath, usersPath }
}

/** Starts it and waits for `listening on`; it is ended with the test file. */
export async function startServe(setup: ServeSetup): Promise<Served> {
  const { configPath, usersPath } = writeServeConfig(setup)
  const program = startCli([
    'serve',
    '--config',
    configPath,
    '--users',
    usersPath,
    ...(setup.args ?? []),
  ])
  const match = await program.waitForOutput(/listening on \S+:(\d+)/)
  const port = Number(match[1])
  const database = setup.database ?? 'app'
  const secret = setup.password === undefined ? '' : `:${encodeURIComponent(setup.password)}`
  const url = `postgres://postgres${secret}@127.0.0.1:${port}/${database}`
  const connect = async () => {
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    return client
  }
  return {
    port,
    database,
    program,
    configPath,
    usersPath,
    url,
    adminUrl: `postgres://admin:${ADMIN_PASSWORD}@127.0.0.1:${port}/pgshard`,
    connect,
    query: async (sql, values) => {
      const client = await connect()
      try {
        return (await client.query(sql, values)).rows
      } finally {
        await client.end()
      }
    },
  }
}
