/** A shard taken away from those that serve: its rows come to the others, through tables that nobody reads, at the cutover. */
import { expect, test } from 'vitest'
import { systemClock } from '../../../src/base/clock.js'
import { silentLog } from '../../../src/base/log.js'
import type { HostTarget } from '../../../src/pg/host-client.js'
import { narrowed } from '../../../src/reshard/buckets/bucket-sides.js'
import { cleanupRun } from '../../../src/reshard/cleanup.js'
import { noSwitch } from '../../../src/reshard/cutover/switch-config.js'
import { noGate } from '../../../src/reshard/cutover/traffic-gate.js'
import { preflight } from '../../../src/reshard/preflight/preflight.js'
import { type RunOptions, resumeReshard, runReshard } from '../../../src/reshard/reshard.js'
import { runStatus } from '../../../src/reshard/run-status.js'
import type { ReshardSide } from '../../../src/reshard/side.js'
import { verifyQuiet } from '../../../src/reshard/verify/verify.js'
import { makeKeyPlacer } from '../../../src/sharding/key-placer.js'
import type { ShardedTable, ShardingConfig } from '../../../src/sharding/sharded-table.js'
import { everywhere, on, useSides } from './move-rig.js'

const { side } = useSides()

const BUCKETS = 24
const before = Array.from({ length: BUCKETS }, (_, bucket) => bucket % 3)
/** Buckets of the last shard go to the two others in turn. */
const after = before.map((shard, bucket) => (shard === 2 ? Math.floor(bucket / 3) % 2 : shard))

function sharding(bucketMap: readonly number[], shardCount: number): ShardingConfig {
  const placement = { kind: 'hash', hasher: 'postgres', buckets: BUCKETS, bucketMap } as const
  const tables: ShardedTable[] = [{ column: 'tenant', keyType: 'bigint', placement }]
  return { shardCount, tables, referenceTables: [], schemas: [], otherTables: 'reference' }
}

const shardIn = (map: readonly number[]) => {
  const placer = makeKeyPlacer(sharding(map, 3).tables[0] as ShardedTable)
  return (tenant: number): number => placer.ofString(String(tenant))
}
const [oldShard, newShard] = [shardIn(before), shardIn(after)]

const schema = `
CREATE SCHEMA "Odd.Schema";
CREATE TYPE "Odd.Schema".mood AS ENUM ('a', 'b "c"');
CREATE TABLE acct (tenant bigint, id bigserial, v text, big text, moods "Odd.Schema".mood[], amount numeric, at date,
  twice numeric NOT NULL GENERATED ALWAYS AS (coalesce(amount, 0) * 2) STORED, PRIMARY KEY (tenant, id));
ALTER TABLE acct ALTER big SET STORAGE EXTERNAL;
CREATE TABLE "Odd.Schema"."Log ""x""" (what text, tenant bigint);
ALTER TABLE "Odd.Schema"."Log ""x""" REPLICA IDENTITY FULL;
CREATE TABLE child (tenant bigint, acct_id bigint, n int GENERATED ALWAYS AS IDENTITY, PRIMARY KEY (tenant, acct_id, n),
  FOREIGN KEY (tenant, acct_id) REFERENCES acct ON DELETE CASCADE);
CREATE TABLE event (tenant bigint, id int, at date, v text, PRIMARY KEY (tenant, id, at)) PARTITION BY RANGE (at);
CREATE TABLE event_old (v text, at date NOT NULL, gone int, id int NOT NULL, tenant bigint NOT NULL);
ALTER TABLE event_old DROP COLUMN gone;
ALTER TABLE event ATTACH PARTITION event_old FOR VALUES FROM (MINVALUE) TO ('2020-01-01');
CREATE TABLE event_new PARTITION OF event DEFAULT;
CREATE TABLE country (code text PRIMARY KEY);
CREATE TABLE told (what text PRIMARY KEY);
INSERT INTO country VALUES ('de'), ('fr');
CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO told VALUES (gen_random_uuid()::text); RETURN NEW; END $$;`

/** Fired by whoever writes, and by nothing that is moved. */
const trigger = `TRUNCATE told; CREATE TRIGGER tell AFTER INSERT OR UPDATE OR DELETE ON acct FOR EACH ROW EXECUTE FUNCTION tell()`

