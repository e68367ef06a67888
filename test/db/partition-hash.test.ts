import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readCatalog } from '../../src/catalog/read-catalog.js'
import type { HashedKeyType } from '../../src/datum/key-type.js'
import { makeKeyPlacer } from '../../src/sharding/key-placer.js'
import { usePostgres } from '../support/use-postgres.js'

const postgres = usePostgres({ count: 1 })
let client: pg.Client
beforeAll(async () => {
  const port = postgres().servers[0]!.port
  client = new pg.Client({ host: '127.0.0.1', port, user: 'postgres', database: 'postgres' })
  await client.connect()
})
afterAll(() => client?.end())

/** A query of random values of a type, and how SQL gives their text and binary forms. */
const samples: Record<HashedKeyType, string> = {
  bigint: `trunc((random() * 2 - 1)::numeric * 9e18) FROM generate_series(1, 300) UNION ALL VALUES (9223372036854775807), (-9223372036854775808), (0), (-1)`,
  integer: `(random() * 2 - 1) * 2147483647 FROM generate_series(1, 300)`,
  smallint: `(random() * 2 - 1) * 32767 FROM generate_series(1, 300)`,
  uuid: `gen_random_uuid() FROM generate_series(1, 300)`,
  text: `repeat(chr(32 + (random() * 90)::int) || chr(200 + g), g % 40) FROM generate_series(1, 300) g`,
  varchar: `repeat(chr(32 + (random() * 90)::int), g % 40) FROM generate_series(1, 300) g`,
  bpchar: `repeat(chr(33 + (random() * 90)::int) || ' ', g % 40) FROM generate_series(1, 300) g`,
  numeric: `((random() * 2 - 1) * 10::numeric ^ (g % 40 - 20))::numeric FROM generate_series(1, 300) g UNION ALL VALUES (0), ('NaN'), ('Infinity'), ('-Infinity'), (10000), (0.0001), (1e-5), (-12340000.00)`,
  date: `date '2000-01-01' + ((random() * 2 - 1) * 700000)::int FROM generate_series(1, 300) UNION ALL VALUES (date 'infinity'), ('-infinity'), ('0044-03-15 BC')`,
  timestamp: `timestamp '2000-01-01' + (random() * 2 - 1) * 700000 * interval '1 day' FROM generate_series(1, 300) UNION ALL VALUES (timestamp 'infinity'), ('-infinity'), ('294276-12-31 23:59:59.999999')`,
  timestamptz: `timestamptz '2000-01-01 00:00+00' + (random() * 2 - 1) * 1000000 * interval '1 hour' FROM generate_series(1, 300) UNION ALL VALUES (timestamptz 'infinity'), ('-infinity')`,
}

const send: Record<HashedKeyType, string> = {
  bigint: 'int8send',
  integer: 'int4send',
  smallint: 'int2send',
  uuid: 'uuid_send',
  text: 'textsend',
  varchar: 'varcharsend',
  bpchar: 'bpcharsend',
  numeric: 'numeric_send',
  date: 'date_send',
  timestamp: 'timestamp_send',
  timestamptz: 'timestamptz_send',
}

const modulus = 97

describe('partition hash on a live server', () => {
  it.each(Object.keys(samples) as HashedKeyType[])('%s', async (type) => {
    await client.query(`DROP TABLE IF EXISTS h; CREATE TABLE h (k ${type}) PARTITION BY HASH (k)`)
    const { rows } = await client.query<{ t: string; b: Buffer; shard: number }>(
      `WITH v AS MATERIALIZED (SELECT (x)::${type} AS k FROM (SELECT ${samples[type]}) AS s(x))
       SELECT k::text AS t, ${send[type]}(k) AS b,
         (SELECT r FROM generate_series(0, ${modulus - 1}) r WHERE satisfies_hash_partition('h'::regclass, ${modulus}, r, k)) AS shard
       FROM v`,
    )
    expect(rows.length).toBeGreaterThanOrEqual(300)
    const placer = makeKeyPlacer({
      column: 'k',
      keyType: type,
      placement: {
        kind: 'hash',
        hasher: 'postgres',
        buckets: modulus,
        bucketMap: Array.from({ length: modulus }, (_, i) => i),
      },
    })
    for (const { t, b, shard } of rows) {
      const text = Buffer.from(t)
      expect(placer.ofText(text, 0, text.length), `${t} as text`).toBe(shard)
      expect(placer.ofString(t), `${t} as literal`).toBe(shard)
      expect(placer.ofBinary(b, 0, b.length), `${t} in binary`).toBe(shard)
    }
  })
})

describe('catalogue of a live server', () => {
  it('has columns in order, constraints, partitions, views and user functions', async () => {
    await client.query(`
      CREATE SCHEMA shop;
      CREATE TABLE shop.orders (gone int, id bigserial, tenant bigint NOT NULL, email text UNIQUE, PRIMARY KEY (tenant, id));
      ALTER TABLE shop.orders DROP COLUMN gone;
      CREATE TABLE shop.items (tenant bigint, oid bigint, FOREIGN KEY (tenant, oid) REFERENCES shop.orders (tenant, id));
      CREATE VIEW shop.inner_view AS SELECT tenant FROM shop.orders;
      CREATE VIEW shop.outer_view AS SELECT * FROM shop.inner_view;
      CREATE TABLE shop.parts (k bigint) PARTITION BY LIST (k);
      CREATE TABLE shop.parts_1 PARTITION OF shop.parts FOR VALUES IN (1);
      CREATE FUNCTION shop.one() RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT 1'`)
    const catalog = await readCatalog(async (sql) => {
      const types = { getTypeParser: () => (text: string) => text }
      const result = await client.query({
        text: sql,
        rowMode: 'array',
        types,
      } as pg.QueryArrayConfig)
      return result.rows as string[][]
    })
    const orders = catalog.find(undefined, 'orders', ['nowhere', 'shop'])!
    expect(orders.columns.map((column) => column.name)).toEqual(['id', 'tenant', 'email'])
    expect(orders.constraints.map(({ kind, columns }) => [kind, columns])).toEqual([
      ['unique', ['email']],
      ['primary', ['tenant', 'id']],
    ])
    expect(catalog.find('shop', 'items', [])!.foreignKeys[0]).toMatchObject({
      columns: ['tenant', 'oid'],
      target: orders.oid,
      targetColumns: ['tenant', 'id'],
    })
    const view = catalog.find('shop', 'outer_view', [])!
    expect(catalog.tablesBeneath(view)).toEqual([orders])
    expect(catalog.rootOf(catalog.find('shop', 'parts_1', [])!).name).toBe('parts')
    expect(catalog.functionsNamed('one')).toEqual([
      { schema: 'shop', name: 'one', volatility: 'immutable' },
    ])
    expect(catalog.find(undefined, 'orders', ['public'])).toBeUndefined()
  })
})
