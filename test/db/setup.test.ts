import { beforeEach, describe, expect, it } from 'vitest'
import type { HashedKeyType } from '../../src/datum/key-type.js'
import { guardCondition } from '../../src/setup/guards.js'
import { prepareSetup, type SetupConfig } from '../../src/setup/prepare-setup.js'
import type { SetupReport } from '../../src/setup/run-setup.js'
import { CURRENT_VERSION } from '../../src/setup/schema-text.js'
import type { ShardedTable } from '../../src/sharding/sharded-table.js'
import { usePostgres } from '../support/use-postgres.js'

const postgres = usePostgres({ count: 1 })
const SHARDS = 3
let names: string[] = []

const hashTable = (column: string, keyType: HashedKeyType, buckets = SHARDS): ShardedTable => ({
  column,
  keyType,
  placement: {
    kind: 'hash',
    hasher: 'postgres',
    buckets,
    bucketMap: Array.from({ length: buckets }, (_, bucket) => bucket % SHARDS),
  },
})

/** Three databases on one server as the shards of database "shop". */
function configOf(tables: readonly ShardedTable[], databases = names): SetupConfig {
  const { servers } = postgres()
  return {
    databases: [
      {
        name: 'shop',
        shards: databases.map((database, number) => ({
          number,
          hosts: [
            { host: '127.0.0.1', port: servers[0]!.port, database, role: 'primary', weight: 255 },
          ],
        })),
      },
    ],
    sharding: new Map([
      [
        'shop',
        {
          shardCount: SHARDS,
          tables,
          referenceTables: [],
          schemas: [],
          otherTables: 'reference' as const,
        },
      ],
    ]),
    users: [
      { name: postgres().user, databases: ['shop'], passwords: [], schemaAdmin: true },
      { name: 'nobody_here', databases: ['shop'], passwords: [], schemaAdmin: false },
    ],
  }
}

const request = { guards: false, dryRun: false, drop: false }
const setup = (tables: readonly ShardedTable[] = [], more: object = {}) =>
  prepareSetup(configOf(tables), { ...request, ...more }).run() as Promise<SetupReport>

async function ask(shard: number, sql: string): Promise<Record<string, unknown>[]> {
  const client = await postgres().connect(0, names[shard])
  try {
    return (await client.query(sql)).rows as Record<string, unknown>[]
  } finally {
    await client.end()
  }
}
const everywhere = (sql: string) => Promise.all(names.map((_, shard) => ask(shard, sql)))

beforeEach(async () => {
  names = []
  for (let i = 0; i < SHARDS; i++) names.push(await postgres().createDatabase())
})

