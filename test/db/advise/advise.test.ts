/**
 * `advise` on three schemas and their 200 statements, against a router that is asked here, statement by statement, with the
 * catalogue of a real server and the configuration that was written; and the other sources of workloads, as PostgreSQL makes them.
 */
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type pg from 'pg'
import { describe, expect, it } from 'vitest'
import { type Advice, advise } from '../../../src/advise/advise.js'
import { readSchema } from '../../../src/advise/schema/read-schema.js'
import { readSkew } from '../../../src/advise/skew.js'
import {
  readCsvlog,
  readSqlWorkload,
  readStatStatements,
} from '../../../src/advise/workload/read-workload.js'
import { writeConfig } from '../../../src/advise/write-config.js'
import type { Catalog } from '../../../src/catalog/catalog.js'
import { type Query, readCatalog } from '../../../src/catalog/read-catalog.js'
import { loadConfig } from '../../../src/config/load-config.js'
import { adminRows } from '../../../src/pg/admin-query.js'
import { describeRoutes, type RouteDescription } from '../../../src/routing/describe-route.js'
import { openQueryPlanner } from '../../../src/routing/query-planner.js'
import { projectRoot } from '../../support/run-cli.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'

const fixture = (name: string): string =>
  readFileSync(join(projectRoot, 'fixtures/advise', name), 'utf8')

const options = { shards: 4, searchPath: ['public'] }

const postgres = usePostgres({
  settings: {
    shared_preload_libraries: 'pg_stat_statements',
    logging_collector: 'on',
    log_destination: 'csvlog',
    log_filename: 'all.log',
    log_statement: 'all',
  },
})

const queryOf =
  (client: pg.Client): Query =>
  (sql) =>
    adminRows(client, sql)

/** A database with the schema of a fixture; the rows of its dump are left out. */
async function databaseOf(schema: string): Promise<pg.Client> {
  const database = await postgres().createDatabase()
  const client = await postgres().connect(0, database)
  const ddl = fixture(schema).replace(/^COPY[\s\S]*?^\\\.$/gm, '')
  await client.query(ddl)
  await client.query('RESET search_path')
  return client
}

/** What `advise` calls a fate, of what `pgshard route` says; it has one word for a write that is split and one for all. */
function fateOf(route: RouteDescription): string {
  if (route.how === 'refuse') return 'refused'
  if (route.how === 'merge') return 'scatter'
  if (route.how === 'gather') return 'gather'
  if (route.how === 'split') return 'split'
  return route.any_shard ? 'any' : 'one'
}

/** One statement after the other, as `pgshard route` is asked. */
async function independentCounts(workload: string, config: string, catalog: Catalog) {
  const directory = mkdtempSync(join(tmpdir(), 'advise-'))
  const configPath = join(directory, 'pgdog.toml')
  writeFileSync(configPath, config)
  writeFileSync(join(directory, 'users.toml'), '')
  const loaded = loadConfig({ configPath, databaseUrls: [], env: {} })
  expect(loaded.warnings.filter((text) => !/has no user/.test(text))).toEqual([])
  const sharding = loaded.sharding.get('app')!
  const counts: Record<string, number> = {}
  const planner = await openQueryPlanner({ sharding, catalog })
  for (const sql of workload.split(/;\n/).filter((text) => text.trim() !== '')) {
    const [route] = describeRoutes(planner, sql, undefined, { searchPath: ['public'] })
    const fate = fateOf(route!)
    counts[fate] = (counts[fate] ?? 0) + 1
  }
  return counts
}

function countsOf(advice: Advice, at: number, what: 'statements' | 'calls' = 'statements') {
  const { counts } = advice.candidates[at]!.verdict
  const { everywhere, split, ...others } = counts
  const writes = {
    statements: split.statements + everywhere.statements,
    calls: split.calls + everywhere.calls,
  }
  const found = Object.entries({ ...others, split: writes })
  return Object.fromEntries(
    found.flatMap(([fate, tally]) => (tally[what] > 0 ? [[fate, tally[what]]] : [])),
  )
}

