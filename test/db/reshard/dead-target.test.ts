/** A target that is killed in copy or in follow, with the journal on it or without: the run fails, resume comes to the same end, cleanup leaves nothing. */
import { expect, test } from 'vitest'
import { systemClock } from '../../../src/base/clock.js'
import { silentLog } from '../../../src/base/log.js'
import type { HostTarget } from '../../../src/pg/host-client.js'
import { cleanupRun } from '../../../src/reshard/cleanup.js'
import type { ConfigSwitch } from '../../../src/reshard/cutover/switch-config.js'
import { noGate } from '../../../src/reshard/cutover/traffic-gate.js'
import { type RunOptions, resumeReshard, runReshard } from '../../../src/reshard/reshard.js'
import type { ReshardSide } from '../../../src/reshard/side.js'
import { shopSharding } from '../../support/moving-shop.js'
import { bySize } from '../../support/test-size.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'
import { at, everywhere, on } from './move-rig.js'

const settings = { max_wal_senders: '60', max_replication_slots: '60' }
const living = usePostgres({ version: 15, settings })
const dying = usePostgres({ version: 15, settings })

async function shardOn(postgres: ReturnType<typeof living>): Promise<HostTarget> {
  const [server] = postgres.servers
  const database = await postgres.createDatabase()
  return { host: server!.host, port: server!.port, user: postgres.user, database }
}

/** As the kernel would, when memory is short: the server ends all its sessions and recovers. */
async function killServer(target: HostTarget): Promise<void> {
  const [{ pid } = { pid: 0 }] = await on<{ pid: number }>(
    target,
    `SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'pgshard%' AND pid <> pg_backend_pid() LIMIT 1`,
  )
  expect(pid).toBeGreaterThan(0)
  process.kill(pid, 'SIGKILL')
}

const count = `SELECT count(*)::int AS rows, coalesce(sum(id), 0)::text AS ids, coalesce(sum(n), 0)::text AS ns FROM orders`

async function sums(side: ReshardSide): Promise<number[]> {
  const rows = (await everywhere(side, count)).map(([row]) => Object.values(row!).map(Number))
  return [0, 1, 2].map((i) => rows.reduce((sum, row) => sum + (row[i] ?? 0), 0))
}

const left = `SELECT slot_name::text AS name FROM pg_replication_slots WHERE database = current_database()
  UNION ALL SELECT pubname FROM pg_publication UNION ALL SELECT tgname FROM pg_trigger WHERE tgname LIKE 'pgshard%'`

test.each(
  bySize(
    [
      ['copy:half', 'with'],
      ['follow:half', 'without'],
    ],
    ['copy:slots', 'copy:half', 'copy:part', 'copy:key', 'follow:batch', 'follow:half'].flatMap(
      (point) => [
        [point, 'with'],
        [point, 'without'],
      ],
    ),
  ),
)(
  'O1: killed at %s, %s the journal',
  async (point, how) => {
    const source = {
      name: 'a',
      shards: [await shardOn(living()), await shardOn(living())],
      sharding: shopSharding(2),
    }
    const journal = how === 'with' ? dying() : living()
    const target = {
      name: 'b',
      shards: [await shardOn(journal), await shardOn(dying()), await shardOn(dying())],
      sharding: shopSharding(3),
    }
    await everywhere(
      source,
      'CREATE TABLE orders (tenant bigint, id bigint, v text, n bigint, PRIMARY KEY (tenant, id))',
    )
    for (let tenant = 1; tenant <= 20; tenant++) {
      const rows = `SELECT ${tenant}, t, repeat('x', 200), t FROM generate_series(1, 200) t`
      await at(source, tenant, `INSERT INTO orders ${rows}`)
    }
    const write = async (round: number): Promise<void> => {
      for (let tenant = 1; tenant <= 20; tenant++) {
        await at(
          source,
          tenant,
          `UPDATE orders SET id = id + 1000, n = n + ${round} WHERE tenant = ${tenant} AND id % 7 = ${round}`,
          `DELETE FROM orders WHERE tenant = ${tenant} AND id % 11 = ${round}`,
          `INSERT INTO orders VALUES (${tenant}, ${5000 + round}, 'new', ${round})`,
        )
      }
    }
    let isKilled = false
    const options: RunOptions = {
      ...{ source, target, gate: noGate, config: {} as ConfigSwitch, clock: systemClock },
      ...{ log: silentLog, listener: { step: () => undefined }, jobs: 2, budgetMs: 10_000 },
      ...{ verifyHoldMs: 5000, stopAfter: 'verify', partBytes: 64 * 1024 },
      atPoint: async (reached) => {
        // Rows that the streams bring: what was written before the copy is in it already.
        if (reached === 'copy:after') await write(1)
        if (reached !== point || isKilled) return
        isKilled = true
        await killServer(target.shards[1] as HostTarget)
      },
    }
    await expect(runReshard(options)).rejects.toThrow()
    expect(isKilled).toBe(true)
    await waitFor(
      async () => {
        await on(target.shards[1] as HostTarget, 'SELECT 1')
        return true
      },
      { deadlineMs: 60_000, intervalMs: 100 },
    )
    await write(2)
    const { atPoint: _, ...again } = options
    const report = await resumeReshard(again)
    expect(report).toMatchObject({ state: 'ready', verify: { same: true } })
    expect(await sums(target)).toEqual(await sums(source))
    const cleaned = await cleanupRun({
      ...{ from: source, to: target, clock: systemClock },
      ...{ dropTarget: true, liftFence: false },
    })
    expect(cleaned.kept).toEqual([])
    for (const side of [source, target]) {
      expect((await everywhere(side, left)).flat()).toEqual([])
    }
    const tables = await everywhere(target, `SELECT FROM pg_tables WHERE schemaname = 'public'`)
    expect(tables.flat()).toEqual([])
  },
  120_000,
)
