/** Cutover and rollback by the whole program: several proxies, one that sleeps through it. */
import { expect, test } from 'vitest'
import { connectThrough, makeShop, move, startWriters } from '../../support/live-shop.js'
import { runCli } from '../../support/run-cli.js'
import { bySize, testSize } from '../../support/test-size.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'
import { expectLedger, outputOf, reshard, settings, slotsLeft, startServe } from './cutover-rig.js'

const postgres = usePostgres({ version: 15, settings })

test('O1, O3: there and back under writers: no write fails, the old side has all of them', async () => {
  const shop = await makeShop(postgres(), 2, 3)
  const { program, port } = await startServe(shop)
  const writers = startWriters(postgres(), port, bySize(8, 50))
  await waitFor(() => writers.model.size > 50)
  const there = await reshard(shop, 'run', port)
  expect(there.code, outputOf(there)).toBe(0)
  expect(JSON.parse(there.stdout)).toMatchObject({ cutover: { epoch: 1, wayBack: true } })
  const atSwitch = writers.model.size
  await waitFor(() => writers.model.size > atSwitch + 50)
  const back = await reshard(shop, 'rollback', port)
  expect(back.code, outputOf(back)).toBe(0)
  const report = JSON.parse(back.stdout)
  expect(report).toMatchObject({ verify: { same: true }, cutover: { epoch: 2 } })
  expect(report.changesApplied).toBeGreaterThan(0)
  const atReturn = writers.model.size
  await waitFor(() => writers.model.size > atReturn + 50)
  await writers.stop()
  expect(writers.errors).toEqual([])
  await expectLedger(postgres(), shop.from, writers.model)
  expect(await slotsLeft(postgres())).toEqual([])
  // The side that was left takes no more.
  const left = await postgres().connect(0, shop.to[0])
  const refused = left.query('INSERT INTO acct VALUES (1, -1)')
  await expect(refused).rejects.toMatchObject({ code: '25006' })
  await left.end()
  const status = await runCli(['reshard', 'status', '--config', shop.config, ...move, '--json'])
  expect(JSON.parse(status.stdout)).toMatchObject({ state: 'rolled_back' })
  await program.stop()
}, 240_000)

test.runIf(testSize === 'full')(
  'O3: a proxy that sleeps through the cutover loses no write, one that lives must be reached',
  async () => {
    const shop = await makeShop(postgres(), 2, 3)
    const awake = await startServe(shop)
    const asleep = await startServe(shop)
    const setup = await runCli(['setup', '--config', shop.config, '--database', 'shop'])
    expect(setup.code, outputOf(setup)).toBe(0)
    const writers = startWriters(postgres(), awake.port, 4)
    const sleepers = startWriters(postgres(), asleep.port, 4, 50)
    const registered = async (): Promise<number> => {
      const client = await postgres().connect(0, shop.from[0])
      const { rows } = await client.query(
        `SELECT count(*)::int AS n FROM pgshard.proxy WHERE database = 'shop' AND heartbeat_at > now() - interval '10 s'`,
      )
      await client.end()
      return rows[0].n
    }
    await waitFor(async () => (await registered()) === 2, { deadlineMs: 60_000, intervalMs: 200 })
    await waitFor(() => sleepers.model.size > 20)
    const ready = await reshard(shop, 'run', awake.port, ['--stop-after', 'verify'])
    expect(ready.code, outputOf(ready)).toBe(0)
    // One that lives as far as anybody knows, and that nobody can reach, stops a cutover before it pauses anyone.
    const old = await postgres().connect(0, shop.from[0])
    await old.query(
      `INSERT INTO pgshard.proxy (id, host, port, process_id, version, database, heartbeat_at)
     VALUES ('elsewhere', '127.0.0.1', 1, 1, '', 'shop', now() + interval '1 hour')`,
    )
    const refused = await reshard(shop, 'resume', awake.port)
    expect(refused.code, outputOf(refused)).toBe(4)
    expect(outputOf(refused)).toContain('RESHARD_PROXY_UNREACHED')
    await old.query(`DELETE FROM pgshard.proxy WHERE id = 'elsewhere'`)
    await old.end()
    asleep.program.signal('SIGSTOP')
    await waitFor(async () => (await registered()) === 1, { deadlineMs: 60_000, intervalMs: 200 })
    const run = await reshard(shop, 'resume', awake.port)
    expect(run.code, outputOf(run)).toBe(0)
    asleep.program.signal('SIGCONT')
    const atWaking = sleepers.model.size
    await waitFor(() => sleepers.model.size > atWaking + 20 || sleepers.errors.length > 0, {
      deadlineMs: 60_000,
    })
    await Promise.all([writers.stop(), sleepers.stop()])
    expect(writers.errors).toEqual([])
    expect(sleepers.errors).toEqual([])
    await expectLedger(postgres(), shop.to, writers.model, sleepers.model)
    const console = await runCli(['reshard', 'status', '--config', shop.config, ...move, '--json'])
    expect(JSON.parse(console.stdout)).toMatchObject({ state: 'cut_over' })
    await Promise.all([awake.program.stop(), asleep.program.stop()])
  },
  240_000,
)

test.runIf(testSize === 'full')(
  'O3: over budget the old side goes on, and the move can be switched later',
  async () => {
    const shop = await makeShop(postgres(), 2, 3)
    const { program, port } = await startServe(shop)
    const writers = startWriters(postgres(), port, 4)
    await waitFor(() => writers.model.size > 50)
    // It holds no lock and no transaction id: only the pause waits for it.
    const client = await connectThrough(postgres(), port)
    const sleeping = client.query('SELECT pg_sleep(600)').catch((error: unknown) => error)
    const late = await reshard(shop, 'run', port, ['--budget-ms', '300'])
    expect(late.code, outputOf(late)).toBe(6)
    expect(outputOf(late)).toContain('RESHARD_PAUSE')
    const before = writers.model.size
    await waitFor(() => writers.model.size > before + 50)
    await postgres().query(
      `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)%' AND pid <> pg_backend_pid()`,
    )
    expect(await sleeping).toMatchObject({ code: '57014' })
    await client.end()
    const resumed = await reshard(shop, 'resume', port)
    expect(resumed.code, outputOf(resumed)).toBe(0)
    await writers.stop()
    expect(writers.errors).toEqual([])
    await expectLedger(postgres(), shop.to, writers.model)
    await program.stop()
  },
  240_000,
)