async function fill(source: ReshardSide, from: number, to: number): Promise<void> {
  for (const [shard, target] of source.shards.entries()) {
    const tenants = Array.from({ length: to - from }, (_, i) => from + i)
      .filter((tenant) => oldShard(tenant) === shard)
      .join()
    const of = `FROM unnest('{${tenants}}'::bigint[]) t`
    await on(
      target,
      `INSERT INTO acct (tenant, v, big, moods, amount, at) SELECT t, nullif('v' || t % 5, 'v0'), repeat('é', (t % 3 * 4000)::int),
         ARRAY['b "c"', 'a', NULL]::"Odd.Schema".mood[], CASE t % 4 WHEN 0 THEN 'NaN' WHEN 1 THEN NULL ELSE t / 3.0 END,
         CASE t % 3 WHEN 0 THEN '-infinity' WHEN 1 THEN 'infinity' ELSE date '2000-02-29' END ${of}`,
      `INSERT INTO "Odd.Schema"."Log ""x""" SELECT nullif('w' || t % 2, 'w0'), t ${of}, generate_series(1, 1 + (t % 3)::int)`,
      `INSERT INTO child (tenant, acct_id) SELECT tenant, id FROM acct WHERE tenant BETWEEN ${from} AND ${to}`,
      `INSERT INTO event SELECT t, t % 7, date '2019-12-25' + (t % 15)::int, 'e' || t ${of}`,
    )
  }
}

/** Changes on the shard that leaves and on those that stay, made while the move is under way. */
async function change(source: ReshardSide): Promise<void> {
  for (const target of source.shards) {
    await on(
      target,
      `UPDATE acct SET v = 'changed' WHERE tenant % 10 = 1`,
      `UPDATE acct SET id = id + 100000 WHERE tenant % 10 = 2 AND NOT EXISTS (SELECT FROM child c WHERE c.tenant = acct.tenant)`,
      `DELETE FROM acct WHERE tenant % 10 = 3`,
      `DELETE FROM "Odd.Schema"."Log ""x""" WHERE ctid IN (SELECT min(ctid) FROM "Odd.Schema"."Log ""x""" GROUP BY tenant)`,
      `UPDATE event SET at = date '2019-12-25', v = v || '!' WHERE tenant % 10 = 4`,
    )
  }
  await fill(source, 1000, 1100)
}

const tables = ['acct', '"Odd.Schema"."Log ""x"""', 'child', 'event_old', 'event_new']

async function rowsOf(shards: readonly HostTarget[]): Promise<Map<string, string[]>> {
  const found = new Map<string, string[]>()
  for (const table of tables) {
    const parts = await Promise.all(
      shards.map((shard) =>
        on<{ row: string }>(shard, `SELECT t::text AS row FROM ONLY ${table} t`),
      ),
    )
    found.set(table, parts.flatMap((rows) => rows.map(({ row }) => row)).sort())
  }
  return found
}

/** Where each row of a table that stays stands, with the transaction that wrote it. */
const tuplesOf = async (shard: HostTarget): Promise<string[]> =>
  (
    await on<{ row: string }>(
      shard,
      `SELECT ctid || ' ' || xmin || ' ' || t::text AS row FROM acct t`,
    )
  ).map(({ row }) => row)

async function makeSides(): Promise<{ old: ReshardSide; from: ReshardSide; to: ReshardSide }> {
  const old = await side('a', 3, sharding(before, 3))
  await everywhere(old, schema)
  await fill(old, 1, 300)
  await everywhere(old, trigger)
  const staying = { name: 'b', shards: old.shards.slice(0, 2), sharding: sharding(after, 2) }
  return { old, ...narrowed({ from: old, to: staying }) }
}

const options = (from: ReshardSide, to: ReshardSide): RunOptions => ({
  ...{ source: from, target: to, gate: noGate, config: noSwitch, clock: systemClock },
  ...{ log: silentLog, listener: { step: () => undefined } },
  ...{ jobs: 2, budgetMs: 60_000, verifyHoldMs: 10_000, wayBack: false, partBytes: 20_000 },
})

const told = async (shard: HostTarget): Promise<number> =>
  (await on<{ n: number }>(shard, 'SELECT count(*)::int AS n FROM told'))[0]!.n

