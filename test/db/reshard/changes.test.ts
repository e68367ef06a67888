import { mkdtemp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, inject, test } from 'vitest'
import { systemClock } from '../../../src/base/clock.js'
import { silentLog } from '../../../src/base/log.js'
import type { HostTarget } from '../../../src/pg/host-client.js'
import { configSwitch } from '../../../src/reshard/cutover/switch-config.js'
import { noGate, type TrafficGate } from '../../../src/reshard/cutover/traffic-gate.js'
import { preflight } from '../../../src/reshard/preflight/preflight.js'
import { type RunOptions, resumeReshard, runReshard } from '../../../src/reshard/reshard.js'
import { runStatus } from '../../../src/reshard/run-status.js'
import type { ReshardSide } from '../../../src/reshard/side.js'
import { verifyQuiet } from '../../../src/reshard/verify/verify.js'
import { connect, shardOf } from '../../support/moving-shop.js'
import { at, everywhere, on, useSides } from './move-rig.js'

const { side } = useSides()

async function options(
  source: ReshardSide,
  target: ReshardSide,
  gate: TrafficGate,
): Promise<RunOptions> {
  const path = join(await mkdtemp(join(inject('runDirectory'), 'pgshard-move-')), 'pgdog.toml')
  await writeFile(
    path,
    '[[databases]]\nname = "a"\nhost = "h1"\n[[databases]]\nname = "b"\nhost = "h2"\n',
  )
  return {
    source,
    target,
    gate,
    config: configSwitch(path, 'a', 'b'),
    clock: systemClock,
    log: silentLog,
    listener: { step: () => undefined },
    jobs: 1,
    budgetMs: 10_000,
    verifyHoldMs: 5_000,
  }
}

/** A proxy that lets `work` be done on the source in the last moment before the locks. */
const lastMinute = (work: () => Promise<unknown>): TrafficGate => ({
  ...noGate,
  pause: async () => void (await work()),
})

const tables = {
  binary: `CREATE TABLE orders (tenant bigint, id int, v text, n numeric, u uuid, d date, f float8, b bytea, j jsonb,
             PRIMARY KEY (tenant, id)); ALTER TABLE orders ALTER v SET STORAGE EXTERNAL;
           CREATE TABLE country (code bpchar(3) PRIMARY KEY, name text)`,
  text: `CREATE TYPE pair AS (a int, b text); CREATE DOMAIN small AS int CHECK (value < 100);
         CREATE TABLE orders (tenant bigint, id int, v text, n numeric[], u pair, d small, f interval, b "char", j text[][],
           PRIMARY KEY (tenant, id)); ALTER TABLE orders ALTER v SET STORAGE EXTERNAL;
         CREATE TABLE country (code bpchar(3) PRIMARY KEY, name text)`,
}
const rows = {
  binary: (t: number, id: number) =>
    `INSERT INTO orders VALUES (${t}, ${id}, repeat('r${id}', 4500), 'NaN', gen_random_uuid(), '-infinity', 'Infinity', '\\x00ff', '{"a": 1e400}')`,
  text: (t: number, id: number) =>
    `INSERT INTO orders VALUES (${t}, ${id}, repeat('r${id}', 4500), '{1.50,NULL}', '(1,"a,""b")', 99, '-1 mon 3 days 00:00:00.000001', 'x', '{{a,NULL},{"NULL","{,}\\\\"}}')`,
}

