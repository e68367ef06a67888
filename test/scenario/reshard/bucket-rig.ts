/** A shop whose table stands in buckets, a second database with the same shards and one more, and a reader of all of them. */
import { readFile, writeFile } from 'node:fs/promises'
import { makeKeyPlacer } from '../../../src/sharding/key-placer.js'
import { connectThrough, makeShop, type Shop, shardEntries } from '../../support/live-shop.js'
import type { TestPostgres } from '../../support/postgres.js'

const BUCKETS = 24

/** The bucket map of so many shards, and that of one more. */
function maps(count: number): { before: readonly number[]; after: readonly number[] } {
  const before = Array.from({ length: BUCKETS }, (_, bucket) => bucket % count)
  const most = Math.ceil(BUCKETS / (count + 1))
  const kept = new Map<number, number>()
  const after = before.map((shard) => {
    const held = (kept.get(shard) ?? 0) + 1
    kept.set(shard, held)
    return held <= most ? shard : count
  })
  return { before, after }
}

/** Tenants of shard 0 from `first` on, so many that stay there when a shard is added to `shards`, and so many that go. */
export function tenantsOfFirst(
  shards: number,
  first: number,
  count: number,
): { stay: number[]; go: number[] } {
  const { before, after } = maps(shards)
  const placer = (bucketMap: readonly number[]) =>
    makeKeyPlacer({
      ...{ column: 'tenant', keyType: 'bigint' },
      placement: { kind: 'hash', hasher: 'postgres', buckets: BUCKETS, bucketMap },
    })
  const [old, next] = [placer(before), placer(after)]
  const found = { stay: [] as number[], go: [] as number[] }
  for (let tenant = first; found.stay.length < count || found.go.length < count; tenant++) {
    if (old.ofString(String(tenant)) !== 0) continue
    const list = next.ofString(String(tenant)) === 0 ? found.stay : found.go
    if (list.length < count) list.push(tenant)
  }
  return found
}

/** `shop` on `count` shards, `shop_new` on the same ones and one more; or the other way round, where one is taken away. */
export async function makeBucketShop(
  postgres: TestPostgres,
  count: number,
  how: 'added' | 'removed' = 'added',
): Promise<Shop> {
  const isAdded = how === 'added'
  const shop = await makeShop(postgres, isAdded ? count : count + 1, isAdded ? 1 : 0)
  const from = shop.from
  const to = isAdded ? [...shop.from, ...shop.to] : shop.from.slice(0, count)
  const { before, after } = maps(count)
  const [mapFrom, mapTo] = isAdded ? [before, after] : [after, before]
  const text = await readFile(shop.config, 'utf8')
  // Clients wait while a killed run is taken up again, however long that takes here.
  const [head] = text
    .replace('checkout_timeout = 20000', 'checkout_timeout = 120000')
    .split('[[databases]]')
  const [server] = postgres.servers
  const entry = (name: string, databases: readonly string[], map: readonly number[]): string =>
    shardEntries(name, databases, server!.port) +
    `[[sharded_tables]]\ndatabase = "${name}"\nname = "acct"\ncolumn = "tenant"\ndata_type = "bigint"\nbuckets = ${BUCKETS}\nbucket_map = [${map.join(', ')}]\n`
  await writeFile(
    shop.config,
    `${head}${entry('shop', from, mapFrom)}${entry('shop_new', to, mapTo)}`,
  )
  return { ...shop, to }
}

/** Rows that nobody changes: a reader of all shards must see each of them once, at every moment. */
export async function startCounting(
  postgres: TestPostgres,
  port: number,
): Promise<{ stop(): Promise<{ reads: number; wrong: unknown[] }> }> {
  const client = await connectThrough(postgres, port)
  const rows = 400
  for (let id = 1; id <= rows; id++) {
    await client.query('INSERT INTO acct VALUES ($1, $2, $3, 7)', [1_000_000 + id, id, 'still'])
  }
  let stopped = false
  let reads = 0
  const wrong: unknown[] = []
  const read = async (): Promise<void> => {
    while (!stopped) {
      const found = await client
        .query('SELECT count(*)::int AS n, sum(id)::int AS sum FROM acct WHERE tenant > 1000000')
        .catch((error: unknown) => error as Error)
      if (found instanceof Error) {
        wrong.push(found)
        return
      }
      const [row] = found.rows
      if (row.n !== rows || row.sum !== (rows * (rows + 1)) / 2) wrong.push(row)
      const one = 1 + (reads % rows)
      const single = await client.query('SELECT id FROM acct WHERE tenant = $1', [1_000_000 + one])
      if (single.rows.length !== 1) wrong.push({ one, rows: single.rows })
      reads++
    }
  }
  const loop = read()
  return {
    stop: async () => {
      stopped = true
      await loop
      await client.end()
      return { reads, wrong }
    },
  }
}

/** Where each row of a database stands, with the transaction that wrote it: `tenant/id` → ctid and xmin. */
export async function tuplesOf(
  postgres: TestPostgres,
  database: string,
): Promise<Map<string, string>> {
  const client = await postgres.connect(0, database)
  const found = await client.query(
    `SELECT tenant || '/' || id AS key, ctid::text || ' ' || xmin::text AS place FROM acct`,
  )
  await client.end()
  return new Map(found.rows.map(({ key, place }) => [key, place]))
}
