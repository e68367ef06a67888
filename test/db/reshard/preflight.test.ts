import { expect, test } from 'vitest'
import { systemClock } from '../../../src/base/clock.js'
import { silentLog } from '../../../src/base/log.js'
import type { HostTarget } from '../../../src/pg/host-client.js'
import { noSwitch } from '../../../src/reshard/cutover/switch-config.js'
import { noGate } from '../../../src/reshard/cutover/traffic-gate.js'
import { preflight } from '../../../src/reshard/preflight/preflight.js'
import { runReshard } from '../../../src/reshard/reshard.js'
import type { ReshardSide } from '../../../src/reshard/side.js'
import { shopSharding } from '../../support/moving-shop.js'
import { usePostgres } from '../../support/use-postgres.js'
import { on } from './verify-rig.js'

const source15 = usePostgres({
  version: 15,
  settings: {
    max_wal_senders: '6',
    max_replication_slots: '5',
    max_prepared_transactions: '8',
    max_slot_wal_keep_size: '100MB',
  },
})
const target18 = usePostgres({
  version: 18,
  settings: { wal_level: 'replica', max_wal_senders: '0', max_prepared_transactions: '0' },
})

async function side(
  name: string,
  count: number,
  on: ReturnType<typeof source15>,
  user = on.user,
): Promise<ReshardSide> {
  const server = on.servers[0]!
  const shards: HostTarget[] = []
  for (let shard = 0; shard < count; shard++) {
    const database = await on.createDatabase()
    shards.push({ host: server.host, port: server.port, user, database })
  }
  return { name, shards, sharding: shopSharding(count) }
}

const everywhere = (one: ReshardSide, ...sql: string[]) =>
  Promise.all(one.shards.map((shard) => on(shard, ...sql)))

const fine = `CREATE TABLE orders (tenant bigint, id bigint, v text, PRIMARY KEY (tenant, id));
  CREATE TABLE country (code text PRIMARY KEY, name text);
  INSERT INTO country VALUES ('de', 'x'), ('fr', 'y')`

const lines = (found: Awaited<ReturnType<typeof preflight>>): string[] =>
  found.problems.map(({ severity, where, what }) => `${severity}: ${where}: ${what}`)

test('a move that can be done: 15 → 18, with an estimate, and a warning that there is no way back', async () => {
  const source = await side('a', 2, source15())
  const target = await side('b', 3, target18())
  await everywhere(
    source,
    fine,
    `INSERT INTO orders SELECT i, i, repeat('x', 500) FROM generate_series(1, 2000) i`,
  )
  const found = await preflight(source, target)
  expect(found.problems.filter(({ severity }) => severity === 'error')).toEqual([])
  const text = lines(found).join('\n')
  const noWayBack =
    /: database "b": there can be no way back after the cutover: .* has wal_level = replica/
  expect(text).toMatch(new RegExp(`warning${noWayBack.source}`))
  // A run that goes to its end would refuse after days of copying.
  const whole = await preflight(source, target, { needsWayBack: true })
  expect(lines(whole).join('\n')).toMatch(new RegExp(`error${noWayBack.source}`))
  const run = runReshard({
    ...{ source, target, gate: noGate, config: noSwitch, clock: systemClock, log: silentLog },
    ...{ listener: { step: () => undefined }, jobs: 1, budgetMs: 1000, verifyHoldMs: 1000 },
  })
  await expect(run).rejects.toMatchObject({
    code: 'RESHARD_REFUSED',
    detail: expect.stringContaining('--no-reverse'),
  })
  expect(text).toContain('max_prepared_transactions is 0, the source has 8')
  expect(text).toContain('max_slot_wal_keep_size is 100 MB')
  expect(found.estimate.bytes).toBeGreaterThan(2_000_000)
  expect(found.estimate.bytesPerTarget).toBeGreaterThan(found.estimate.bytes / 3)
  expect(found.binary).toBe(false)
  expect(found.sourceVersion).toBeLessThan(160_000)
}, 60_000)

