import { mkdtemp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, inject, test } from 'vitest'
import { systemClock } from '../../../src/base/clock.js'
import { silentLog } from '../../../src/base/log.js'
import type { HostTarget } from '../../../src/pg/host-client.js'
import { Pace } from '../../../src/reshard/copy/pace.js'
import { configSwitch } from '../../../src/reshard/cutover/switch-config.js'
import { noGate } from '../../../src/reshard/cutover/traffic-gate.js'
import { DEFAULT_LIMITS, type GuardLimits } from '../../../src/reshard/guards/guard-limits.js'
import { changeSetting, readSamples } from '../../../src/reshard/guards/sample-store.js'
import { type RunOptions, runReshard } from '../../../src/reshard/reshard.js'
import { runStatus } from '../../../src/reshard/run-status.js'
import type { ReshardSide } from '../../../src/reshard/side.js'
import { connect } from '../../support/moving-shop.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'
import { makeSide } from './move-rig.js'
import { bigSharding, on } from './verify-rig.js'

const postgres = usePostgres({
  version: 15,
  settings: { max_wal_senders: '20', max_replication_slots: '20' },
})

const side = (name: string, count: number): Promise<ReshardSide> =>
  makeSide(postgres(), name, count, bigSharding(count))

async function move(limits: Partial<GuardLimits>): Promise<{ given: RunOptions; said: string[] }> {
  const source = await side('a', 1)
  const target = await side('b', 2)
  await on(
    source.shards[0] as HostTarget,
    `CREATE TABLE big (tenant bigint, id bigint, v text, PRIMARY KEY (tenant, id));
     INSERT INTO big SELECT i, i, repeat('x', 200) FROM generate_series(1, 3000) i`,
  )
  const path = join(await mkdtemp(join(inject('runDirectory'), 'guard-')), 'pgdog.toml')
  await writeFile(
    path,
    '[[databases]]\nname = "a"\nhost = "h1"\n[[databases]]\nname = "b"\nhost = "h2"\n',
  )
  const said: string[] = []
  const given: RunOptions = {
    source,
    target,
    gate: noGate,
    config: configSwitch(path, 'a', 'b'),
    clock: systemClock,
    log: silentLog,
    listener: { step: (text) => void said.push(text) },
    jobs: 1,
    budgetMs: 10_000,
    verifyHoldMs: 5_000,
    limits: { ...DEFAULT_LIMITS, ...limits },
    guardPeriodMs: 50,
    stopAfter: 'follow',
    keepFollowing: true,
    pace: new Pace(systemClock, 0),
  }
  return { given, said }
}

const kept = async (source: ReshardSide): Promise<number> => {
  const [row] = await on(
    source.shards[0] as HostTarget,
    `SELECT max(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn))::float8 AS kept FROM pg_replication_slots`,
  )
  return (row?.['kept'] as number | null) ?? Number.POSITIVE_INFINITY
}

/** Writes WAL on a source that concerns no table, up to `bytes` kept. */
async function fill(source: ReshardSide, bytes: number): Promise<void> {
  const client = await connect(source.shards[0] as HostTarget)
  while ((await kept(source)) < bytes) {
    await client.query(`SELECT pg_logical_emit_message(false, 'x', repeat('y', 1000000))`)
  }
  await client.end()
}

test('a stalled target makes the run pause and then abort, with the source free and served', async () => {
  const { given, said } = await move({ maxWalKept: 16 * 2 ** 20 })
  const { source, target } = given
  const run = runReshard(given)
  run.catch(() => undefined)
  await waitFor(() => said.some((text) => text.startsWith('following')))
  const locks = await Promise.all(target.shards.map(connect))
  for (const lock of locks) await lock.query('BEGIN; LOCK TABLE big')
  await on(
    source.shards[0] as HostTarget,
    `INSERT INTO big SELECT i, -1, 'new' FROM generate_series(1, 50) i`,
  )
  await fill(source, 12.5 * 2 ** 20)
  await waitFor(() => said.some((text) => text.startsWith('paused: a source keeps')))
  expect(
    (await on(source.shards[0] as HostTarget, 'SELECT 1 FROM pg_replication_slots')).length,
  ).toBe(1)
  await Promise.all([
    fill(source, 17 * 2 ** 20), // until the slot has gone
    expect(run).rejects.toMatchObject({
      code: 'RESHARD_WAL_GUARD',
      exitCode: 6,
      hint: expect.stringContaining('its slots and publications are gone'),
    }),
  ])
  const left = await on(
    source.shards[0] as HostTarget,
    'SELECT slot_name::text FROM pg_replication_slots UNION ALL SELECT pubname::text FROM pg_publication',
  )
  expect(left).toEqual([])
  await on(source.shards[0] as HostTarget, `INSERT INTO big VALUES (1, -2, 'served')`)
  for (const lock of locks) await lock.end()
  expect(await runStatus(source, target)).toMatchObject({ state: 'failed', lag_bytes: null })
}, 90_000)

test('with wal_action pause it waits, and limits are changed while it runs', async () => {
  const { given, said } = await move({
    maxWalKept: 16 * 2 ** 20,
    walAction: 'pause',
    maxRate: 20_000,
  })
  const { source, target } = given
  const stop = new AbortController()
  const run = runReshard({ ...given, signal: stop.signal })
  run.catch(() => undefined)
  // 600 kB at 20 kB a second would take half a minute.
  await waitFor(() => said.some((text) => text.startsWith('copying')))
  const status = await runStatus(source, target)
  expect(status.state).toBe('copying')
  await changeSetting(target, status.run, 'max_rate', 'off')
  await expect(changeSetting(target, status.run, 'max_rate', 'much')).rejects.toMatchObject({
    code: 'RESHARD_SETTING',
  })
  await waitFor(() => said.some((text) => text.startsWith('following')), { deadlineMs: 20_000 })
  const locks = await Promise.all(target.shards.map(connect))
  for (const lock of locks) await lock.query('BEGIN; LOCK TABLE big')
  await on(
    source.shards[0] as HostTarget,
    `INSERT INTO big SELECT i, -1, 'new' FROM generate_series(1, 50) i`,
  )
  await fill(source, 17 * 2 ** 20)
  await waitFor(() => said.some((text) => text.startsWith('paused: a source keeps')))
  await changeSetting(target, status.run, 'max_wal_kept', 'off')
  await waitFor(() => said.some((text) => text.startsWith('going on')))
  for (const lock of locks) await lock.end()
  await waitFor(async () => {
    const counts = await Promise.all(
      target.shards.map((shard) => on(shard, 'SELECT count(*)::int AS n FROM big')),
    )
    return counts.reduce((sum, rows) => sum + (rows[0]?.['n'] as number), 0) === 3050
  })
  stop.abort()
  expect((await run).state).toBe('following')
  const samples = await readSamples(target, status.run)
  expect(samples.some((sample) => sample.isHeld)).toBe(true)
  expect(samples.at(-1)?.copiedBytes).toBeGreaterThan(300_000)
}, 90_000)
