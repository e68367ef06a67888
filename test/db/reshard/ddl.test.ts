import { expect, test } from 'vitest'
import { systemClock } from '../../../src/base/clock.js'
import { silentLog } from '../../../src/base/log.js'
import type { HostTarget } from '../../../src/pg/host-client.js'
import type { ConfigSwitch } from '../../../src/reshard/cutover/switch-config.js'
import { noGate } from '../../../src/reshard/cutover/traffic-gate.js'
import { type RunOptions, resumeReshard, runReshard } from '../../../src/reshard/reshard.js'
import { runStatus } from '../../../src/reshard/run-status.js'
import type { ReshardSide } from '../../../src/reshard/side.js'
import { on, useSides } from './move-rig.js'

const { side } = useSides()

const optionsOf = (source: ReshardSide, target: ReshardSide): RunOptions => ({
  source,
  target,
  gate: noGate,
  config: {} as ConfigSwitch,
  clock: systemClock,
  log: silentLog,
  listener: { step: () => undefined },
  jobs: 1,
  budgetMs: 10_000,
  verifyHoldMs: 5_000,
  stopAfter: 'verify',
})

const schema = 'CREATE TABLE orders (tenant bigint, id int, v text, PRIMARY KEY (tenant, id))'

test('O5: a table that changes under the streams pauses the run, which says what it was and goes on when it is taken back', async () => {
  const source = await side('a', 1)
  const target = await side('b', 2)
  const [shard] = source.shards as [HostTarget]
  await on(shard, `${schema}; INSERT INTO orders SELECT t, 1, 'x' FROM generate_series(1, 20) t`)
  const changing = runReshard({
    ...optionsOf(source, target),
    atPoint: async (point) => {
      if (point !== 'follow:caught-up') return
      // The stream itself tells of it: nothing of the new shape is applied.
      await on(shard, `ALTER TABLE orders ADD more int; INSERT INTO orders VALUES (99, 1, 'y', 5)`)
    },
  })
  await expect(changing).rejects.toMatchObject({
    code: 'RESHARD_DDL',
    message: expect.stringContaining('table "public.orders" was changed on'),
    hint: expect.stringContaining('pgshard reshard resume'),
    exitCode: 6,
  })
  const status = await runStatus(source, target)
  expect(status).toMatchObject({ state: 'paused', error: expect.stringContaining('public.orders') })
  expect(status.next).toContain('pgshard reshard resume')
  // Taken up as it is, it says so again at once.
  await expect(resumeReshard(optionsOf(source, target))).rejects.toMatchObject({
    code: 'RESHARD_DDL',
  })
}, 60_000)

test('a table that nobody writes is noticed too, and a new one; an index may come while the run is down', async () => {
  const source = await side('a', 2)
  const target = await side('b', 3)
  for (const shard of source.shards) await on(shard, schema)
  const [, second] = source.shards as [HostTarget, HostTarget]
  const died = runReshard({
    ...optionsOf(source, target),
    atPoint: async (point) => {
      if (point === 'follow:before') {
        await on(second, 'CREATE TABLE extra (tenant bigint PRIMARY KEY)')
      }
    },
  })
  await expect(died).rejects.toMatchObject({
    code: 'RESHARD_DDL',
    message: expect.stringContaining('"public.extra"'),
  })
  await on(second, 'DROP TABLE extra; ALTER TABLE orders ALTER v SET DEFAULT 1')
  await expect(resumeReshard(optionsOf(source, target))).rejects.toMatchObject({
    code: 'RESHARD_DDL',
    message: expect.stringContaining('columns'),
  })
  await on(second, 'ALTER TABLE orders ALTER v DROP DEFAULT; CREATE INDEX ON orders (v)')
  const report = await resumeReshard(optionsOf(source, target))
  expect(report.state).toBe('ready')
  expect(report.warnings.map(({ what }) => what)).toEqual([
    'public.orders: its indexes or constraints are others now',
  ])
}, 60_000)
