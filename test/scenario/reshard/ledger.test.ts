/**
 * Fifty writers on every awkward table through `serve`, moved from two shards to three: after the cutover every
 * acknowledged write is there once, on the right shard.
 */
import { mkdtemp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, inject, test } from 'vitest'
import {
  Ledger,
  ledgerSchema,
  readLedgerRows,
  shardedNames,
  startWriter,
  writeAll,
  writeCountries,
  writeHops,
} from '../../support/ledger-shop.js'
import { connectThrough, type Shop, shardEntries } from '../../support/live-shop.js'
import { shardOf, shopSharding } from '../../support/moving-shop.js'
import { makeRandom } from '../../support/random.js'
import { runCli } from '../../support/run-cli.js'
import { bySize } from '../../support/test-size.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'
import { outputOf, reshard, settings, startServe } from './cutover-rig.js'

const postgres = usePostgres({
  version: 15,
  settings: { ...settings, max_prepared_transactions: '200' },
})

async function makeLedgerShop(): Promise<Shop> {
  const create = (count: number) =>
    Promise.all(Array.from({ length: count }, () => postgres().createDatabase()))
  const shop = { from: await create(2), to: await create(3) }
  const [server] = postgres().servers
  const entries = (name: string, databases: string[]): string =>
    shardEntries(name, databases, server!.port) +
    shardedNames
      .map(
        (table) =>
          `[[sharded_tables]]\ndatabase = "${name}"\nname = '${table}'\ncolumn = "tenant"\ndata_type = "bigint"\n`,
      )
      .join('') +
    `[[omnisharded_tables]]\ndatabase = "${name}"\ntables = ["country"]\n`
  const directory = await mkdtemp(join(inject('runDirectory'), 'pgshard-ledger-'))
  const [config, users] = [join(directory, 'pgdog.toml'), join(directory, 'users.toml')]
  await writeFile(
    config,
    `[general]\nhost = "127.0.0.1"\nport = 0\ncheckout_timeout = 120000\n[admin]\nuser = "admin"\npassword = "adm"\n${entries('shop', shop.from)}${entries('shop_new', shop.to)}`,
  )
  await writeFile(
    users,
    `[[users]]\nname = "${postgres().user}"\npassword = "pw"\ndatabases = ["shop", "shop_new"]\n`,
  )
  for (const database of shop.from) {
    const client = await postgres().connect(0, database)
    await client.query(ledgerSchema)
    await client.end()
  }
  for (const database of ['shop', 'shop_new']) {
    const setup = await runCli(['setup', '--config', config, '--database', database])
    expect(setup.code, outputOf(setup)).toBe(0)
  }
  return { ...shop, config, users }
}

const writers = { tenants: bySize(4, 38), hops: bySize(2, 10), countries: bySize(1, 2) }

test('O1, O4, D8: every awkward table, 50 writers with a ledger, 2 → 3', async () => {
  const shop = await makeLedgerShop()
  const { program, port } = await startServe(shop)
  const ledger = new Ledger()
  const through = () => connectThrough(postgres(), port)
  const start = (write: Parameters<typeof startWriter>[2]) => startWriter(through, ledger, write)
  const running = [
    ...Array.from({ length: writers.tenants }, (_, i) =>
      start((send) => writeAll(send, ledger, 100 + i)),
    ),
    ...Array.from({ length: writers.hops }, (_, i) =>
      start((send) => writeHops(send, ledger, makeRandom(i + 1))),
    ),
    ...Array.from({ length: writers.countries }, (_, i) =>
      start((send) => writeCountries(send, ledger, `land ${i}`)),
    ),
  ]
  const more = (count: number) => {
    const goal = ledger.acknowledged + count
    return waitFor(() => ledger.acknowledged > goal || ledger.errors.length > 0, {
      deadlineMs: 120_000,
    })
  }
  await more(bySize(300, 3000))
  const run = await reshard(shop, 'run', port, ['--no-reverse', '--part-size', '200kB'])
  await more(bySize(300, 3000))
  ledger.isOver = true
  await Promise.all(running)
  expect(run.code, outputOf(run)).toBe(0)
  expect(ledger.errors).toEqual([])
  const report = JSON.parse(run.stdout)
  expect(report).toMatchObject({ state: 'cut_over', verify: { same: true } })
  expect(report.changesApplied).toBeGreaterThan(0)
  await expectAll(shop, ledger)
  console.log(
    `ledger: ${ledger.acknowledged} writes acknowledged, ${ledger.model.size} rows stand, ${report.changesApplied} changes applied, write pause ${report.cutover.writePauseMs} ms`,
  )
  await program.stop()
}, 300_000)

/** Every acknowledged write is there once, on the shard of its key, and nothing else; sequences are ahead and disjoint. */
async function expectAll(shop: Shop, ledger: Ledger): Promise<void> {
  const sharding = shopSharding(3)
  const found = new Map<string, string>()
  const numbers: string[] = []
  for (const [shard, database] of shop.to.entries()) {
    const client = await postgres().connect(0, database)
    for (const { key, few, tenant } of await readLedgerRows(client)) {
      expect(found.has(key), `${key} stands twice`).toBe(false)
      expect(shardOf(tenant, sharding), key).toBe(shard)
      found.set(key, few)
    }
    const countries = await client.query('SELECT code, few FROM country ORDER BY code')
    expect(new Map(countries.rows.map(({ code, few }) => [code, few]))).toEqual(ledger.countries)
    numbers.push(...(await client.query('SELECT no::text FROM ids')).rows.map(({ no }) => no))
    const { rows } = await client.query(
      `SELECT nextval('ids_no_seq') > coalesce((SELECT max(no) FROM ids), 0) AS ahead`,
    )
    expect(rows).toEqual([{ ahead: true }])
    await client.end()
  }
  expect(new Set(numbers).size).toBe(numbers.length)
  const differ = [...new Set([...ledger.model.keys(), ...found.keys()])].flatMap((key) =>
    ledger.model.get(key) === found.get(key)
      ? []
      : [`${key}: told ${ledger.model.get(key)}, found ${found.get(key)}`],
  )
  expect(differ).toEqual([])
}
