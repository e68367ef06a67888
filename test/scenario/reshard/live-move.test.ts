/** The whole program: `serve` with writers on it, `reshard run` beside it; and a run that is killed. */
import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { expect, inject, test } from 'vitest'
import { runCli, startCli } from '../../support/run-cli.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'

const postgres = usePostgres({
  version: 15,
  settings: { max_wal_senders: '40', max_replication_slots: '40' },
})

interface Shop {
  config: string
  users: string
  from: string[]
  to: string[]
}

async function makeShop(from: number, to: number): Promise<Shop> {
  const create = async (count: number): Promise<string[]> => {
    const names: string[] = []
    for (let i = 0; i < count; i++) names.push(await postgres().createDatabase())
    return names
  }
  const shop = { from: await create(from), to: await create(to) }
  const [server] = postgres().servers
  const entries = (name: string, databases: string[]): string =>
    databases
      .map(
        (database, shard) =>
          `[[databases]]\nname = "${name}"\nhost = "127.0.0.1"\nport = ${server!.port}\ndatabase_name = "${database}"\nshard = ${shard}\n`,
      )
      .join('') +
    `[[sharded_tables]]\ndatabase = "${name}"\ncolumn = "tenant"\ndata_type = "bigint"\n`
  const directory = await mkdtemp(join(inject('runDirectory'), 'pgshard-live-'))
  const config = join(directory, 'pgdog.toml')
  const users = join(directory, 'users.toml')
  await writeFile(
    config,
    `[general]\nhost = "127.0.0.1"\nport = 0\ncheckout_timeout = 20000\n[admin]\nuser = "admin"\npassword = "adm"\n${entries('shop', shop.from)}${entries('shop_new', shop.to)}`,
  )
  await writeFile(
    users,
    `[[users]]\nname = "${postgres().user}"\npassword = "pw"\ndatabases = ["shop", "shop_new"]\n`,
  )
  for (const database of shop.from) {
    const client = await postgres().connect(0, database)
    await client.query(
      'CREATE TABLE acct (tenant bigint, id bigint, v text, n int, PRIMARY KEY (tenant, id))',
    )
    await client.end()
  }
  return { ...shop, config, users }
}

async function connectThrough(port: number): Promise<pg.Client> {
  const client = new pg.Client({
    host: '127.0.0.1',
    port,
    user: postgres().user,
    password: 'pw',
    database: 'shop',
  })
  client.on('error', () => undefined)
  await client.connect()
  return client
}

/** Writers on the proxy; `stop` gives what must be there. */
function startWriters(port: number, count: number) {
  const model = new Map<string, number>()
  const errors: unknown[] = []
  let stopped = false
  let repeated = 0
  const write = async (writer: number): Promise<void> => {
    const client = await connectThrough(port)
    // A statement that waited at the proxy for shards that have gone says 40001: nothing was done, it is run again.
    const send = async (sql: string, values: unknown[] = []): Promise<void> => {
      for (;;) {
        try {
          await client.query(sql, values)
          return
        } catch (error) {
          if ((error as { code?: string }).code !== '40001') throw error
          repeated++
        }
      }
    }
    for (let id = 1; !stopped; id++) {
      const tenant = writer * 100 + (id % 41)
      try {
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
      } catch (error) {
        errors.push(error)
      }
    }
    await client.end()
  }
  const loops = Array.from({ length: count }, (_, writer) => write(writer))
  return {
    model,
    errors,
    repeated: () => repeated,
    stop: async () => {
      stopped = true
      await Promise.all(loops)
    },
  }
}

const move = ['--from', 'shop', '--to', 'shop_new']

