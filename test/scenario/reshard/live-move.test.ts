/** The whole program: `serve` with writers on it, `reshard run` beside it; and a run that is killed. */
import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import {
  connectThrough,
  consoleUrl,
  makeShop,
  move,
  startWriters,
} from '../../support/live-shop.js'
import { runCli, startCli } from '../../support/run-cli.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'

const postgres = usePostgres({
  version: 15,
  settings: { max_wal_senders: '40', max_replication_slots: '40' },
})

test('D8, D218: serve keeps serving: 2 → 3 shards, no write lost, none refused', async () => {
  const shop = await makeShop(postgres(), 2, 3)
  const serve = startCli(['serve', '--config', shop.config, '--users', shop.users])
  const [, port] = await serve.waitForOutput(/listening on 127\.0\.0\.1:(\d+)/)
  const writers = startWriters(postgres(), Number(port), 4)
  await waitFor(() => writers.model.size > 50)
  const proxy = consoleUrl(Number(port))
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
  const client = await connectThrough(postgres(), Number(port))
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
  // What is kept is the way back, until it is given up.
  const cleanup = await runCli(['reshard', 'cleanup', '--config', shop.config, ...move, '--json'])
  expect(cleanup.code, cleanup.stderr).toBe(0)
  const kept = JSON.parse(cleanup.stdout).kept.join()
  expect(kept).toContain('fence')
  expect(kept).not.toMatch(/slot|publication|role/)
  const slots = `SELECT slot_name FROM pg_replication_slots WHERE slot_name LIKE 'pgshard_%'`
  expect(await postgres().query(slots)).toEqual([])
  await serve.stop()
}, 180_000)

test('kill −9 in the middle: the old side goes on, cleanup leaves no slot', async () => {
  const shop = await makeShop(postgres(), 2, 3)
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
