/** A shop of one table, its configuration with a second database to move to, and writers with a ledger on a running proxy. */
import { mkdtemp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { inject } from 'vitest'
import type { TestPostgres } from './postgres.js'

export interface Shop {
  readonly config: string
  readonly users: string
  /** Databases of the shards. */
  readonly from: string[]
  readonly to: string[]
}

export const move = ['--from', 'shop', '--to', 'shop_new']

/** One [[databases]] for each, shards in their order. */
export const shardEntries = (name: string, databases: readonly string[], port: number): string =>
  databases
    .map(
      (database, shard) =>
        `[[databases]]\nname = "${name}"\nhost = "127.0.0.1"\nport = ${port}\ndatabase_name = "${database}"\nshard = ${shard}\n`,
    )
    .join('')

export async function makeShop(
  postgres: TestPostgres,
  from: number,
  to: number,
  general: readonly string[] = [],
): Promise<Shop> {
  const create = async (count: number): Promise<string[]> => {
    const names: string[] = []
    for (let i = 0; i < count; i++) names.push(await postgres.createDatabase())
    return names
  }
  const shop = { from: await create(from), to: await create(to) }
  const [server] = postgres.servers
  const entries = (name: string, databases: string[]): string =>
    shardEntries(name, databases, server!.port) +
    `[[sharded_tables]]\ndatabase = "${name}"\ncolumn = "tenant"\ndata_type = "bigint"\n`
  const directory = await mkdtemp(join(inject('runDirectory'), 'pgshard-live-'))
  const config = join(directory, 'pgdog.toml')
  const users = join(directory, 'users.toml')
  await writeFile(
    config,
    `[general]\nhost = "127.0.0.1"\nport = 0\ncheckout_timeout = 120000\n${general.join('\n')}\n[admin]\nuser = "admin"\npassword = "adm"\n${entries('shop', shop.from)}${entries('shop_new', shop.to)}`,
  )
  await writeFile(
    users,
    `[[users]]\nname = "${postgres.user}"\npassword = "pw"\ndatabases = ["shop", "shop_new"]\n`,
  )
  for (const database of shop.from) {
    const client = await postgres.connect(0, database)
    await client.query(
      'CREATE TABLE acct (tenant bigint, id bigint, v text, n int, PRIMARY KEY (tenant, id))',
    )
    await client.end()
  }
  return { ...shop, config, users }
}

export const consoleUrl = (port: number): string => `postgres://admin:adm@127.0.0.1:${port}/admin`

export async function connectThrough(postgres: TestPostgres, port: number): Promise<pg.Client> {
  const client = new pg.Client({
    host: '127.0.0.1',
    port,
    user: postgres.user,
    password: 'pw',
    database: 'shop',
  })
  client.on('error', () => undefined)
  await client.connect()
  return client
}

export interface LiveWriters {
  /** `tenant/id` → n, of every acknowledged write. */
  readonly model: Map<string, number>
  readonly errors: unknown[]
  /** Milliseconds from a write to its answer, the longest. */
  longestMs(): number
  stop(): Promise<void>
}

/** Writers on a proxy; each has tenants of its own. One that meets an error stops. */
export function startWriters(
  postgres: TestPostgres,
  port: number,
  count: number,
  first = 0,
): LiveWriters {
  const model = new Map<string, number>()
  const errors: unknown[] = []
  let stopped = false
  let longest = 0
  const write = async (writer: number): Promise<void> => {
    const client = await connectThrough(postgres, port)
    const send = async (sql: string, values: unknown[] = []): Promise<void> => {
      const from = performance.now()
      await client.query(sql, values)
      longest = Math.max(longest, performance.now() - from)
    }
    try {
      for (let id = 1; !stopped; id++) {
        const tenant = (first + writer) * 100 + (id % 41)
        const v = id % 5 === 0 ? 'é\u{1F40C}\n'.repeat(3000) : null
        await send('INSERT INTO acct VALUES ($1, $2, $3, 1)', [tenant, id, v])
        model.set(`${tenant}/${id}`, 1)
        if (id % 3 === 0) {
          await send('UPDATE acct SET n = 2 WHERE tenant = $1 AND id = $2', [tenant, id])
          model.set(`${tenant}/${id}`, 2)
        }
        if (id % 7 === 0) {
          await send(`DELETE FROM acct WHERE tenant = ${tenant} AND id = ${id}`)
          model.delete(`${tenant}/${id}`)
        }
      }
    } catch (error) {
      errors.push(error)
    }
    await client.end().catch(() => undefined)
  }
  const loops = Array.from({ length: count }, (_, writer) => write(writer))
  return {
    model,
    errors,
    longestMs: () => longest,
    stop: async () => {
      stopped = true
      await Promise.all(loops)
    },
  }
}

/** All rows of the shards, `tenant/id` → n; a key that stands twice is written as such. */
export async function rowsOf(
  postgres: TestPostgres,
  databases: readonly string[],
): Promise<Map<string, number>> {
  const rows = new Map<string, number>()
  for (const database of databases) {
    const client = await postgres.connect(0, database)
    const found = await client.query(`SELECT tenant || '/' || id AS key, n FROM acct`)
    await client.end()
    for (const { key, n } of found.rows) rows.set(rows.has(key) ? `${key} twice` : key, n)
  }
  return rows
}
