/**
 * Rows and tables that have no place of their own: one behaviour each (docs/copy.md, "Rows without a place"), the same in COPY and
 * INSERT through serve, in copy-shard, and in what reshard copies and follows.
 */
import { mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type pg from 'pg'
import { from as copyFrom } from 'pg-copy-streams'
import { afterAll, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest'
import { adminQuery } from '../../src/pg/admin-query.js'
import { COLUMN_NULL, COLUMN_TEXT } from '../../src/replication/change.js'
import { LSN_ZERO } from '../../src/replication/lsn.js'
import { copyParts, type PartReader } from '../../src/reshard/copy/copy-parts.js'
import { ChangeRouter } from '../../src/reshard/follow/route-change.js'
import { ensureTargetTables } from '../../src/reshard/journal/journal.js'
import type { MovePlan, MoveTable } from '../../src/reshard/move-table.js'
import { makeKeyPlacer } from '../../src/sharding/key-placer.js'
import { runCli } from '../support/run-cli.js'
import { type Served, startServe, writeServeConfig } from '../support/serve.js'
import { usePostgres } from '../support/use-postgres.js'

const SHARDS = 3
const tables = ['hashed', 'listed', 'fixed', 'drawn', 'country', 'solo.single']

const sharding = `
[[sharded_tables]]
database = "app"
name = "hashed"
column = "id"
[[sharded_tables]]
database = "app"
name = "drawn"
column = "id"
${['listed', 'fixed']
  .map(
    (name) =>
      `[[sharded_tables]]\ndatabase = "app"\nname = "${name}"\ncolumn = "id"\nmapping = [{ values = [1], shard = 0 }, { values = [2], shard = 1 }]\n`,
  )
  .join('')}
[[omnisharded_tables]]
database = "app"
tables = ["country"]
[[sharded_schemas]]
database = "app"
name = "solo"
shard = 1
`
const defaults: Record<string, string> = { fixed: ' default 2', drawn: ' default 1 + 1' }

/** Of `COPY … FROM STDIN (FORMAT csv)`, VALUES, and so on: the table with its columns, and one row. */
interface Case {
  readonly title: string
  readonly table: string
  /** Absent: no list. */
  readonly columns?: readonly string[]
  readonly row: readonly (string | null)[]
  /** What is stored, when it is not the row. */
  readonly stored?: readonly (string | null)[]
  readonly wanted: { readonly shard: number | 'all' } | { readonly sqlstate: string }
  /** Ways that have no such case: the copy of reshard takes tables from the catalogue, and all of their columns. */
  readonly without?: readonly string[]
}

const cases: Case[] = [
  { title: 'NULL in a hash', table: 'hashed', row: [null, 'a'], wanted: { shard: 0 } },
  { title: 'NULL in a list', table: 'listed', row: [null, 'a'], wanted: { sqlstate: '23514' } },
  { title: 'unmapped in a list', table: 'listed', row: ['9', 'a'], wanted: { sqlstate: '23514' } },
  { title: 'no column list', table: 'listed', row: ['2', 'a'], wanted: { shard: 1 } },
  {
    ...{ title: 'a key left out that has no default', table: 'hashed', columns: ['v'], row: ['a'] },
    ...{ stored: [null, 'a'], wanted: { shard: 0 }, without: ['reshard'] },
  },
  {
    ...{ title: 'a key left out that has a constant default', table: 'fixed', columns: ['v'] },
    ...{ row: ['a'], stored: ['2', 'a'], wanted: { shard: 1 }, without: ['reshard'] },
  },
  {
    ...{ title: 'a key left out that has another default', table: 'drawn', columns: ['v'] },
    ...{ row: ['a'], wanted: { sqlstate: '0A000' }, without: ['INSERT', 'reshard'] },
  },
  {
    ...{ title: 'a key left out that the proxy draws from its default', table: 'drawn' },
    ...{ columns: ['v'], row: ['a'], stored: ['2', 'a'], wanted: { shard: 0 } },
    without: ['COPY', 'copy-shard', 'reshard'],
  },
  {
    title: 'a table that is not sharded',
    table: 'solo.single',
    row: ['7', 'a'],
    wanted: { shard: 1 },
  },
  {
    ...{ title: 'a reference table', table: 'country', row: ['7', 'a'] },
    ...{ wanted: { shard: 'all' }, without: ['INSERT'] },
  },
  {
    ...{ title: 'a table that does not exist', table: 'nowhere', row: ['1', 'a'] },
    ...{ wanted: { sqlstate: '42P01' }, without: ['reshard'] },
  },
]

describe('D140: rows and tables without a place', () => {
  const postgres = usePostgres({ version: 15 })
  const databases: string[] = []
  const shards: pg.Client[] = []
  let source: pg.Client
  let served: Served
  let client: pg.Client
  let file = ''

  beforeAll(async () => {
    const { host, port } = postgres().servers[0]!
    const schema = `create schema solo; ${tables
      .map((name) => `create table ${name} (id bigint${defaults[name] ?? ''}, v text);`)
      .join('\n')}`
    source = await postgres().connect()
    await source.query(schema)
    for (let shard = 0; shard < SHARDS; shard++) {
      databases.push(await postgres().createDatabase())
      shards.push(await postgres().connect(0, databases[shard]))
      await shards[shard]!.query(schema)
    }
    const addresses = databases.map((database) => ({ host, port, database }))
    const setup = { shards: addresses, tables: sharding }
    const { configPath, usersPath } = writeServeConfig(setup)
    const made = await runCli(['setup', '-c', configPath, '-u', usersPath])
    expect(made.code, made.stderr).toBe(0)
    served = await startServe(setup)
    client = await served.connect()
    file = join(mkdtempSync(join(inject('runDirectory'), 'place-')), 'row.csv')
  })
  afterAll(() => client?.end())
  beforeEach(async () => {
    for (const one of [source, ...shards]) await one.query(`truncate ${tables.join(', ')}`)
  })

  const list = (one: Case) => (one.columns === undefined ? '' : ` (${one.columns.join(', ')})`)
  const csv = (one: Case) => `${one.row.map((value) => value ?? '').join(',')}\n`

  /** SQLSTATE of what a way throws, or nothing. */
  const stateOf = (work: Promise<unknown>): Promise<string | undefined> =>
    work.then(
      () => undefined,
      (error: { code: string }) => error.code,
    )

  const ways: Record<string, (one: Case) => Promise<string | undefined>> = {
    COPY: (one) =>
      stateOf(
        new Promise((resolve, reject) => {
          const sql = `copy ${one.table}${list(one)} from stdin (format csv)`
          const stream = client.query(copyFrom(sql))
          stream.on('error', reject)
          stream.on('finish', resolve)
          stream.end(csv(one))
        }),
      ),
    INSERT: (one) => {
      const values = one.row.map((_, index) => `$${index + 1}`).join(', ')
      return stateOf(
        client.query(`insert into ${one.table}${list(one)} values (${values})`, [...one.row]),
      )
    },
    'copy-shard': async (one) => {
      writeFileSync(file, csv(one))
      const { code, stdout, stderr } = await runCli([
        ...['copy-shard', file, '--config', served.configPath, '--users', served.usersPath],
        ...['--database', 'app', '--table', one.table, '--json', '--quiet'],
        ...(one.columns === undefined ? [] : ['--columns', one.columns.join(',')]),
      ])
      if (code === 0) return undefined
      expect(code, stderr).toBeGreaterThan(2)
      return (JSON.parse(stdout) as { error: { sqlstate: string } }).error.sqlstate
    },
    reshard: async (one) => {
      await source.query(`insert into ${one.table} values ($1, $2)`, [...one.row])
      return await moveRows(one.table)
    },
    follow: followRow,
  }

  /** The table as a move from the one source knows it. */
  function planOf(name: string): MovePlan {
    const placement =
      name === 'hashed'
        ? ({ kind: 'hash', hasher: 'postgres', buckets: SHARDS, bucketMap: [0, 1, 2] } as const)
        : ({
            kind: 'list',
            entries: [
              { values: ['1'], shard: 0 },
              { values: ['2'], shard: 1 },
            ],
          } as const)
    const placer = makeKeyPlacer({ column: 'id', keyType: 'bigint', placement })
    const others: Record<string, object> = {
      'solo.single': { kind: 'unsharded', shard: 1 },
      country: { kind: 'reference' },
    }
    const to = others[name] ?? { kind: 'sharded', keyColumn: 'id', keyIndex: 0, placer, family: '' }
    const table = {
      ...{
        schema: 'public',
        name,
        sqlName: name,
        targetName: name,
        identity: [],
        sourceShards: [0],
      },
      ...{ columns: [{ name: 'id' }, { name: 'v' }], from: to, to },
      ...{ isBinarySafe: true, bytes: 0, rowEstimate: 0 },
    } as unknown as MoveTable
    return {
      ...{ tables: [table], sourceCount: 1, targetCount: SHARDS, isBinarySafe: true },
      ...{ placeCount: SHARDS, isStaged: false },
      partitioned: new Set<string>(),
    }
  }

  /** A change that is followed: routed, then stored where it shall be. */
  async function followRow({ row, table: name }: Case): Promise<string | undefined> {
    const texts = row.map((value) => Buffer.from(value ?? ''))
    const ends = texts.map((_, index) => Buffer.concat(texts.slice(0, index + 1)).length)
    const columns = [
      { name: 'id', typeOid: 20 },
      { name: 'v', typeOid: 25 },
    ].map((column) => ({ ...column, isKey: false, typeModifier: -1 }))
    const after = {
      bytes: Buffer.concat(texts),
      kinds: Uint8Array.from(row, (value) => (value === null ? COLUMN_NULL : COLUMN_TEXT)),
      starts: Int32Array.from(ends, (end, index) => end - (texts[index] as Buffer).length),
      ends: Int32Array.from(ends),
    }
    const relation = { kind: 'relation', oid: 1, schema: 'public', name, identity: 'd' } as const
    const insert = { kind: 'insert', relation: { ...relation, columns }, after } as const
    try {
      const routed = new ChangeRouter(planOf(name), 'source').route(insert)
      if (routed.kind !== 'ops') throw new Error('an insert has no old row')
      for (const { shard } of routed.ops)
        await shards[shard]!.query(`insert into ${name} values ($1, $2)`, [...row])
      return undefined
    } catch (error) {
      return ((error as Error).cause as { sqlstate: string }).sqlstate
    }
  }

  /** The copy of reshard, from the one source. */
  async function moveRows(name: string): Promise<string | undefined> {
    const plan = planOf(name)
    const [table] = plan.tables as [MoveTable]
    const { host, port } = postgres().servers[0]!
    const { user, database } = postgres()
    const target = (one: string) => ({ host, port, user, database: one })
    for (const shard of shards) {
      await ensureTargetTables(shard)
      await shard.query('truncate pgshard.reshard_copied')
    }
    const enter: PartReader['snapshots']['enter'] = async (client) => {
      await adminQuery(client, 'begin isolation level repeatable read')
      return { snapshot: 'one', watermark: LSN_ZERO }
    }
    try {
      await copyParts({
        run: 'r',
        plan,
        parts: [{ table, source: 0, part: 0, low: null, high: null }],
        present: databases.map(() => new Set<string>()),
        target: { name: 'b', shards: databases.map(target), sharding: undefined } as never,
        readers: [
          [{ target: target(database), snapshots: { prepare: async () => undefined, enter } }],
        ],
        jobs: 1,
        binary: true,
        replicaRole: false,
        onPart: () => undefined,
      })
      return undefined
    } catch (error) {
      return ((error as Error).cause as { sqlstate: string }).sqlstate
    }
  }

  it.each(
    cases.flatMap((one) =>
      Object.keys(ways)
        .filter((way) => one.without?.includes(way === 'follow' ? 'reshard' : way) !== true)
        .map((way) => [one.title, way, one] as const),
    ),
  )('%s: %s', async (_, way, one) => {
    const state = await ways[way]!(one)
    if ('sqlstate' in one.wanted) expect(state).toBe(one.wanted.sqlstate)
    else expect(state).toBeUndefined()
    const home = 'shard' in one.wanted ? one.wanted.shard : -1
    const stored = one.stored ?? one.row
    for (const [shard, on] of shards.entries()) {
      for (const table of tables) {
        const { rows } = await on.query({ text: `select id, v from ${table}`, rowMode: 'array' })
        const isHome = (home === 'all' || shard === home) && table === one.table
        expect(rows).toEqual(isHome ? [stored] : [])
      }
    }
  })
})