describe('setup', () => {
  it('makes the schema once; a second run changes nothing', async () => {
    const first = await setup()
    expect(first.shards.map((shard) => [shard.id, shard.fromVersion, shard.toVersion])).toEqual([
      [1, 0, CURRENT_VERSION],
      [2, 0, CURRENT_VERSION],
      [3, 0, CURRENT_VERSION],
    ])
    expect(first.roles).toEqual([postgres().user])
    expect(first.notes).toEqual(['role "nobody_here" does not exist on shard 0: it gets no grants'])
    const before = await everywhere('SELECT * FROM pgshard.shard ORDER BY id')
    expect(before[1]).toEqual(
      [1, 2, 3].map((id) => ({
        id,
        cluster_id: first.clusterId,
        number: id - 1,
        is_here: id === 2,
      })),
    )
    const again = await setup()
    expect(again.clusterId).toBe(first.clusterId)
    expect(again.shards.every((shard) => shard.fromVersion === CURRENT_VERSION)).toBe(true)
    expect(await everywhere('SELECT * FROM pgshard.shard ORDER BY id')).toEqual(before)
  })

  it('brings a shard of an older version what came since', async () => {
    await setup()
    await everywhere(
      `DROP TABLE pgshard.waiter; ALTER TABLE pgshard.topology DROP truth_side, DROP preparing_at;
       UPDATE pgshard.schema_version SET version = 2`,
    )
    const report = await setup()
    expect(report.shards.map(({ fromVersion }) => fromVersion)).toEqual([2, 2, 2])
    await everywhere(`SELECT truth_side, served_as, preparing_at FROM pgshard.topology`)
    await everywhere(`INSERT INTO pgshard.waiter (process, parties) VALUES ('p', '[]')`)
  })

  it('keeps ids when shards change their order, and gives a new one to a new shard', async () => {
    const two = names.slice(0, 2)
    const config = (databases: string[]) => configOf([], databases)
    await prepareSetup(config(two), request).run()
    const order = [names[2], names[1], names[0]] as string[]
    const report = (await prepareSetup(config(order), request).run()) as SetupReport
    expect(report.shards.map((shard) => shard.id)).toEqual([3, 2, 1])
    const [here] = await ask(0, 'SELECT id, number FROM pgshard.shard WHERE is_here')
    expect(here).toEqual({ id: 1, number: 2 })
  })

  it('runs twice at the same time without harm', async () => {
    const [a, b] = await Promise.all([setup(), setup()])
    expect(a?.clusterId).toBe(b?.clusterId)
  })

  it('writes nothing with --dry-run, and prints SQL that works', async () => {
    const report = await setup([hashTable('tenant', 'bigint')], { dryRun: true, guards: true })
    expect(report.shards[0]?.sql).toContain('CREATE TABLE pgshard.decision')
    expect(report.shards[0]?.sql).toContain(`GRANT EXECUTE ON FUNCTION pgshard.abort(text)`)
    expect(await ask(0, `SELECT to_regnamespace('pgshard') AS there`)).toEqual([{ there: null }])
    await ask(0, report.shards[0]?.sql as string)
    expect(await ask(0, 'SELECT id FROM pgshard.shard WHERE is_here')).toEqual([{ id: 1 }])
  })

  it('refuses shards that do not belong together, before it writes', async () => {
    const twice = configOf([], [names[0], names[0]] as string[])
    await expect(prepareSetup(twice, request).run()).rejects.toMatchObject({
      code: 'SETUP_SAME_DATABASE',
      exitCode: 5,
    })
    await prepareSetup(configOf([], names.slice(0, 1)), request).run()
    await prepareSetup(configOf([], names.slice(1, 2)), request).run()
    await expect(setup()).rejects.toMatchObject({ code: 'SETUP_SHARD_CONFLICT' })
    expect(await ask(2, `SELECT to_regnamespace('pgshard') AS there`)).toEqual([{ there: null }])
    await ask(0, 'UPDATE pgshard.schema_version SET version = 99')
    await expect(
      prepareSetup(configOf([], names.slice(0, 1)), request).run(),
    ).rejects.toMatchObject({ code: 'SETUP_NEWER' })
  })

  it('names what is missing in configuration or flags', () => {
    const config = configOf([])
    expect(() => prepareSetup(config, { ...request, database: 'other' })).toThrow('"other" is not')
    expect(() => prepareSetup(config, { ...request, drop: true })).toThrow('asks for the name')
    expect(() => prepareSetup({ ...config, users: [] }, request)).toThrow('no user is configured')
  })

  it('gives roles that are not superuser what they need, and no more', async () => {
    await setup()
    const role = `r_${names[0]}`
    await ask(0, `CREATE ROLE ${role}`)
    const may = async (sql: string) => {
      const client = await postgres().connect(0, names[0])
      try {
        await client.query(`SET ROLE ${role}`)
        await client.query(sql)
        return true
      } catch (error) {
        expect((error as { code: string }).code).toBe('42501')
        return false
      } finally {
        await client.end()
      }
    }
    expect(await may(`SELECT pgshard.decide('\\x${'ab'.repeat(32)}', '{1,2}')`)).toBe(true)
    expect(await may(`SELECT pgshard.sweep_aborts()`)).toBe(false)
    expect(await may(`SELECT * FROM pgshard.decision`)).toBe(false)
    expect(await may(`DELETE FROM pgshard.decision`)).toBe(false)
    expect(await may(`SELECT * FROM pgshard.shard`)).toBe(true)
    await ask(0, `DROP OWNED BY ${role}; DROP ROLE ${role}`)
  })
})

describe('sequences', () => {
  it('become disjoint above every value drawn, and stay so', async () => {
    await everywhere(`CREATE TABLE orders (id bigserial PRIMARY KEY, tenant bigint,
        line bigint GENERATED BY DEFAULT AS IDENTITY);
      CREATE TABLE plain (id bigserial PRIMARY KEY);
      CREATE SEQUENCE shared_numbers START 1000;
      CREATE TABLE notes (tenant bigint, n bigint DEFAULT nextval('shared_numbers'))`)
    await ask(1, `SELECT setval('orders_id_seq', 41)`)
    const report = await setup([hashTable('tenant', 'bigint')])
    expect(report.sequences.changed).toEqual([
      '"public"."orders_id_seq"',
      '"public"."orders_line_seq"',
      '"public"."shared_numbers"',
    ])
    const insert =
      'INSERT INTO orders (tenant) SELECT 1 FROM generate_series(1, 100) RETURNING id, line'
    const rows = (await everywhere(insert)).flat()
    const ids = rows.map((row) => Number(row['id']))
    expect(new Set(ids).size).toBe(300)
    expect(Math.min(...ids)).toBeGreaterThan(41)
    expect(new Set(rows.map((row) => row['line'])).size).toBe(300)
    const numbers = (await everywhere('INSERT INTO notes VALUES (1) RETURNING n')).flat()
    expect(numbers.map((row) => Number(row['n'])).sort()).toEqual([1000, 1001, 1002])
    const again = await setup([hashTable('tenant', 'bigint')])
    expect(again.sequences).toEqual({ changed: [], unchanged: report.sequences.changed })
    const [plain] = await ask(
      0,
      `SELECT seqincrement FROM pg_sequence WHERE seqrelid = 'plain_id_seq'::regclass`,
    )
    expect(plain).toEqual({ seqincrement: '1' })
  })
})

