/** Two databases with the same rows on different numbers of shards, without a move having made them. */
import type { HostTarget } from '../../../src/pg/host-client.js'
import type { ReshardSide } from '../../../src/reshard/side.js'
import type { ShardingConfig } from '../../../src/sharding/sharded-table.js'
import { connect } from '../../support/moving-shop.js'
import type { TestPostgres } from '../../support/postgres.js'

const schema = `
CREATE TABLE big (tenant bigint, id bigint, note text, amount numeric(14,4), at timestamptz, tag "char",
  price money, span interval, raw bytea, doc jsonb, PRIMARY KEY (tenant, id));
CREATE TABLE country (code text PRIMARY KEY, name text);
CREATE TABLE pg_key (tenant bigint) PARTITION BY HASH (tenant);`

/** Row `i`, the same wherever it is made; NULLs, empty strings and letters that collations order differently. */
const rowOf = `i % 5000 AS tenant, i AS id,
  CASE i % 5 WHEN 0 THEN NULL WHEN 1 THEN '' WHEN 2 THEN 'Ärger ' || i WHEN 3 THEN 'a-' || i ELSE 'A' || i || E'\\t\\n"' END AS note,
  (i * 7 % 1000003) / 16.0 AS amount, timestamptz '2026-01-01 00:00+00' + i * interval '1 ms' AS at,
  chr((i % 90)::int + 33)::"char" AS tag, (i % 1000)::int::money AS price, (i % 1000) * interval '1 h' AS span,
  decode(lpad(to_hex(i), 8, '0'), 'hex') AS raw, jsonb_build_object('i', i, 'x', 'é' || i) AS doc`

export function bigSharding(shardCount: number): ShardingConfig {
  return {
    shardCount,
    tables: [
      {
        name: 'big',
        column: 'tenant',
        keyType: 'bigint',
        placement: {
          kind: 'hash',
          hasher: 'postgres',
          buckets: shardCount,
          bucketMap: Array.from({ length: shardCount }, (_, shard) => shard),
        },
      },
    ],
    referenceTables: [{ name: 'country' }, { name: 'pg_key' }],
    schemas: [],
    otherTables: 'reference',
  }
}

export interface BigSide extends ReshardSide {
  /** The shard of a tenant. */
  of(tenant: number): Promise<HostTarget>
}

/** Statements on one shard; the rows of the last one. */
export async function on(
  target: HostTarget,
  ...statements: string[]
): Promise<Record<string, unknown>[]> {
  const client = await connect(target)
  try {
    let rows: Record<string, unknown>[] = []
    for (const sql of statements) rows = (await client.query(sql)).rows
    return rows
  } finally {
    await client.end()
  }
}

/**
 * A side of `shards` databases with rows 1 to `rows`, each on its shard. `makeDatabase` names what to add to CREATE
 * DATABASE; the settings are made the database's own, so that text output differs unless it is asked for.
 */
export async function bigSide(
  postgres: TestPostgres,
  name: string,
  options: {
    shards: number
    rows: number
    create?: string
    settings?: readonly string[]
    server?: number
  },
): Promise<BigSide> {
  const server = postgres.servers[options.server ?? 0] as (typeof postgres.servers)[number]
  const place = { host: server.host, port: server.port, user: postgres.user }
  const shards = await Promise.all(
    Array.from({ length: options.shards }, async (_, shard): Promise<HostTarget> => {
      const database = await postgres.createDatabase()
      if (options.create !== undefined) {
        await postgres.query(`DROP DATABASE ${database}`, [], options.server)
        await postgres.query(
          `CREATE DATABASE ${database} TEMPLATE template0 ENCODING 'UTF8' ${options.create}`,
          [],
          options.server,
        )
      }
      const target = { ...place, database }
      await on(
        target,
        ...(options.settings ?? []).map((set) => `ALTER DATABASE ${database} SET ${set}`),
      )
      await on(
        target,
        schema,
        `INSERT INTO country SELECT 'c' || i, 'land ' || i FROM generate_series(1, 200) i`,
        `INSERT INTO big SELECT ${rowOf} FROM generate_series(1::bigint, ${options.rows}) i
          WHERE satisfies_hash_partition('pg_key'::regclass, ${options.shards}, ${shard}, i % 5000)`,
        'ANALYZE big',
      )
      return target
    }),
  )
  const of = async (tenant: number): Promise<HostTarget> => {
    for (const [shard, target] of shards.entries()) {
      const [row] = await on(
        target,
        `SELECT satisfies_hash_partition('pg_key'::regclass, ${options.shards}, ${shard}, ${tenant}::bigint) AS here`,
      )
      if (row?.['here'] === true) return target
    }
    throw new Error(`no shard has tenant ${tenant}`)
  }
  return { name, shards, sharding: bigSharding(options.shards), of }
}
