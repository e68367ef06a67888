import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, inject, test } from 'vitest'
import { systemClock } from '../../../src/base/clock.js'
import { silentLog } from '../../../src/base/log.js'
import type { HostTarget } from '../../../src/pg/host-client.js'
import { configSwitch } from '../../../src/reshard/cutover/switch-config.js'
import { type RunOptions, runReshard } from '../../../src/reshard/reshard.js'
import type { ReshardSide } from '../../../src/reshard/side.js'
import { verifyQuiet } from '../../../src/reshard/verify/verify.js'
import { connect, FakeProxy, shardOf, shopSchema, Writers } from '../../support/moving-shop.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'
import { makeSide } from './move-rig.js'

const settings = { max_wal_senders: '60', max_replication_slots: '60' }
const postgres = usePostgres({ version: 15, settings })

const side = (name: string, count: number): Promise<ReshardSide> =>
  makeSide(postgres(), name, count)

async function seed(source: ReshardSide, rows: number): Promise<void> {
  for (const [shard, target] of source.shards.entries()) {
    const client = await connect(target)
    await client.query(shopSchema)
    await client.query(
      `INSERT INTO country VALUES ('DE', 'Germany'), ('FR', NULL::text || ''), ('XX', ' x ')`.replace(
        "NULL::text || ''",
        "''",
      ),
    )
    const tenants = Array.from({ length: rows }, (_, i) => 100_000 + i).filter(
      (tenant) => shardOf(tenant, source.sharding) === shard,
    )
    await client.query(
      `INSERT INTO orders (tenant, id, note, amount, big) SELECT t, t % 7, E'tab\\t nl\\n back\\\\ \\u00e9 ' || t, t / 3.0, repeat('q', (t % 100)::int * 100)
         FROM unnest($1::bigint[]) t`,
      [tenants],
    )
    await client.query(
      `INSERT INTO "Odd ""Name" (tenant, "sel ect") SELECT t, nullif('v' || t % 5, 'v0') FROM unnest($1::bigint[]) t`,
      [tenants],
    )
    await client.end()
  }
}

async function configFile(): Promise<string> {
  const directory = await mkdtemp(join(inject('runDirectory'), 'pgshard-move-'))
  const path = join(directory, 'pgdog.toml')
  await writeFile(
    path,
    '# mine\n[[databases]]\nname = "a"\nhost = "h1"\n[[databases]]\nname = "b"\nhost = "h2"\ndatabase_name = "real"\n',
  )
  return path
}

const options = (
  source: ReshardSide,
  target: ReshardSide,
  proxy: FakeProxy,
  path: string,
): RunOptions => ({
  source,
  target,
  gate: proxy,
  config: configSwitch(path, 'a', 'b'),
  clock: systemClock,
  log: silentLog,
  listener: { step: () => undefined },
  jobs: 2,
  budgetMs: 10_000,
  verifyHoldMs: 5_000,
})

const allOrders = async (on: ReshardSide): Promise<Map<string, Record<string, string>>> => {
  const rows = new Map<string, Record<string, string>>()
  for (const [shard, target] of on.shards.entries()) {
    const client = await connect(target)
    const found = await client.query(
      `SELECT tenant || '/' || id AS key, tenant, md5(o::text) AS hash, note, amount::text, length(big) AS big, twice = amount * 2 AS twice FROM orders o`,
    )
    for (const row of found.rows) {
      expect(rows.has(row.key), `${row.key} stands twice`).toBe(false)
      expect(shardOf(BigInt(row.tenant), on.sharding), `${row.key} on shard ${shard}`).toBe(shard)
      rows.set(row.key, row)
    }
    await client.end()
  }
  return rows
}