describe.each(['binary', 'text'] as const)('changes that travel in %s', (format) => {
  test.each([
    [2, 3],
    [1, 4],
  ])(
    'unchanged large values, key changes, truncate, %i → %i',
    async (from, to) => {
      const source = await side('a', from)
      const target = await side('b', to)
      await everywhere(
        source,
        tables[format],
        `INSERT INTO country VALUES ('de', 'x'), ('fr', 'y')`,
      )
      for (let t = 1; t <= 40; t++) await at(source, t, rows[format](t, 1), rows[format](t, 2))
      const gate = lastMinute(async () => {
        // Large values stay where they are: the stream does not carry them.
        await at(source, 1, 'UPDATE orders SET n = NULL WHERE tenant = 1')
        await at(source, 2, `UPDATE orders SET id = id + 100, n = NULL WHERE tenant = 2`)
        await at(
          source,
          3,
          'DELETE FROM orders WHERE tenant = 3 AND id = 1',
          rows[format](3, 1),
          `UPDATE orders SET v = NULL WHERE tenant = 3`,
        )
        // A whole life in one transaction, and one that never was.
        await at(
          source,
          4,
          `BEGIN; ${rows[format](4, 9)}; UPDATE orders SET n = NULL WHERE tenant = 4 AND id = 9; COMMIT`,
        )
        await at(
          source,
          5,
          `BEGIN; ${rows[format](5, 9)}; ROLLBACK`,
          `BEGIN; SAVEPOINT s; ${rows[format](5, 8)}; ROLLBACK TO s; COMMIT`,
        )
        // Two rows change places: the order of changes to unique keys counts.
        await at(
          source,
          6,
          'UPDATE orders SET id = id + 10 WHERE tenant = 6',
          'UPDATE orders SET id = 99 WHERE tenant = 6 AND id = 11',
          'UPDATE orders SET id = 11 WHERE tenant = 6 AND id = 12',
          'UPDATE orders SET id = 12 WHERE tenant = 6 AND id = 99',
        )
        if (from === 1) {
          // The key itself moves rows between targets, with their large values.
          await at(
            source,
            7,
            'UPDATE orders SET tenant = tenant + 1000 WHERE tenant BETWEEN 7 AND 20',
          )
          await at(
            source,
            7,
            'UPDATE orders SET tenant = tenant - 1000, n = NULL WHERE tenant BETWEEN 1007 AND 1012',
          )
        }
        await everywhere(
          source,
          `UPDATE country SET name = 'z' WHERE code = 'de'`,
          `DELETE FROM country WHERE code = 'fr'`,
        )
      })
      const report = await runReshard(await options(source, target, gate))
      expect(report.state).toBe('cut_over')
      const steps = report.cutover?.steps.map(({ step }) => step) ?? []
      // Behind the fence these two run side by side, and are told as they end.
      const besides = steps.splice(2, 2)
      expect(besides.sort()).toEqual(['applying the last changes', 'setting sequences'])
      // The new side was never fenced: nothing is to be opened.
      expect(steps).toEqual([
        'pausing the proxies',
        'fencing the old tables',
        'deciding',
        'switching the configuration file',
        'reloading the proxies',
        'resuming the proxies',
        'telling all shards the epoch',
      ])
      const verified = await verifyQuiet({ source, target, clock: systemClock })
      expect(verified.tables.filter((table) => !table.same)).toEqual([])
      expect((await runStatus({ ...target, name: 'a' }, { ...source, name: 'b' })).state).toBe(
        'cut_over',
      )
      for (let t = 1; t <= 8; t++) await at(target, t, rows[format](t, 77))
    },
    60_000,
  )
})

test('TRUNCATE of one source leaves the rows of the others', async () => {
  const source = await side('a', 3)
  const target = await side('b', 2)
  await everywhere(source, tables.binary)
  for (let t = 1; t <= 60; t++) await at(source, t, rows.binary(t, 1))
  const gate = lastMinute(async () => {
    await at(source, 1, 'TRUNCATE orders', rows.binary(1, 5))
  })
  await runReshard(await options(source, target, gate))
  const verified = await verifyQuiet({ source, target, clock: systemClock })
  expect(verified.same).toBe(true)
  const left = verified.tables.find((table) => table.name === 'public.orders')?.targetRows
  const gone = Array.from({ length: 60 }, (_, i) => i + 1).filter(
    (t) => shardOf(t, source.sharding) === shardOf(1, source.sharding),
  )
  expect(left).toBe(60 - gone.length + 1)
}, 60_000)