describe('guards', () => {
  const values: Record<HashedKeyType, string> = {
    bigint: `SELECT (random() * 1e18)::bigint * (CASE WHEN random() < 0.5 THEN -1 ELSE 1 END) AS k FROM generate_series(1, 300) UNION VALUES (0::bigint), (-1), (9223372036854775807), (-9223372036854775808), (NULL)`,
    integer: `SELECT (random() * 2e9)::int AS k FROM generate_series(1, 300) UNION VALUES (-5), (NULL)`,
    smallint: `SELECT g::smallint AS k FROM generate_series(-150, 150) g UNION VALUES (NULL::smallint)`,
    uuid: `SELECT gen_random_uuid() AS k FROM generate_series(1, 300)`,
    text: `SELECT md5(g::text) AS k FROM generate_series(1, 300) g UNION VALUES (''), ('ü'), (NULL)`,
    varchar: `SELECT md5(g::text)::varchar AS k FROM generate_series(1, 300) g`,
    bpchar: `SELECT md5(g::text)::char(40) AS k FROM generate_series(1, 300) g`,
    numeric: `SELECT (random() * 1e6)::numeric(12, 3) AS k FROM generate_series(1, 300) UNION VALUES (1.50), (1.5), ('NaN')`,
    date: `SELECT date '1900-01-01' + g * 100 AS k FROM generate_series(1, 300) g UNION VALUES ('infinity'::date), ('-infinity')`,
    timestamp: `SELECT timestamp '1999-01-01' + g * interval '7777 s' AS k FROM generate_series(1, 300) g UNION VALUES ('infinity'::timestamp)`,
    timestamptz: `SELECT timestamptz '1999-01-01' + g * interval '7777 s' AS k FROM generate_series(1, 300) g UNION VALUES ('-infinity'::timestamptz)`,
  }

  it('hold exactly what PARTITION BY HASH holds, for every key type', async () => {
    await setup()
    for (const [keyType, rows] of Object.entries(values) as [HashedKeyType, string][]) {
      const type = keyType === 'bpchar' ? 'char(40)' : keyType
      await ask(0, `CREATE TABLE p_${keyType} (k ${type}) PARTITION BY HASH (k)`)
      for (const buckets of [3, 7, 64]) {
        const table = hashTable('k', keyType, buckets)
        const conditions = [0, 1, 2].map((shard) => guardCondition(table, shard) as string)
        const native = (bucket: number) =>
          `satisfies_hash_partition('p_${keyType}'::regclass, ${buckets}, ${bucket}, k)`
        const expected = [0, 1, 2].map((shard) =>
          Array.from({ length: buckets }, (_, bucket) => bucket)
            .filter((bucket) => bucket % SHARDS === shard)
            .map(native)
            .join(' OR '),
        )
        const wrong = conditions.map(
          (one, shard) => `(${one}) IS DISTINCT FROM (${expected[shard]})`,
        )
        const result = await ask(
          0,
          `WITH v AS (${rows}) SELECT count(*)::int AS n, count(*) FILTER (WHERE ${wrong.join(' OR ')})::int AS wrong FROM v`,
        )
        expect(result[0], `${keyType} ${buckets}`).toEqual({ n: expect.any(Number), wrong: 0 })
        expect(result[0]?.['n']).toBeGreaterThan(290)
      }
    }
  })

  it('keep rows on their shard whoever writes, and follow a new map', async () => {
    await everywhere(
      'CREATE TABLE t (tenant bigint, v int); CREATE TABLE parts (tenant bigint) PARTITION BY RANGE (tenant); CREATE TABLE part PARTITION OF parts DEFAULT',
    )
    const report = await setup([hashTable('tenant', 'bigint')], { guards: true })
    expect(report.guards.changed).toEqual(['"public"."parts"', '"public"."t"'])
    const landed = await Promise.all(
      Array.from({ length: 40 }, async (_, key) => {
        const tries = await Promise.allSettled(
          names.map((_, shard) => ask(shard, `INSERT INTO t VALUES (${key})`)),
        )
        return tries.filter((one) => one.status === 'fulfilled').length
      }),
    )
    expect(landed).toEqual(new Array(40).fill(1))
    await expect(ask(1, 'INSERT INTO t VALUES (NULL)')).rejects.toMatchObject({ code: '23514' })
    await ask(0, 'INSERT INTO t VALUES (NULL)')
    expect((await setup([hashTable('tenant', 'bigint')], { guards: true })).guards).toEqual({
      changed: [],
      unchanged: report.guards.changed,
    })
    const wider = [hashTable('tenant', 'bigint', 6)]
    expect((await setup(wider)).notes.join()).toContain('has a guard for another map')
    const moved: ShardedTable = {
      ...hashTable('tenant', 'bigint'),
      placement: { kind: 'hash', hasher: 'postgres', buckets: 3, bucketMap: [1, 2, 0] },
    }
    await expect(setup([moved], { guards: true })).rejects.toMatchObject({
      code: 'SETUP_GUARD_VIOLATED',
      exitCode: 6,
    })
    const mended = await setup(wider, { guards: true })
    expect(mended.guards.changed).toEqual(['"public"."parts"', '"public"."t"'])
  })

  it('know lists and ranges, NULL and the default', async () => {
    const list: ShardedTable = {
      column: 'k',
      keyType: 'text',
      placement: {
        kind: 'list',
        entries: [
          { values: ["it's", null], shard: 0 },
          { values: ['b'], shard: 1 },
        ],
        fallback: 2,
      },
    }
    const range: ShardedTable = {
      column: 'k',
      keyType: 'integer',
      placement: {
        kind: 'range',
        entries: [
          { end: '10', shard: 0 },
          { start: '10', end: '20', shard: 1 },
        ],
        fallback: 2,
      },
    }
    const holds = async (table: ShardedTable, literal: string) => {
      const conditions = [0, 1, 2].map((shard) => `(${guardCondition(table, shard)}) IS NOT FALSE`)
      const [row] = await ask(
        0,
        `SELECT ARRAY[${conditions.join(', ')}] AS h FROM (VALUES (${literal}::${table.keyType})) v(k)`,
      )
      const held = (row?.['h'] ?? []) as boolean[]
      return held.flatMap((one, shard) => (one ? [shard] : []))
    }
    expect(await holds(list, `'it''s'`)).toEqual([0])
    expect(await holds(list, 'NULL')).toEqual([0])
    expect(await holds(list, `'b'`)).toEqual([1])
    expect(await holds(list, `'zzz'`)).toEqual([2])
    expect(await holds(range, '-100')).toEqual([0])
    expect(await holds(range, '10')).toEqual([1])
    expect(await holds(range, '20')).toEqual([2])
    expect(await holds(range, 'NULL')).toEqual([2])
  })
})

