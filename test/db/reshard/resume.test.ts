import { expect, test } from 'vitest'
import { systemClock } from '../../../src/base/clock.js'
import { silentLog } from '../../../src/base/log.js'
import type { HostTarget } from '../../../src/pg/host-client.js'
import { cleanupRun } from '../../../src/reshard/cleanup.js'
import type { ConfigSwitch } from '../../../src/reshard/cutover/switch-config.js'
import { noGate } from '../../../src/reshard/cutover/traffic-gate.js'
import {
  type RunOptions,
  type RunReport,
  resumeReshard,
  runReshard,
} from '../../../src/reshard/reshard.js'
import { runStatus } from '../../../src/reshard/run-status.js'
import type { ReshardSide } from '../../../src/reshard/side.js'
import { faultPoints } from '../../../src/reshard/steps/steps.js'
import { at, everywhere, on, useSides } from './move-rig.js'

const { side } = useSides()

const noConfig = {} as ConfigSwitch

const optionsOf = (source: ReshardSide, target: ReshardSide): RunOptions => ({
  source,
  target,
  gate: noGate,
  config: noConfig,
  clock: systemClock,
  log: silentLog,
  listener: { step: () => undefined },
  jobs: 2,
  budgetMs: 10_000,
  verifyHoldMs: 5_000,
  stopAfter: 'verify',
  partBytes: 64 * 1024,
})

const schema = `
CREATE TYPE mood AS ENUM ('calm', 'tense');
CREATE TABLE orders (tenant bigint, id int, v text, mail text, n numeric, feeling mood, PRIMARY KEY (tenant, id),
  UNIQUE (tenant, mail));
ALTER TABLE orders ALTER v SET STORAGE EXTERNAL;
CREATE INDEX orders_n ON orders (n);
CREATE TABLE lines (tenant bigint, id int, n int, PRIMARY KEY (tenant, id, n),
  FOREIGN KEY (tenant, id) REFERENCES orders (tenant, id) ON UPDATE CASCADE ON DELETE CASCADE);
CREATE TABLE country (code char(2) PRIMARY KEY, name text)`

async function seed(source: ReshardSide, rowsPerTenant: number): Promise<void> {
  await everywhere(source, schema, `INSERT INTO country VALUES ('de', 'x'), ('fr', 'y')`)
  for (let tenant = 1; tenant <= 40; tenant++) {
    await at(
      source,
      tenant,
      `INSERT INTO orders SELECT ${tenant}, id, repeat(md5(id::text), CASE WHEN id % 50 = 0 THEN 100 ELSE 1 END),
          id || '@x', id / 7.0, 'calm' FROM generate_series(1, ${rowsPerTenant}) id`,
      `INSERT INTO lines SELECT ${tenant}, id, 1 FROM generate_series(1, ${rowsPerTenant}, 3) id`,
    )
  }
}

/** Every kind of change; `round` makes them differ. */
async function write(source: ReshardSide, round: number): Promise<void> {
  for (const tenant of [1 + (round % 40), 1 + ((round * 7) % 40)]) {
    await at(
      source,
      tenant,
      `BEGIN; INSERT INTO orders VALUES (${tenant}, ${10_000 + round}, repeat('r${round}', 3000), 'new${round}', 1, 'tense')
         ON CONFLICT DO NOTHING; UPDATE orders SET n = ${round} WHERE tenant = ${tenant} AND id % 5 = 0; COMMIT`,
      // Large values unchanged, the key changed, across parts.
      `UPDATE orders SET id = id + 100000 WHERE tenant = ${tenant} AND id IN (50, 100)`,
      `UPDATE orders SET id = id - 100000, n = ${round} WHERE tenant = ${tenant} AND id > 100000 AND id % 100 = 0`,
      `DELETE FROM orders WHERE tenant = ${tenant} AND id = ${200 + (round % 7)}`,
      // A value that is unique passes from one row to another.
      `BEGIN; UPDATE orders SET mail = 'was' || mail WHERE tenant = ${tenant} AND id = 1;
         UPDATE orders SET mail = '1@x' WHERE tenant = ${tenant} AND id = 299; COMMIT`,
      `BEGIN; UPDATE orders SET mail = '299@x' WHERE tenant = ${tenant} AND id = 299;
         UPDATE orders SET mail = '1@x' WHERE tenant = ${tenant} AND id = 1; COMMIT`,
    )
  }
  await everywhere(source, `UPDATE country SET name = 'z${round}' WHERE code = 'de'`)
}

const isBeforeSwitch = (point: string): boolean => !/^(cutover|finish):/.test(point)

test('O2: a run that dies at every point in turn, and is taken up each time, ends as one that never died', async () => {
  const source = await side('a', 2)
  const target = await side('b', 3)
  await seed(source, 300)
  const died: string[] = []
  const options: RunOptions = {
    ...optionsOf(source, target),
    atPoint: async (point) => {
      if (died.includes(point)) return
      died.push(point)
      throw new Error(`died at ${point}`)
    },
  }
  let report: RunReport | undefined
  let begin = runReshard
  while (!report) {
    const before = died.length
    report = await begin(options).catch((error: Error) => {
      if (!died.some((point) => error.message.includes(`died at ${point}`))) throw error
      return undefined
    })
    if (!report) expect(died.length).toBeGreaterThan(before)
    await write(source, died.length)
    begin = resumeReshard
  }
  // Readers that work at once may reach two points in one try.
  expect([...died].sort()).toEqual(faultPoints.filter(isBeforeSwitch).sort())
  expect(report.state).toBe('ready')
  expect(report.verify?.same).toBe(true)
  expect((await runStatus(source, target)).state).toBe('ready')
  const [parts] = await on(
    target.shards[0] as HostTarget,
    'SELECT count(*)::int AS n, count(DISTINCT watermark)::int AS marks FROM pgshard.reshard_copied',
  )
  expect(parts!['n']).toBeGreaterThan(20)
  expect(parts!['marks']).toBeGreaterThan(2)
  const again = await resumeReshard({ ...optionsOf(source, target) })
  expect(again.verify?.same).toBe(true)
  for (const shard of target.shards) {
    const keys = await on(
      shard,
      `SELECT conname, convalidated FROM pg_constraint WHERE conrelid = 'orders'::regclass OR contype = 'f' ORDER BY 1`,
    )
    expect(keys.map((row) => row['conname'])).toEqual([
      'lines_tenant_id_fkey',
      'orders_pkey',
      'orders_tenant_mail_key',
    ])
  }
  const cleaned = await cleanupRun({
    from: source,
    to: target,
    clock: systemClock,
    dropTarget: true,
    liftFence: false,
  })
  expect(cleaned.kept).toEqual([])
  for (const shard of source.shards) {
    expect(
      await on(
        shard,
        `SELECT slot_name FROM pg_replication_slots WHERE database = current_database()
         UNION ALL SELECT pubname FROM pg_publication
         UNION ALL SELECT tgname FROM pg_trigger WHERE tgname LIKE 'pgshard%'`,
      ),
    ).toEqual([])
  }
}, 180_000)
