/** Parts of one table copied in snapshots of different moments, while rows move between them. */
import type pg from 'pg'
import { expect, test } from 'vitest'
import { systemClock } from '../../../src/base/clock.js'
import { silentLog } from '../../../src/base/log.js'
import type { HostTarget } from '../../../src/pg/host-client.js'
import type { ConfigSwitch } from '../../../src/reshard/cutover/switch-config.js'
import { noGate } from '../../../src/reshard/cutover/traffic-gate.js'
import { type RunOptions, runReshard } from '../../../src/reshard/reshard.js'
import type { ReshardSide } from '../../../src/reshard/side.js'
import { connect } from '../../support/moving-shop.js'
import { randomOf } from '../../support/random-of.js'
import { bySize } from '../../support/test-size.js'
import { waitFor } from '../../support/wait-for.js'
import { useSides } from './move-rig.js'

const { side } = useSides()

const optionsOf = (
  source: ReshardSide,
  target: ReshardSide,
  atPoint: (point: string) => Promise<void>,
): RunOptions => ({
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
  partBytes: 100_000,
  snapshotAgeMs: 0,
  atPoint,
})

const schema = `CREATE TABLE orders (tenant bigint, id int, v text, big text, mail text, PRIMARY KEY (tenant, id));
  ALTER TABLE orders ALTER big SET STORAGE EXTERNAL; CREATE UNIQUE INDEX orders_mail ON orders (mail)`

const TENANTS = 40
const IDS = 40

/** One transaction of a few changes; large values mostly unchanged. */
async function transaction(client: pg.Client, random: (below: number) => number): Promise<void> {
  await client.query('BEGIN')
  for (let i = 0; i <= random(4); i++) {
    const [tenant, other] = [1 + random(TENANTS), 1 + random(TENANTS)]
    const [id, free] = [1 + random(IDS), 1 + random(IDS)]
    const where = `WHERE tenant = ${tenant} AND id = ${id}`
    const mail = `m${random(300)}`
    const sql = [
      // A row moves to another part, and so to another target, its large value unsaid.
      `UPDATE orders SET tenant = ${other}, id = ${free} ${where} AND NOT EXISTS (SELECT FROM orders WHERE tenant = ${other} AND id = ${free})`,
      `UPDATE orders SET v = 'u${random(1000)}' ${where}`,
      `DELETE FROM orders ${where}`,
      `INSERT INTO orders VALUES (${tenant}, ${id}, 'new', repeat('n${random(100)}', 2500)) ON CONFLICT DO NOTHING`,
      `UPDATE orders SET big = repeat('g${random(100)}', 2500) ${where}`,
      // A unique value goes from row to row, whatever their parts.
      `UPDATE orders SET mail = NULL WHERE mail = '${mail}'; UPDATE orders SET mail = '${mail}' ${where}`,
    ][random(6)] as string
    await client.query(sql)
  }
  await client.query('COMMIT')
}

test.each(bySize([3], [3, 4, 5, 6, 7, 8]))(
  'O2: rows that move between parts of different moments end as on the source, seed %i',
  async (seed) => {
    const random = randomOf(seed)
    const source = await side('a', 1)
    const target = await side('b', 3)
    const client = await connect(source.shards[0] as HostTarget)
    await client.query(schema)
    await client.query(
      `INSERT INTO orders SELECT t, i, 'v', CASE WHEN i % 3 = 0 THEN repeat(md5(t || '/' || i), 80) ELSE 'small' END
         FROM generate_series(1, ${TENANTS}) t, generate_series(1, ${IDS}) i`,
    )
    const truncater = await connect(source.shards[0] as HostTarget)
    let parts = 0
    let truncated: Promise<unknown> | undefined
    const report = await runReshard(
      optionsOf(source, target, async (point) => {
        if (!['copy:parts', 'copy:part', 'copy:rows', 'follow:started'].includes(point)) return
        if (point === 'copy:part') parts++
        if (parts === 4 && point === 'copy:part') {
          // Waits for the reader, in a transaction that the next snapshot waits for.
          await truncater.query(`BEGIN; DELETE FROM orders WHERE tenant = 1`)
          truncated = truncater.query(
            `TRUNCATE orders; INSERT INTO orders SELECT t, i, 'again', repeat('z', 3000)
               FROM generate_series(1, ${TENANTS}, 2) t, generate_series(1, ${IDS}, 3) i; COMMIT`,
          )
          return
        }
        for (let i = 0; i < 25; i++) await transaction(client, random)
      }),
    )
    await truncated
    await truncater.end()
    await client.end()
    expect(parts).toBeGreaterThan(5)
    expect(report.verify?.tables.filter((table) => !table.same)).toEqual([])
    expect(report.verify?.tables[0]?.targetRows).toBeGreaterThan(100)
    const one = await connect(target.shards[0] as HostTarget)
    const { rows } = await one.query(
      `SELECT count(DISTINCT watermark)::int AS marks FROM pgshard.reshard_copied`,
    )
    expect(rows[0].marks).toBeGreaterThan(5)
    await one.end()
  },
  60_000,
)

test('a commit that starts at the consistent point of a part is applied', async () => {
  const source = await side('a', 1)
  const target = await side('b', 2)
  const place = source.shards[0] as HostTarget
  const [a, c, d, watch] = await Promise.all([1, 2, 3, 4].map(() => connect(place)))
  await a!.query(schema)
  await a!.query(`INSERT INTO orders SELECT t, 1 FROM generate_series(1, 20) t`)
  const pidOf = async (client: pg.Client): Promise<number> =>
    (await client.query('SELECT pg_backend_pid() AS pid')).rows[0].pid
  const [pidA, pidC] = [await pidOf(a!), await pidOf(c!)]
  /** The walsender that makes the slot of the copy waits for the transaction of `pid`. */
  const waitsFor = (pid: number): Promise<unknown> =>
    waitFor(async () => {
      const { rows } = await watch!.query(
        `SELECT 1 FROM pg_stat_activity WHERE query LIKE 'CREATE_REPLICATION_SLOT%_c0_%' AND $1 = ANY (pg_blocking_pids(pid))`,
        [pid],
      )
      return rows.length > 0
    })
  let ended: Promise<void> | undefined
  let commitStart = ''
  const sequence = async (): Promise<void> => {
    await waitsFor(pidA)
    await c!.query('BEGIN; INSERT INTO orders VALUES (101, 1)')
    await a!.query('COMMIT')
    await waitsFor(pidC)
    await d!.query('BEGIN; INSERT INTO orders VALUES (102, 1)')
    await Promise.all([
      c!.query('COMMIT'),
      d!.query('SELECT pg_current_wal_insert_lsn()::text AS lsn; COMMIT').then((answers) => {
        commitStart = (answers as unknown as pg.QueryResult[])[0]?.rows[0].lsn
      }),
    ])
  }
  const report = await runReshard(
    optionsOf(source, target, async (point) => {
      if (point !== 'copy:parts') return
      await a!.query('BEGIN; INSERT INTO orders VALUES (100, 1)')
      ended = sequence()
    }),
  )
  await ended
  expect(commitStart).not.toBe('')
  expect(report.verify?.tables.filter((table) => !table.same)).toEqual([])
  expect(report.verify?.tables[0]?.targetRows).toBe(23)
  await Promise.all([a, c, d, watch].map((client) => client!.end()))
}, 60_000)