describe('advise', () => {
  it.each([
    ['shop', 'tenant_id', { orders: 'tenant_id', tenants: 'id', products: 'tenant_id' }],
    ['chat', 'channel_id', { messages: 'channel_id', channels: 'id', memberships: 'channel_id' }],
    ['iot', 'device_id', { readings: 'device_id', devices: 'id', alerts: 'device_id' }],
  ])(
    'proposes the right key for %s, and counts what the router says of each statement',
    async (name, key, columns) => {
      const client = await databaseOf(`${name}.schema.sql`)
      const workload = fixture(`${name}.workload.sql`)
      const real = await readCatalog(queryOf(client))
      const schema = fixture(`${name}.schema.sql`)
      const { catalog, unread } = await readSchema(schema, real.isBytewise)
      const advice = await advise(catalog, readSqlWorkload(workload), options)
      expect(unread).toEqual([])
      expect(advice.workload).toMatchObject({
        statements: 200,
        calls: 200,
        control: 0,
        rejected: [],
      })
      const [best, ...others] = advice.candidates
      expect(best!.key).toBe(key)
      const found = Object.fromEntries(best!.tables.map((one) => [one.table.name, one.column]))
      expect(found).toMatchObject(columns)
      expect(others.length).toBeGreaterThan(0)
      for (let at = 0; at < advice.candidates.length; at++) {
        const config = writeConfig(advice.candidates[at]!, { database: 'app' })
        expect(countsOf(advice, at)).toEqual(await independentCounts(workload, config, real))
      }
    },
  )

  it.each(['shop', 'chat', 'iot'])('reads the schema of %s as PostgreSQL has it', async (name) => {
    const client = await databaseOf(`${name}.schema.sql`)
    const real = await readCatalog(queryOf(client))
    const { catalog } = await readSchema(fixture(`${name}.schema.sql`))
    expect(shapeOf(catalog)).toEqual(shapeOf(real))
  })

  it('says the same of the same twice', async () => {
    const run = async () => {
      const { catalog } = await readSchema(fixture('chat.schema.sql'))
      const advice = await advise(catalog, readSqlWorkload(fixture('chat.workload.sql')), options)
      return advice.candidates.map((one) => [one.key, one.score, one.verdict.reasons])
    }
    expect(await run()).toEqual(await run())
  })

  it('takes what a server logged, with the values that were bound', async () => {
    const client = await databaseOf('shop.schema.sql')
    await client.query('INSERT INTO tenants (id, name) VALUES (1, $1)', ["it's, here"])
    for (const tenant of [1, 2, 2]) {
      await client.query('SELECT id FROM orders WHERE tenant_id = $1 AND status = $2', [
        tenant,
        null,
      ])
    }
    await client.query("SELECT sku FROM products WHERE tenant_id = 5 AND sku = ';'")
    const { database } = client
    await client.end()
    const path = join(postgres().servers[0]!.dataDirectory, 'log', 'all.csv')
    await waitFor(() => readFileSync(path, 'utf8').includes("AND sku = ';'"))
    const workload = await readCsvlog(path, database!, () => undefined)
    const asked = workload.statements.filter(({ sql }) =>
      /^(SELECT id|SELECT sku|INSERT)/.test(sql),
    )
    expect(asked).toEqual([
      {
        sql: 'INSERT INTO tenants (id, name) VALUES (1, $1)',
        calls: 1,
        parameters: ["it's, here"],
      },
      {
        sql: 'SELECT id FROM orders WHERE tenant_id = $1 AND status = $2',
        calls: 1,
        parameters: ['1', null],
      },
      {
        sql: 'SELECT id FROM orders WHERE tenant_id = $1 AND status = $2',
        calls: 2,
        parameters: ['2', null],
      },
      { sql: "SELECT sku FROM products WHERE tenant_id = 5 AND sku = ';'", calls: 1 },
    ])
    const { catalog } = await readSchema(fixture('shop.schema.sql'))
    const advice = await advise(catalog, { statements: asked, notes: [] }, options)
    expect(countsOf(advice, 0, 'calls')).toEqual({ one: 5 })
  })

  it('takes pg_stat_statements, weighs by calls, and makes values of the right type up', async () => {
    const client = await databaseOf('chat.schema.sql')
    await client.query('CREATE EXTENSION pg_stat_statements')
    const id = '5d0cf4a6-8a0e-4a3f-9d3b-7a1c1f1f0001'
    for (let i = 0; i < 7; i++) {
      await client.query(`SELECT body FROM messages WHERE channel_id = ${i} LIMIT 10`)
    }
    for (let i = 0; i < 3; i++) {
      await client.query(
        `SELECT channel_id FROM memberships WHERE user_id = '${id}' AND role = 'x'`,
      )
    }
    await client.query("SELECT 1 FROM messages WHERE sent_at > now() - interval '1 day'")
    const all = await readStatStatements(queryOf(client))
    const statements = all.statements.filter(({ sql }) => /FROM m/.test(sql))
    expect(statements.map(({ calls }) => calls)).toEqual([7, 3, 1])
    const { catalog } = await readSchema(fixture('chat.schema.sql'))
    const advice = await advise(catalog, { statements, notes: [] }, options)
    expect(advice.workload.rejected).toEqual([])
    expect(advice.candidates[0]).toMatchObject({ key: 'channel_id' })
    // A parameter in an interval cannot be carried to a merge: its rows are gathered.
    expect(countsOf(advice, 0, 'calls')).toEqual({ one: 7, scatter: 3, gather: 1 })
    const byUser = advice.candidates.findIndex(({ key }) => key === 'user_id')
    expect(countsOf(advice, byUser, 'calls')).toEqual({ one: 3, scatter: 7, gather: 1 })
  })

  it('measures the skew of the rows that are there, the same way each time', async () => {
    const client = await databaseOf('shop.schema.sql')
    await client.query(`INSERT INTO tenants (id, name) SELECT n, 'x' FROM generate_series(1, 100) n;
      INSERT INTO customers (tenant_id, email) SELECT 7, n::text FROM generate_series(1, 800) n;
      INSERT INTO customers (tenant_id, email) SELECT n, 'a' FROM generate_series(1, 100) n; ANALYZE`)
    const query = queryOf(client)
    const catalog = await readCatalog(query)
    const advice = await advise(catalog, readSqlWorkload(fixture('shop.workload.sql')), options)
    const [best] = advice.candidates
    const skew = await readSkew(best!, query)
    const customers = skew.find(({ table }) => table === 'public.customers')!
    expect(customers).toMatchObject({
      sampledRows: 900,
      distinctKeys: 100,
      nullKeys: 0,
      estimatedRows: 900,
    })
    expect(customers.largestKeyShare).toBeCloseTo(801 / 900, 5)
    const { rows } = await client
      .query<{ shard: number; rows: string }>(
        `CREATE TABLE placed (tenant_id bigint) PARTITION BY HASH (tenant_id);
       SELECT 1`,
      )
      .then(() =>
        client.query(`SELECT g AS shard, count(*) AS rows FROM customers, generate_series(0, 3) g
       WHERE satisfies_hash_partition('placed'::regclass, 4, g, tenant_id) GROUP BY 1 ORDER BY 1`),
      )
    expect(customers.rowsPerShard).toEqual(rows.map((row) => Number(row.rows)))
    expect(customers.skew).toBeCloseTo(Math.max(...customers.rowsPerShard) / 225, 5)
    expect(await readSkew(best!, query)).toEqual(skew)
  })

  it('leaves the files of a log alone that is none', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'advise-'))
    writeFileSync(join(directory, 'x.csv'), 'a,b\n1,2\n')
    await expect(
      readCsvlog(join(directory, 'x.csv'), undefined, () => undefined),
    ).rejects.toMatchObject({
      code: 'USAGE',
      message: expect.stringContaining('line 1 has 2 columns'),
    })
    expect(readdirSync(directory)).toEqual(['x.csv'])
  })
})

/** Tables by name, without numbers and with constraints in order. */
function shapeOf(catalog: Catalog) {
  const relations = [...catalog.relations].filter(
    ({ kind }) => kind === 'table' || kind === 'partitioned',
  )
  const named = (oid: number | undefined) =>
    oid === undefined ? undefined : catalog.byOid(oid)?.name
  return relations
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map(({ name, kind, columns, constraints, foreignKeys, parent }) => ({
      name,
      kind,
      parent: named(parent),
      columns: columns.map(({ bytewise: _, default: text, ...column }) => ({
        ...column,
        hasDefault: text !== undefined,
      })),
      constraints: constraints.map(({ name: _, ...one }) => JSON.stringify(one)).sort(),
      foreignKeys: foreignKeys
        .map(({ name: _, target, ...one }) => JSON.stringify({ ...one, target: named(target) }))
        .sort(),
    }))
}