describe('--drop', () => {
  it('removes guards and schema, but not under what uses them', async () => {
    await everywhere('CREATE TABLE t (tenant bigint)')
    await setup([hashTable('tenant', 'bigint')], { guards: true })
    const drop = { database: 'shop', drop: true }
    await ask(2, `SELECT pgshard.decide('\\x${'cd'.repeat(32)}', '{1,3}')`)
    await expect(setup([], drop)).rejects.toMatchObject({
      code: 'SETUP_DROP_REFUSED',
      message: expect.stringContaining('shard 2'),
    })
    await ask(2, `SELECT pgshard.forget('\\x${'cd'.repeat(32)}')`)
    await setup([], { ...drop, dryRun: true })
    expect(await ask(0, `SELECT to_regnamespace('pgshard') IS NULL AS gone`)).toEqual([
      { gone: false },
    ])
    await setup([], drop)
    expect(await everywhere(`SELECT to_regnamespace('pgshard') IS NULL AS gone`)).toEqual(
      names.map(() => [{ gone: true }]),
    )
    await ask(1, 'INSERT INTO t SELECT generate_series(1, 20)')
    await setup([], drop)
  })

  it('stops at what others built on it', async () => {
    await setup()
    await ask(0, 'CREATE VIEW mine AS SELECT id FROM pgshard.shard')
    await expect(setup([], { database: 'shop', drop: true })).rejects.toMatchObject({
      sqlstate: '2BP01',
    })
    expect(await ask(0, 'SELECT id FROM mine ORDER BY 1 LIMIT 1')).toEqual([{ id: 1 }])
  })
})
