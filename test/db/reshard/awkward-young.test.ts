/** Tables that only the newest version has, or that no other test moves: 18 → 18, written while they are moved. */
import { expect, test } from 'vitest'
import { systemClock } from '../../../src/base/clock.js'
import { silentLog } from '../../../src/base/log.js'
import { noSwitch } from '../../../src/reshard/cutover/switch-config.js'
import { noGate } from '../../../src/reshard/cutover/traffic-gate.js'
import { preflight } from '../../../src/reshard/preflight/preflight.js'
import { type RunOptions, runReshard } from '../../../src/reshard/reshard.js'
import type { ReshardSide } from '../../../src/reshard/side.js'
import { shopSharding } from '../../support/moving-shop.js'
import { usePostgres } from '../../support/use-postgres.js'
import { at, everywhere, makeSide, on } from './move-rig.js'

const settings = { max_wal_senders: '60', max_replication_slots: '60' }
const postgres = usePostgres({ version: 18, settings })

function side(name: string, count: number): Promise<ReshardSide> {
  const shop = shopSharding(count)
  const { name: _, ...byTenant } = shop.tables[0]!
  return makeSide(postgres(), name, count, { ...shop, tables: [byTenant] })
}

const schema = `
CREATE EXTENSION btree_gist;
CREATE SCHEMA "a.b"; CREATE SCHEMA "select";
CREATE TYPE "a.b"."M o" AS ENUM ('x', 'y,z', '{');
CREATE DOMAIN "select".some AS "a.b"."M o"[] CHECK (array_length(value, 1) < 5);
CREATE DOMAIN sure AS int NOT NULL DEFAULT 7;
CREATE TYPE pair AS (s sure, m "a.b"."M o");
CREATE TABLE virtual (c0 int, tenant bigint, u text, t text, "c1" int GENERATED ALWAYS AS (c0 * 2) VIRTUAL, id int,
  kept int GENERATED ALWAYS AS (c0 + 1) STORED, PRIMARY KEY (tenant, id));
CREATE TABLE "a.b"."Qu""o.te" ("%s" "select".some, tenant bigint, "$1" "a.b"."M o"[], p pair, mr int4multirange, s sure,
  ts tsvector, x xml, l line, d date, n numeric(1000, 500), "ctid_" tid, PRIMARY KEY (tenant, s));
CREATE TABLE booked (tenant bigint, id int, room int, during tsrange, PRIMARY KEY (tenant, id),
  EXCLUDE USING gist (tenant WITH =, room WITH =, during WITH &&));
CREATE TABLE twin (tenant bigint, v text, f float8, raw json); ALTER TABLE twin REPLICA IDENTITY FULL;
CREATE TABLE empty (tenant bigint PRIMARY KEY, "v" "a.b"."M o"[] DEFAULT '{x}');
CREATE TABLE top (tenant bigint, id int, v text, PRIMARY KEY (tenant, id)) PARTITION BY LIST (id);
CREATE TABLE odd_one (gone int, v text, id int NOT NULL, tenant bigint NOT NULL);
ALTER TABLE odd_one DROP COLUMN gone; ALTER TABLE top ATTACH PARTITION odd_one FOR VALUES IN (1, 2, 3);
CREATE TABLE rest PARTITION OF top DEFAULT`

const inserts = (tenant: number, id: number): string[] => [
  `INSERT INTO virtual (c0, tenant, u, id) VALUES (${id}, ${tenant}, 'u', ${id})`,
  `INSERT INTO "a.b"."Qu""o.te" VALUES ('{"y,z","{"}', ${tenant}, '{x,NULL,"{"}', ROW(3, 'y,z'), '{[1,3),[5,)}', ${id}, 'a:1 b:2',
     '<a b="c">&amp;</a>', '{1,-2,3}', '-infinity', 'NaN', '(1,2)')`,
  `INSERT INTO booked VALUES (${tenant}, ${id}, 1, '[2026-01-0${id},2026-01-0${id + 1})')`,
  `INSERT INTO twin SELECT ${tenant}, nullif('v' || n % 2, 'v0'), CASE n % 3 WHEN 0 THEN 'NaN' WHEN 1 THEN '-0' ELSE '-infinity' END::float8, '{"a" :1}'
     FROM generate_series(1, 6) n`,
  `INSERT INTO top VALUES (${tenant}, ${id}, repeat('é', 100000)), (${tenant}, ${id + 10}, NULL)`,
]