test('D8, D218: serve keeps serving: 2 → 3 shards, no write lost, none refused', async () => {
  const shop = await makeShop(2, 3)
  const serve = startCli(['serve', '--config', shop.config, '--users', shop.users])
  const [, port] = await serve.waitForOutput(/listening on 127\.0\.0\.1:(\d+)/)
  const writers = startWriters(Number(port), 4)
  await waitFor(() => writers.model.size > 50)
  const proxy = `postgres://admin:adm@127.0.0.1:${port}/admin`
  const run = await runCli(
    [
      'reshard',
      'run',
      '--config',
      shop.config,
      ...move,
      '--yes',
      '--json',
      '--proxy',
      proxy,
      '--budget-ms',
      '15000',
    ],
    { timeoutMs: 120_000 },
  )
  expect(run.stderr).toContain('is served by 3 shards')
  expect(run.code).toBe(0)
  const report = JSON.parse(run.stdout)
  expect(report).toMatchObject({ state: 'cut_over', verify: { same: true } })
  const before = writers.model.size
  await waitFor(() => writers.model.size > before + 50)
  await writers.stop()
  expect(writers.errors).toEqual([])
  // At most what each writer had under way when the shards changed.
  expect(writers.repeated()).toBeLessThanOrEqual(4)
  const client = await connectThrough(Number(port))
  const { rows } = await client.query(`SELECT tenant || '/' || id AS key, n FROM acct`)
  await client.end()
  expect(rows.length).toBe(writers.model.size)
  for (const { key, n } of rows) expect(writers.model.get(key), key).toBe(n)
  // They stand on the new side, and the old one takes no more.
  const old = await postgres().connect(0, shop.from[0])
  await expect(old.query('INSERT INTO acct VALUES (1, -1)')).rejects.toMatchObject({
    code: '25006',
  })
  await old.end()
  expect(await readFile(shop.config.replace('.toml', '.bak.toml'), 'utf8')).toContain(
    'name = "shop"',
  )
  const status = await runCli(['reshard', 'status', '--config', shop.config, ...move, '--json'])
  expect(JSON.parse(status.stdout)).toMatchObject({ state: 'cut_over', lag_bytes: null })
  await serve.stop()
}, 180_000)

test('kill −9 in the middle: the old side goes on, cleanup leaves no slot', async () => {
  const shop = await makeShop(2, 3)
  const journal = await postgres().connect(0, shop.to[0])
  for (const database of shop.from) {
    const client = await postgres().connect(0, database)
    await client.query(
      `INSERT INTO acct SELECT 1 + t % 100, t, repeat('x', 200), 1 FROM generate_series(1, 60000) t`,
    )
    await client.end()
  }
  // Rows must be on their shard for nothing here: the run is killed before it looks.
  const run = startCli(['reshard', 'run', '--config', shop.config, ...move, '--yes', '--no-proxy'])
  const slots = async (): Promise<number> => {
    const rows = await postgres().query(
      `SELECT slot_name FROM pg_replication_slots WHERE slot_name LIKE 'pgshard_%'`,
    )
    return rows.length
  }
  await waitFor(
    async () => {
      const { rows } = await journal.query(`SELECT state FROM pgshard.reshard_run`)
      return ['copying', 'following', 'verifying'].includes(rows[0]?.state) && (await slots()) >= 2
    },
    { deadlineMs: 60_000, intervalMs: 5 },
  )
  run.signal('SIGKILL')
  await run.ended
  expect(await slots()).toBeGreaterThan(0)
  const old = await postgres().connect(0, shop.from[0])
  await old.query('INSERT INTO acct VALUES (1, -1)')
  await old.end()
  const again = await runCli([
    'reshard',
    'run',
    '--config',
    shop.config,
    ...move,
    '--yes',
    '--no-proxy',
  ])
  expect(again.code).toBe(5)
  expect(again.stderr).toContain('reshard cleanup')
  const cleanup = await runCli([
    'reshard',
    'cleanup',
    '--config',
    shop.config,
    ...move,
    '--drop-target',
    '--json',
  ])
  expect(cleanup.code).toBe(0)
  expect(JSON.parse(cleanup.stdout).kept).toEqual([])
  // A temporary slot ends with its connection.
  await waitFor(async () => (await slots()) === 0)
  for (const database of shop.from) {
    const client = await postgres().connect(0, database)
    expect((await client.query('SELECT pubname FROM pg_publication')).rows).toEqual([])
    await client.end()
  }
  const { rows } = await journal.query(
    `SELECT count(*)::int AS tables FROM pg_tables WHERE schemaname = 'public'`,
  )
  expect(rows[0].tables).toBe(0)
  await journal.end()
}, 120_000)
