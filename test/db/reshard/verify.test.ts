import { mkdtemp } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, inject, test } from 'vitest'
import { systemClock } from '../../../src/base/clock.js'
import { createSnapshotSlot } from '../../../src/replication/slot.js'
import { describeDifference } from '../../../src/reshard/verify/compare-tables.js'
import { verifyQuiet } from '../../../src/reshard/verify/verify.js'
import { fileStore, journalStore } from '../../../src/reshard/verify/verify-store.js'
import { connect } from '../../support/moving-shop.js'
import { bySize } from '../../support/test-size.js'
import { usePostgres } from '../../support/use-postgres.js'
import { bigSide, on } from './verify-rig.js'

const postgres = usePostgres({ version: 15 })
const ROWS = bySize(20_000, 1_000_000)
const clock = systemClock

/** Settings under which PostgreSQL prints many values in another way. */
const odd = [
  `DateStyle = 'German, DMY'`,
  `TimeZone = 'Asia/Kathmandu'`,
  `IntervalStyle = 'iso_8601'`,
  `bytea_output = 'escape'`,
  `extra_float_digits = -5`,
]

test('finds nothing where there is nothing, across collations and settings of the databases', async () => {
  const source = await bigSide(postgres(), 'a', {
    shards: 2,
    rows: ROWS,
    create: `LOCALE_PROVIDER icu ICU_LOCALE 'sv' LOCALE 'C.UTF-8'`,
    settings: odd,
  })
  const target = await bigSide(postgres(), 'b', { shards: 3, rows: ROWS, create: `LOCALE 'C'` })
  for (let run = 0; run < bySize(2, 10); run++) {
    const report = await verifyQuiet({ source, target, clock })
    expect(report.tables.filter((table) => !table.same)).toEqual([])
    expect(report.tables.find((table) => table.name === 'public.big')).toMatchObject({
      sourceRows: ROWS,
      targetRows: ROWS,
    })
  }
}, 300_000)

test('finds one changed byte, one missing row, one extra row and one on a wrong shard, and names their keys', async () => {
  const source = await bigSide(postgres(), 'a', { shards: 2, rows: ROWS })
  const target = await bigSide(postgres(), 'b', { shards: 3, rows: ROWS })
  const key = (i: number) => `tenant = ${i % 5000} AND id = ${i}`
  await on(
    await target.of(1234),
    `UPDATE big SET raw = set_byte(raw, 3, get_byte(raw, 3) # 1) WHERE ${key(1234)}`,
  )
  await on(await target.of(1235), `DELETE FROM big WHERE ${key(1235)}`)
  await on(await target.of(77), `INSERT INTO big (tenant, id) VALUES (77, -1)`)
  await on(
    await target.of(4),
    `UPDATE big SET amount = trunc(amount, 4)::numeric(14,4) WHERE ${key(4)}`,
  )
  const report = await verifyQuiet({ source, target, clock })
  const big = report.tables.find((table) => table.name === 'public.big')
  expect(big).toMatchObject({ same: false, sourceRows: ROWS, targetRows: ROWS, misplaced: 0 })
  expect([...(big?.keys ?? [])].sort((a, b) => a.key.localeCompare(b.key))).toEqual([
    { key: '(1234,1234)', what: 'differs' },
    { key: '(1235,1235)', what: 'missing on target' },
    { key: '(77,-1)', what: 'not on source' },
  ])
  const home = await target.of(78)
  const other = target.shards.find((shard) => shard.database !== home.database)
  await on(other as never, `INSERT INTO big (tenant, id) VALUES (78, -2)`)
  const again = await verifyQuiet({ source, target, clock })
  const found = again.tables.find((table) => table.name === 'public.big')
  expect(found?.misplaced).toBe(1)
  expect(found && describeDifference(found)).toContain('(78,-2) not on source')
  expect(found && describeDifference(found)).toContain('1 rows stand on a shard')
}, 300_000)