describe.each([
  [2, 3],
  [4, 6],
])('%i → %i shards under writers', (from, to) => {
  test('every write is kept, each row on its shard, the old side fenced', async () => {
    const source = await side('a', from)
    const target = await side('b', to)
    await seed(source, 3000)
    const path = await configFile()
    const proxy = new FakeProxy(source, { ...target, name: 'a' })
    await proxy.connect()
    const writers = new Writers(proxy, 7)
    writers.start(4)
    await waitFor(() => writers.committed > 50)
    const report = await runReshard(options(source, target, proxy, path))
    const atSwitch = writers.committed
    await waitFor(() => writers.committed > atSwitch + 50)
    await writers.stop()

    expect(report.state).toBe('cut_over')
    expect(report.changesApplied).toBeGreaterThan(0)
    expect(report.verify?.same).toBe(true)
    expect(proxy.calls).toEqual(['open', 'open', 'pause', 'reload', 'resume', 'close'])
    const orders = await allOrders(target)
    for (const [key, row] of writers.model) {
      expect(orders.get(key), key).toMatchObject({
        note: row.note,
        amount: row.amount,
        big: row.bigLength,
        twice: true,
      })
    }
    const written = [...orders.keys()].filter((key) => Number(key.split('/')[0]) < 100_000)
    expect(written.length).toBe(writers.model.size)
    expect(orders.size - written.length).toBe(3000)
    await checkRest(source, target, writers)
    expect(await readFile(path, 'utf8')).toBe(
      '# mine\n[[databases]]\ndatabase_name = "a"\nname = "b"\nhost = "h1"\n[[databases]]\nname = "a"\nhost = "h2"\ndatabase_name = "real"\n',
    )
    await proxy.end()
  }, 120_000)
})

async function checkRest(
  source: ReshardSide,
  target: ReshardSide,
  writers: Writers,
): Promise<void> {
  for (const shard of target.shards) {
    const client = await connect(shard)
    const { rows } = await client.query('SELECT code, name FROM country')
    const names = new Map(rows.map((row) => [row.code, row.name]))
    for (const [code, name] of writers.countries) expect(names.get(code)).toBe(name)
    const constraints = await client.query(
      `SELECT contype, convalidated FROM pg_constraint WHERE contype = 'f'`,
    )
    expect(constraints.rows).toEqual([{ contype: 'f', convalidated: true }])
    const triggers = await client.query(`SELECT tgname FROM pg_trigger WHERE NOT tgisinternal`)
    expect(triggers.rows).toEqual([{ tgname: 'stamp' }])
    await client.end()
  }
  const old = await connect(source.shards[0] as HostTarget)
  await expect(old.query(`INSERT INTO orders (tenant, id) VALUES (1, 1)`)).rejects.toMatchObject({
    code: '25006',
  })
  await expect(old.query(`TRUNCATE country`)).rejects.toMatchObject({ code: '25006' })
  // Those of the way back stand on the new side until they are cleaned up.
  const slots = await old.query(
    `SELECT slot_name FROM pg_replication_slots WHERE slot_name !~ '_back_'`,
  )
  expect(slots.rows).toEqual([])
  const publications = await old.query(`SELECT pubname FROM pg_publication`)
  expect(publications.rows).toEqual([])
  await old.end()
}

test('quiet verify names a row that differs, one that is missing and one on the wrong shard', async () => {
  const source = await side('a', 2)
  const target = await side('b', 3)
  await seed(source, 300)
  const path = await configFile()
  const proxy = new FakeProxy(source, target)
  await proxy.connect()
  await runReshard(options(source, target, proxy, path))
  const equal = await verifyQuiet({ source, target, clock: systemClock })
  expect(equal.same).toBe(true)
  const at = (tenant: number): HostTarget =>
    target.shards[shardOf(tenant, target.sharding)] as HostTarget
  const one = await connect(at(100_001))
  await one.query(`UPDATE orders SET note = note || ' ' WHERE tenant = 100001`)
  await one.end()
  const two = await connect(at(100_002))
  await two.query(`DELETE FROM orders WHERE tenant = 100002`)
  await two.end()
  const wrong = await connect(
    target.shards[(shardOf(100_003, target.sharding) + 1) % 3] as HostTarget,
  )
  await wrong.query(`INSERT INTO "Odd ""Name" (tenant) VALUES (100003)`)
  await wrong.end()
  const found = await verifyQuiet({ source, target, clock: systemClock })
  const orders = found.tables.find((table) => table.name === 'public.orders')
  expect(orders?.keys).toEqual(
    expect.arrayContaining([
      { key: `(100001,${100001 % 7})`, what: 'differs' },
      { key: `(100002,${100002 % 7})`, what: 'missing on target' },
    ]),
  )
  expect(found.tables.find((table) => table.name === 'public.Odd "Name')?.misplaced).toBe(1)
  expect(found.same).toBe(false)
  await proxy.end()
}, 60_000)
