/** A stream that has nothing to apply, or cannot apply for long: the source forgets its WAL, and does not end the stream. */
import { expect, test } from 'vitest'
import { systemClock } from '../../../src/base/clock.js'
import { silentLog } from '../../../src/base/log.js'
import type { HostTarget } from '../../../src/pg/host-client.js'
import type { ConfigSwitch } from '../../../src/reshard/cutover/switch-config.js'
import { noGate } from '../../../src/reshard/cutover/traffic-gate.js'
import { runReshard } from '../../../src/reshard/reshard.js'
import { connect } from '../../support/moving-shop.js'
import { bySize } from '../../support/test-size.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'
import { makeSide, on } from './move-rig.js'

const settings = { max_wal_senders: '20', max_replication_slots: '20' }
/** Asks for a sign of life after half of this. */
const eager = usePostgres({ version: 15, settings: { ...settings, wal_sender_timeout: '2s' } })
const targets = usePostgres({ version: 15, settings })

/** A move that follows until it is stopped. */
async function following() {
  const [source, target] = [await makeSide(eager(), 'a', 1), await makeSide(targets(), 'b', 2)]
  const first = source.shards[0] as HostTarget
  await on(
    first,
    `CREATE TABLE orders (tenant bigint, id bigint, v text, PRIMARY KEY (tenant, id))`,
    `INSERT INTO orders SELECT i, i, 'old' FROM generate_series(1, 20) i`,
  )
  const said: string[] = []
  const stop = new AbortController()
  const run = runReshard({
    ...{ source, target, gate: noGate, config: {} as ConfigSwitch, clock: systemClock },
    ...{ log: silentLog, listener: { step: (text) => void said.push(text) }, jobs: 1 },
    ...{ budgetMs: 10_000, verifyHoldMs: 5000, stopAfter: 'follow', keepFollowing: true },
    signal: stop.signal,
  })
  run.catch(() => undefined)
  const end = async () => {
    stop.abort()
    return run
  }
  await Promise.race([run, waitFor(() => said.some((text) => text.startsWith('following')))])
  return { first, target, run, end }
}

const walsender = async (target: HostTarget) => {
  const [row] = await on<{ pid: number; seen: boolean }>(
    target,
    `SELECT pid FROM pg_stat_replication WHERE application_name = 'pgshard follow'
       AND pid = (SELECT active_pid FROM pg_replication_slots WHERE database = current_database())`,
  )
  return row?.pid
}

test('O5: tables that nobody writes hold no WAL: the slot moves on behind what others write', async () => {
  const { first, end } = await following()
  await on(
    first,
    ...Array.from(
      { length: 8 },
      () => `SELECT pg_logical_emit_message(false, 'other', repeat('y', 1000000))`,
    ),
  )
  const [{ lsn } = { lsn: '' }] = await on<{ lsn: string }>(
    first,
    `SELECT pg_current_wal_insert_lsn()::text AS lsn`,
  )
  await waitFor(
    async () => {
      // Where the oldest WAL may go is noted when running transactions are, which a checkpoint does.
      const [row] = await on<{ free: boolean }>(
        first,
        'CHECKPOINT',
        `SELECT bool_and(restart_lsn >= '${lsn}' AND confirmed_flush_lsn >= '${lsn}') AS free
           FROM pg_replication_slots WHERE database = current_database()`,
      )
      return row?.free === true
    },
    { deadlineMs: 60_000, intervalMs: 200 },
  )
  expect((await end()).state).toBe('following')
}, 120_000)

test('O5: a target that is held up for longer than wal_sender_timeout does not cost the stream', async () => {
  const { first, target, run, end } = await following()
  const before = await walsender(first)
  expect(before).toBeGreaterThan(0)
  const locks = await Promise.all(target.shards.map(connect))
  for (const lock of locks) await lock.query('BEGIN; LOCK TABLE orders')
  await on(first, `INSERT INTO orders SELECT i, -1, 'new' FROM generate_series(1, 20) i`)
  const [{ from } = { from: '' }] = await on<{ from: string }>(first, 'SELECT now()::text AS from')
  // Three times the limit, by the clock of the server that keeps it.
  const isLater = `SELECT now() > timestamptz '${from}' + interval '${bySize(3, 9) * 2} s' AS later`
  await Promise.race([
    run,
    waitFor(async () => (await on<{ later: boolean }>(first, isLater))[0]?.later === true, {
      deadlineMs: 60_000,
      intervalMs: 200,
    }),
  ])
  expect(await walsender(first)).toBe(before)
  for (const lock of locks) await lock.end()
  const count = `SELECT count(*)::int AS rows FROM orders WHERE v = 'new'`
  await waitFor(async () => {
    const rows = await Promise.all(target.shards.map((shard) => on<{ rows: number }>(shard, count)))
    return rows.flat().reduce((sum, row) => sum + row.rows, 0) === 20
  })
  expect((await end()).state).toBe('following')
}, 120_000)