test('all problems of servers and tables are named at once, each with its mend, and nothing is written', async () => {
  const source = await side('a', 3, source15())
  const target = await side('b', 2, target18())
  await everywhere(
    source,
    fine,
    `CREATE EXTENSION btree_gist`,
    `CREATE TABLE late (tenant bigint, PRIMARY KEY (tenant) DEFERRABLE INITIALLY DEFERRED);
     ALTER TABLE late REPLICA IDENTITY DEFAULT;
     CREATE TABLE booked (tenant bigint, id bigint, room int, PRIMARY KEY (tenant, id), EXCLUDE USING gist (room WITH =));
     CREATE TABLE mail (tenant bigint, id bigint, address text UNIQUE, PRIMARY KEY (tenant, id));
     CREATE TABLE ruled (tenant bigint PRIMARY KEY);
     CREATE RULE no AS ON INSERT TO ruled DO INSTEAD NOTHING; ALTER TABLE ruled ENABLE ALWAYS RULE no;
     CREATE TABLE child (tenant bigint, id bigint, at bigint, mail_id bigint, PRIMARY KEY (tenant, id));
     ALTER TABLE mail ADD UNIQUE (id); ALTER TABLE child ADD FOREIGN KEY (mail_id) REFERENCES mail (id)`,
  )
  await on(source.shards[2] as HostTarget, `UPDATE country SET name = 'other' WHERE code = 'fr'`)
  const prepared = source.shards[0] as HostTarget
  await on(prepared, `BEGIN; INSERT INTO country VALUES ('it', 'z'); PREPARE TRANSACTION 'left'`)
  await on(
    target.shards[1] as HostTarget,
    'CREATE TABLE orders (a int); INSERT INTO orders VALUES (1)',
  )
  const sharding = {
    ...source.sharding,
    tables: [
      ...source.sharding.tables,
      ...['late', 'booked', 'mail', 'ruled', 'child'].map((name) => ({
        ...(source.sharding.tables[0] as object),
        name,
      })),
    ] as typeof source.sharding.tables,
  }
  const dead = { ...(target.shards[0] as HostTarget), port: 1 }
  const found = await preflight(
    { ...source, sharding },
    { ...target, shards: [...target.shards, dead], sharding: { ...sharding, shardCount: 3 } },
  )
  await on(prepared, `ROLLBACK PREPARED 'left'`)
  const text = lines(found).join('\n')
  for (const wanted of [
    /error: source shard 0 \(.*: 5 replication slots are free, 6 are needed/,
    /warning: source shard 0 .*: prepared transaction left is open/,
    /error: public.late: its primary key is DEFERRABLE/,
    /error: public.booked: exclusion constraint "booked_room_excl" does not hold the sharding key/,
    /error: public.mail: unique index "mail_address_key" does not hold the sharding key/,
    /error: public.ruled: rule "no" would act/,
    /error: public.child: foreign key "child_mail_id_fkey" to public.mail would cross shards/,
    /error: target shard 1 .*: table public.orders holds rows/,
    /error: target shard 2 .*: cannot be looked at: could not connect/,
  ]) {
    expect(text).toMatch(wanted)
  }
  for (const { mend } of found.problems) expect(mend).not.toBe('')
  expect(
    await on(
      source.shards[0] as HostTarget,
      `SELECT 1 FROM pg_namespace WHERE nspname = 'pgshard'`,
    ),
  ).toEqual([])
}, 60_000)

test('reference tables that differ between sources refuse the move', async () => {
  const source = await side('a', 2, source15())
  const target = await side('b', 2, target18())
  await everywhere(source, fine)
  await on(source.shards[1] as HostTarget, `UPDATE country SET name = 'other' WHERE code = 'fr'`)
  const found = await preflight(source, target)
  expect(lines(found)).toContain(
    'error: public.country: reference table differs between source shards 0 and 1',
  )
}, 60_000)

test('a source without superuser: what is missing is named, and what is granted is enough', async () => {
  const source = await side('a', 1, source15())
  const target = await side('b', 2, target18())
  const admin = source.shards[0] as HostTarget
  await on(
    admin,
    fine,
    `CREATE SEQUENCE counter; CREATE TABLE secret (id int PRIMARY KEY);
     ALTER TABLE secret ENABLE ROW LEVEL SECURITY`,
    `DO $$ BEGIN CREATE ROLE owner_role; CREATE ROLE mover LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$`,
    'ALTER TABLE orders OWNER TO owner_role',
    'GRANT SELECT ON country, secret TO mover',
  )
  await on(
    target.shards[0] as HostTarget,
    `DO $$ BEGIN CREATE ROLE owner_role; CREATE ROLE mover LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$`,
  )
  for (const shard of target.shards)
    await on(shard, `GRANT CREATE ON DATABASE ${shard.database} TO mover`)
  const as = (one: ReshardSide): ReshardSide => ({
    ...one,
    shards: one.shards.map((shard) => ({ ...shard, user: 'mover' })),
  })
  const refused = await preflight(as(source), as(target))
  const text = refused.problems
    .map((one) => `${one.severity}: ${one.what} → ${one.mend}`)
    .join('\n')
  for (const wanted of [
    'error: user mover may not replicate → ALTER ROLE "mover" REPLICATION',
    `error: user mover may not create a publication → GRANT CREATE ON DATABASE "${admin.database}" TO "mover"`,
    'error: public.orders belongs to owner_role: user mover may not publish or fence it → GRANT "owner_role" TO "mover"',
    'error: row security hides rows of public.secret from user mover',
    'error: user mover may not read sequence counter → GRANT SELECT ON SEQUENCE counter TO "mover"',
    'warning: user mover may not set session_replication_role',
    'error: user mover may not SET ROLE to "owner_role", who owns tables or other objects of the source → GRANT "owner_role" TO "mover"',
    'error: role "owner_role", who owns objects in schema public of the source, may not create there → GRANT CREATE ON SCHEMA public TO "owner_role"',
  ]) {
    expect(text).toContain(wanted)
  }
  await on(
    admin,
    `ALTER ROLE mover REPLICATION; GRANT CREATE ON DATABASE ${admin.database} TO mover;
     GRANT owner_role TO mover; ALTER TABLE country OWNER TO owner_role; ALTER TABLE secret OWNER TO owner_role;
     ALTER SEQUENCE counter OWNER TO owner_role`,
  )
  await on(target.shards[0] as HostTarget, 'GRANT owner_role TO mover')
  for (const shard of target.shards) await on(shard, 'GRANT CREATE ON SCHEMA public TO owner_role')
  const allowed = await preflight(as(source), as(target))
  expect(allowed.problems.filter(({ severity }) => severity === 'error')).toEqual([])
  expect(allowed.replicaRole).toBe(false)
  // What preflight allows can be made: no 42501 comes late.
  const made = runReshard({
    ...{ source: as(source), target: as(target), gate: noGate, config: noSwitch },
    ...{ clock: systemClock, log: silentLog, listener: { step: () => undefined } },
    ...{ jobs: 1, budgetMs: 1000, verifyHoldMs: 1000, stopAfter: 'copy' },
  })
  expect((await made).state).toBe('copying')
}, 60_000)