test('a proxy that will not read the new configuration is told again by resume: the new side is the truth', async () => {
  const source = await side('a', 2)
  const target = await side('b', 3)
  await everywhere(source, tables.binary)
  await at(source, 1, rows.binary(1, 1))
  const calls: string[] = []
  const gate: TrafficGate = {
    ...noGate,
    pause: async () => void calls.push('pause'),
    reload: async () => {
      calls.push('reload')
      if (calls.length === 2) throw new Error('no such file')
    },
    resume: async () => void calls.push('resume'),
  }
  const given = await options(source, target, gate)
  await expect(runReshard(given)).rejects.toMatchObject({
    code: 'RESHARD_SWITCHED_HALF',
    exitCode: 6,
  })
  expect(calls).toEqual(['pause', 'reload', 'resume'])
  // there is no way back to a side that no longer decides
  await expect(at(source, 1, rows.binary(1, 2))).rejects.toMatchObject({ code: '25006' })
  const done = await resumeReshard(given)
  expect(done.state).toBe('cut_over')
  expect(calls.slice(3)).toContain('reload')
  const verified = await verifyQuiet({ source, target, clock: systemClock })
  expect(verified.same).toBe(true)
}, 60_000)

test('a direct client in a transaction: the cutover gives up in time and the old side goes on', async () => {
  const source = await side('a', 2)
  const target = await side('b', 3)
  await everywhere(source, tables.binary)
  const direct = await connect(source.shards[1] as HostTarget)
  const calls: string[] = []
  const gate: TrafficGate = {
    ...noGate,
    pause: async () => {
      await direct.query('BEGIN; DELETE FROM orders')
      calls.push('pause')
    },
    resume: async () => void calls.push('resume'),
  }
  const given = { ...(await options(source, target, gate)), budgetMs: 900 }
  await expect(runReshard(given)).rejects.toMatchObject({
    code: 'RESHARD_LOCK',
    hint: expect.stringContaining('pid '),
  })
  expect(calls).toEqual(['pause', 'resume'])
  await direct.query('COMMIT')
  await direct.end()
  await at(source, 1, rows.binary(1, 1))
}, 60_000)

test('preflight names every problem at once and writes nothing', async () => {
  const source = await side('a', 2)
  const target = await side('b', 3)
  await everywhere(
    source,
    `CREATE TABLE orders (id bigint PRIMARY KEY, tenant bigint);
     CREATE TABLE lines (tenant bigint, n int);
     CREATE TABLE part (a int) PARTITION BY RANGE (a); CREATE UNLOGGED TABLE quick (a int PRIMARY KEY);
     CREATE TABLE whole (a int PRIMARY KEY); ALTER TABLE whole REPLICA IDENTITY FULL`,
  )
  await on(source.shards[1] as HostTarget, 'CREATE TABLE extra (a int PRIMARY KEY)')
  await on(
    target.shards[2] as HostTarget,
    'CREATE TABLE orders (a int); INSERT INTO orders VALUES (1)',
  )
  const { problems } = await preflight(source, target)
  const found = problems.map(({ where, what }) => `${where}: ${what}`).join('\n')
  for (const wanted of [
    'public.orders: its replica identity does not hold the sharding key "tenant"',
    'public.orders: unique index "orders_pkey" does not hold the sharding key "tenant"',
    'public.lines: has no primary key',
    'public.quick: is unlogged',
    'has table public.extra, which source shard 0 has not',
    'table public.orders holds rows',
  ]) {
    expect(found).toContain(wanted)
  }
  await expect(runReshard(await options(source, target, noGate))).rejects.toMatchObject({
    code: 'RESHARD_REFUSED',
    exitCode: 5,
  })
  expect(
    await on(
      target.shards[0] as HostTarget,
      `SELECT 1 FROM pg_namespace WHERE nspname = 'pgshard'`,
    ),
  ).toEqual([])
}, 60_000)