describe('one that died', () => {
  test.each(['journal', 'file'] as const)(
    'goes on with the parts that remain (%s)',
    async (kind) => {
      const source = await bigSide(postgres(), 'a', { shards: 2, rows: 3000 })
      const target = await bigSide(postgres(), 'b', { shards: 3, rows: 3000 })
      const path = join(await mkdtemp(join(inject('runDirectory'), 'verify-')), 'progress')
      const store =
        kind === 'journal' ? journalStore(target, 'r1') : fileStore(path, source, target)
      const options = { source, target, clock, store, partBytes: 60_000 }
      const looked: string[] = []
      let parts = 0
      await expect(
        verifyQuiet({
          ...options,
          onPart: (table, part, of) => {
            looked.push(`${table} ${part}/${of}`)
            parts = Math.max(parts, of)
            if (table === 'public.big' && part === 3) throw new Error('killed')
          },
        }),
      ).rejects.toThrow('killed')
      expect(parts).toBeGreaterThan(5)
      const before = looked.splice(0).slice(0, -1)
      const report = await verifyQuiet({
        ...options,
        onPart: (table, part, of) => looked.push(`${table} ${part}/${of}`),
      })
      expect(looked.filter((part) => before.includes(part))).toEqual([])
      expect(looked[0]).toBe(`public.big 3/${parts}`)
      expect(report.same).toBe(true)
      expect(report.tables.find((table) => table.name === 'public.big')?.targetRows).toBe(3000)
      // A verification that is complete leaves nothing for the next one to believe.
      await verifyQuiet({
        ...options,
        onPart: (table, part, of) => looked.push(`${table} ${part}/${of}`),
      })
      expect(looked.filter((part) => before.includes(part))).toEqual(before)
    },
    60_000,
  )
})

test('tables that stand on one side only, or with other columns, are differences', async () => {
  const source = await bigSide(postgres(), 'a', { shards: 1, rows: 10 })
  const target = await bigSide(postgres(), 'b', { shards: 1, rows: 10 })
  await on(source.shards[0] as never, 'CREATE TABLE only_here (id int PRIMARY KEY)')
  await on(
    target.shards[0] as never,
    'ALTER TABLE country ADD more text; CREATE TABLE only_there (id int)',
  )
  const report = await verifyQuiet({ source, target, clock })
  expect(report.same).toBe(false)
  expect(
    report.tables
      .filter((table) => !table.same)
      .map(describeDifference)
      .sort(),
  ).toEqual([
    'public.country: has other columns on the target',
    'public.only_here: is not on the target',
    'public.only_there: is not on the source',
  ])
}, 60_000)

test('databases of two encodings are not compared', async () => {
  const source = await bigSide(postgres(), 'a', { shards: 1, rows: 0 })
  const database = await postgres().createDatabase()
  await postgres().query(`DROP DATABASE ${database}`)
  await postgres().query(
    `CREATE DATABASE ${database} TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'`,
  )
  const target = { ...source, shards: [{ ...(source.shards[0] as object), database }] as never }
  await expect(verifyQuiet({ source, target, clock })).rejects.toMatchObject({
    code: 'RESHARD_VERIFY_ENCODING',
    exitCode: 5,
  })
}, 60_000)

test('a slot that is not ready in time names who is in the way and leaves nothing behind', async () => {
  const server = postgres().servers[0]!
  const target = {
    host: server.host,
    port: server.port,
    user: postgres().user,
    database: postgres().database,
  }
  const old = await connect(target)
  await old.query('CREATE TABLE IF NOT EXISTS held (id int)')
  await old.query('BEGIN')
  await old.query('INSERT INTO held VALUES (1)')
  const [{ pid }] = (await old.query('SELECT pg_backend_pid() AS pid')).rows as [{ pid: number }]
  await expect(
    createSnapshotSlot(target, { name: 'late', temporary: true, timeoutMs: 300, clock }),
  ).rejects.toMatchObject({
    code: 'REPLICATION_SLOT_WAITS',
    detail: expect.stringContaining(`pid ${pid} of ${postgres().user}`),
  })
  await expect
    .poll(
      () => postgres().query(`SELECT slot_name FROM pg_replication_slots WHERE slot_name = 'late'`),
      { timeout: 10_000 },
    )
    .toEqual([])
  await old.end()
}, 60_000)