const changes = (tenant: number, id: number): string[] => [
  ...inserts(tenant, id),
  // One takes what another one frees, within one statement order.
  `BEGIN; UPDATE booked SET room = 2 WHERE tenant = ${tenant} AND id = 1; UPDATE booked SET during = '[2026-01-01,2026-01-02)' WHERE tenant = ${tenant} AND id = ${id};
     UPDATE booked SET room = 1, during = '[2026-02-01,2026-02-02)' WHERE tenant = ${tenant} AND id = 1; COMMIT`,
  `UPDATE booked SET during = '[2026-01-0${id},2026-01-0${id + 1})' WHERE tenant = ${tenant} AND id = ${id}`,
  `DELETE FROM twin WHERE ctid IN (SELECT min(ctid) FROM twin WHERE tenant = ${tenant} GROUP BY v)`,
  `UPDATE twin SET f = 1.5, tenant = tenant WHERE ctid = (SELECT max(ctid) FROM twin WHERE tenant = ${tenant})`,
  `UPDATE virtual SET c0 = -c0, id = id + 100 WHERE tenant = ${tenant} AND id = ${id}`,
  `UPDATE top SET id = id + 50 WHERE tenant = ${tenant} AND id = 3`,
  `UPDATE "a.b"."Qu""o.te" SET "%s" = NULL, p = NULL WHERE tenant = ${tenant} AND s = ${id}`,
]

const options = (source: ReshardSide, target: ReshardSide): RunOptions => ({
  ...{ source, target, gate: noGate, config: noSwitch, clock: systemClock, log: silentLog },
  ...{ listener: { step: () => undefined }, jobs: 2, budgetMs: 60_000, verifyHoldMs: 10_000 },
  ...{ wayBack: false, partBytes: 16 * 1024 },
})

const tables = ['virtual', '"a.b"."Qu""o.te"', 'booked', 'twin', 'empty', 'odd_one', 'rest']

async function rowsOf(one: ReshardSide): Promise<Map<string, string[]>> {
  const found = new Map<string, string[]>()
  for (const table of tables) {
    // As text, generated columns too: a record in json shows those that are virtual.
    const rows = await everywhere(
      one,
      `SELECT (SELECT jsonb_object_agg(k, v) FROM json_each_text(to_json(t)) e(k, v))::text AS row FROM ${table} t`,
    )
    found.set(
      table,
      rows
        .flat()
        .map(({ row }) => String(row))
        .sort(),
    )
  }
  return found
}

test('O4, O5: columns that are virtual, odd names and types, exclusion constraints and duplicates arrive whole, 18 → 18', async () => {
  const [source, target] = [await side('a', 2), await side('b', 3)]
  await everywhere(source, schema)
  const tenants = [1, 2, 3, 4, 5, 6]
  for (const tenant of tenants) await at(source, tenant, ...inserts(tenant, 1))
  const points = new Map([
    ['copy:slots', 2],
    ['copy:key', 3],
    ['follow:started', 4],
    ['follow:caught-up', 5],
  ])
  const report = await runReshard({
    ...options(source, target),
    atPoint: async (point) => {
      const id = points.get(point)
      points.delete(point)
      if (id === undefined) return
      for (const tenant of tenants) await at(source, tenant, ...changes(tenant, id))
    },
  })
  expect(points.size).toBe(0)
  expect(report.state).toBe('cut_over')
  expect(await rowsOf(target)).toEqual(await rowsOf(source))
  expect((await rowsOf(target)).get('twin')!.length).toBeGreaterThan(60)
}, 120_000)

test('O4: a key WITHOUT OVERLAPS, by which no row can be put, is refused before anything is copied', async () => {
  const [source, target] = [await side('a', 1), await side('b', 2)]
  await on(
    source.shards[0]!,
    'CREATE EXTENSION btree_gist',
    'CREATE TABLE stay (tenant bigint, room int, during daterange, PRIMARY KEY (tenant, room, during WITHOUT OVERLAPS))',
  )
  const found = await preflight(source, target)
  expect(found.problems.filter(({ severity }) => severity === 'error')).toMatchObject([
    { where: 'public.stay', what: expect.stringContaining('WITHOUT OVERLAPS') },
  ])
})