const leftovers = async (one: ReshardSide): Promise<unknown[]> => {
  const all = await everywhere(
    one,
    `SELECT slot_name::text AS name FROM pg_replication_slots WHERE database = current_database()
     UNION ALL SELECT pubname FROM pg_publication UNION ALL SELECT relname FROM pg_class WHERE relname LIKE 'incoming%' AND relkind = 'r'`,
  )
  return all.flat()
}

const topologyOf = (one: ReshardSide) =>
  everywhere(one, 'SELECT side, epoch, active, fenced, shared FROM pgshard.topology')

test('O1: rows of the shard that leaves are on those that stay, once and on the right one; what stays is not touched', async () => {
  const { old, from, to } = await makeSides()
  // A guard of setup, by the old map.
  const [first] = old.shards as [HostTarget]
  await on(
    first,
    `ALTER TABLE acct ADD CONSTRAINT pgshard_guard CHECK (tenant <> ${firstLeaving()})`,
  )
  const ready = await runReshard({ ...options(from, to), stopAfter: 'verify' })
  expect(ready.state).toBe('ready')
  await change(old)
  const wanted = await rowsOf(old.shards)
  const stood = await Promise.all(to.shards.map(tuplesOf))
  const fired = await Promise.all(to.shards.map(told))
  const done = await resumeReshard(options(from, to))
  expect(done).toMatchObject({ state: 'cut_over', cutover: { wayBack: false } })
  expect(await rowsOf(to.shards)).toEqual(wanted)
  for (const [shard, target] of to.shards.entries()) {
    const now = await tuplesOf(target)
    expect(now.length).toBeGreaterThan(stood[shard]!.length + 10)
    expect(now).toEqual(expect.arrayContaining(stood[shard]!))
    for (const table of tables) {
      const rows = await on<{ tenant: string }>(target, `SELECT DISTINCT tenant FROM ${table}`)
      expect(rows.filter(({ tenant }) => newShard(Number(tenant)) !== shard)).toEqual([])
    }
    expect(await on(target, 'SELECT code FROM country')).toEqual([{ code: 'de' }, { code: 'fr' }])
  }
  // Nothing acted on rows that were moved.
  expect(await Promise.all(to.shards.map(told))).toEqual(fired)
  await expectNumbers(to, wanted)
  expect(await leftovers(old)).toEqual([])
  const gone = old.shards[2] as HostTarget
  await expect(on(gone, 'INSERT INTO acct (tenant) VALUES (5)')).rejects.toMatchObject({
    code: '25006',
  })
  expect(await topologyOf(to)).toEqual([
    [expect.objectContaining({ epoch: '1', active: true, fenced: false })],
    [expect.objectContaining({ epoch: '1', active: true, fenced: false })],
  ])
  // Found under the names as they are now, too.
  const turned = narrowed({
    from: { ...(to.whole as ReshardSide), name: 'a' },
    to: { ...old, name: 'b' },
  })
  expect(await runStatus(turned.from, turned.to)).toMatchObject({ state: 'cut_over' })
}, 120_000)

/** A tenant of the shard that leaves which comes to the first one. */
function firstLeaving(): number {
  for (let tenant = 1; ; tenant++) {
    if (oldShard(tenant) === 2 && newShard(tenant) === 0) return tenant
  }
}

/** Numbers that the shards draw from now on are ahead of all that was drawn, and are each drawn once. */
async function expectNumbers(to: ReshardSide, rows: Map<string, string[]>): Promise<void> {
  const drawn = await Promise.all(
    to.shards.map(async (shard) => {
      const all: number[] = []
      for (let i = 0; i < 20; i++) {
        const [row] = await on<{ n: string }>(shard, `SELECT nextval('acct_id_seq')::text AS n`)
        all.push(Number(row?.n))
      }
      return all
    }),
  )
  const numbers = drawn.flat()
  expect(new Set(numbers).size).toBe(40)
  const highest = Math.max(
    ...rows
      .get('acct')!
      .map((row) => Number(row.split(',')[1]))
      .filter((id) => id < 100_000),
  )
  expect(Math.min(...numbers)).toBeGreaterThan(highest)
}

test('O1: a removal that is given up leaves the shards as they were, and another one can follow', async () => {
  const { old, from, to } = await makeSides()
  const wanted = await rowsOf(old.shards)
  await runReshard({ ...options(from, to), stopAfter: 'verify' })
  const [one] = await topologyOf(to)
  expect(one?.[0]).toMatchObject({ active: false, shared: true })
  const numbers = await everywhere(
    old,
    'SELECT last_value, seqincrement FROM acct_id_seq, pg_sequence WHERE seqrelid = $$acct_id_seq$$::regclass',
  )
  // Rows that were taken in go back with their transactions, and so do the numbers.
  const atPoint = async (point: string): Promise<void> => {
    if (point === 'cutover:emptied') throw new Error('told to fail')
  }
  await expect(resumeReshard({ ...options(from, to), atPoint })).rejects.toMatchObject({
    code: 'RESHARD_CUTOVER',
    message: expect.stringContaining('told to fail'),
  })
  expect(await rowsOf(old.shards)).toEqual(wanted)
  const [first] = old.shards as [HostTarget]
  await on(first, 'BEGIN; INSERT INTO told VALUES ($$x$$); PREPARE TRANSACTION $$in doubt$$')
  await expect(resumeReshard(options(from, to))).rejects.toMatchObject({
    code: 'RESHARD_BLOCKED',
    message: expect.stringContaining('prepared transaction in doubt'),
  })
  await on(first, 'ROLLBACK PREPARED $$in doubt$$')
  expect(
    await everywhere(
      old,
      'SELECT last_value, seqincrement FROM acct_id_seq, pg_sequence WHERE seqrelid = $$acct_id_seq$$::regclass',
    ),
  ).toEqual(numbers)
  await everywhere(old, `UPDATE acct SET v = 'on' WHERE tenant = 7`)
  const cleaned = await cleanupRun({
    ...{ from, to, clock: systemClock, dropTarget: true, liftFence: false },
  })
  expect(cleaned.kept).toEqual([])
  expect(await leftovers(old)).toEqual([])
  expect((await rowsOf(to.shards)).get('acct')!.length).toBeGreaterThan(150)
  const rows = (await topologyOf(old)).flat()
  expect(new Set(rows.map((row) => row['side'])).size).toBe(1)
  expect(rows.every((row) => row['active'] === true && row['shared'] === false)).toBe(true)
  const after = await rowsOf(old.shards)
  expect(await runReshard(options(from, to))).toMatchObject({ state: 'cut_over' })
  expect(await rowsOf(to.shards)).toEqual(after)
}, 120_000)

test('O1: rows that stand on a wrong shard stop a removal before the switch, by name', async () => {
  const { old, from, to } = await makeSides()
  const [first] = old.shards as [HostTarget]
  await on(first, `INSERT INTO acct (tenant) VALUES (${firstLeaving()})`)
  await expect(runReshard(options(from, to))).rejects.toMatchObject({
    code: 'RESHARD_STRAY_ROWS',
    message: expect.stringContaining('"public.acct"'),
  })
  await expect(verifyQuiet({ source: from, target: to, clock: systemClock })).rejects.toMatchObject(
    { code: 'RESHARD_VERIFY_SHARED' },
  )
  await on(first, `DELETE FROM acct WHERE tenant = ${firstLeaving()}`)
  const wanted = await rowsOf(old.shards)
  expect(await resumeReshard(options(from, to))).toMatchObject({ state: 'cut_over' })
  expect(await rowsOf(to.shards)).toEqual(wanted)
}, 120_000)

test('O1: what would act on rows that come, and what differs on a shard that stays, refuses a removal', async () => {
  const { old, from, to } = await makeSides()
  const [first, second] = old.shards as [HostTarget, HostTarget]
  await on(
    first,
    'ALTER TABLE acct ENABLE ALWAYS TRIGGER tell',
    'CREATE RULE no AS ON INSERT TO child DO ALSO NOTHING; ALTER TABLE child ENABLE REPLICA RULE no',
    'ALTER TABLE event ADD UNIQUE (tenant, at, id)',
  )
  await on(second, 'ALTER TABLE acct ADD extra int')
  await everywhere(old, 'ALTER TABLE acct ADD UNIQUE (id)')
  const found = await preflight(from, to)
  const text = found.problems.map(({ where, what }) => `${where}: ${what}`).join('\n')
  expect(text).toMatch(/target shard 0 .*public\.acct: trigger "tell" would fire/)
  expect(text).toMatch(/target shard 0 .*public\.child: rule "no" would act/)
  expect(text).toMatch(/target shard 1 .*public\.acct differs from source shard 0's/)
  expect(text).toMatch(/public\.acct: unique index "acct_id_key" does not hold the sharding key/)
}, 120_000)
