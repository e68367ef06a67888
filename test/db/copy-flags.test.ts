/**
 * Every flag of `copy-shard` that says what data means or how it is loaded: the same file in one COPY of one PostgreSQL gives the
 * same rows, and what cannot go together is refused before anything is read.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Clock, systemClock } from '../../src/base/clock.js'
import { copyShard } from '../../src/load/copy-shard.js'
import type { CopyShardFlags } from '../../src/load/request/copy-shard-flags.js'
import { connectPg } from '../../src/pg/connect.js'
import { openCopyIn } from '../../src/pg/copy-in.js'
import { makeKeyPlacer } from '../../src/sharding/key-placer.js'
import { usePostgres } from '../support/use-postgres.js'

const SHARDS = 2
const plain: CopyShardFlags = {
  ...{ table: 't', header: false, compression: 'auto', jobs: 1, 'dry-run': false, verify: false },
  ...{ resume: false, 'single-transaction': false, 'on-error': 'stop', 'sharding-key': 'id' },
}
type Flags = Partial<CopyShardFlags>

describe('flags of copy-shard', () => {
  const postgres = usePostgres({ count: 1 })
  const directory = mkdtempSync(join(tmpdir(), 'pgshard-flags-'))
  const path = (name: string) => join(directory, name)
  const databases: string[] = []
  const urls = () => databases.map((database) => postgres().url(0, database))
  const notes: string[] = []

  const on = async (database: string | undefined, sql: string) => {
    const client = await postgres().connect(0, database)
    try {
      return (await client.query<Record<string, string>>(sql)).rows
    } finally {
      await client.end()
    }
  }
  const everywhere = (sql: string) => Promise.all(databases.map((one) => on(one, sql)))
  const rowsSql = 'select id::text, a, b, n::text from t'
  const sorted = (rows: readonly object[]) => rows.map((row) => JSON.stringify(row)).sort()
  const loaded = async () => sorted((await everywhere(rowsSql)).flat())

  const load = (files: string[], flags: Flags, clock: Clock = systemClock) =>
    copyShard(
      files,
      { ...plain, ...flags },
      { urls: urls() },
      {
        clock,
        signal: new AbortController().signal,
        onStart: () => undefined,
        onProgress: () => undefined,
        note: (line) => notes.push(line),
      },
    )

  /** What one server makes of the same bytes. */
  async function expected(bytes: Buffer, options: string, columns = ''): Promise<string[]> {
    const client = await connectPg(postgres().url(0))
    try {
      await client.query('truncate t')
      const copy = openCopyIn(client, `copy t ${columns} from stdin (${options})`)
      await copy.write(bytes)
      await copy.finish()
      return sorted((await client.query(rowsSql)).rows)
    } finally {
      await client.end()
    }
  }

  const write = (name: string, data: string | Buffer) => {
    writeFileSync(path(name), data)
    return path(name)
  }

  beforeAll(async () => {
    const table = 'create table t (id bigint, a text, b text, n int)'
    await postgres().query(table)
    for (let shard = 0; shard < SHARDS; shard++) databases.push(await postgres().createDatabase())
    await everywhere(table)
  })
  beforeEach(async () => {
    await everywhere('truncate t')
    notes.length = 0
  })
  afterAll(() => rmSync(directory, { recursive: true, force: true }))

  it.each<[string, Flags]>([
    ['the key', {}],
    ['a column that a server reads', { 'sharding-key': 'a' }],
  ])('a header that nobody announced is hinted at: %s', async (_, flags) => {
    const hint = 'the first line names the columns: give --header'
    const named = write('named.csv', 'id,a,b,n\n1,x,y,3\n')
    await expect(load([named], flags)).rejects.toMatchObject({ sqlstate: '22P02', hint })
    // another word there is a mistake of the data
    const wrong = write('wrong.csv', 'ids,a,b,n\n1,x,y,3\n')
    await expect(load([wrong], flags)).rejects.not.toMatchObject({ hint })
  })

  const dialects: [string, string | Buffer, Flags, string, string?][] = [
    ['--delimiter', '1;x,y;"a;b";3\n2;;"";4\n', { delimiter: ';' }, "format csv, delimiter ';'"],
    [
      '--delimiter \\t',
      '1\tx,y\t"a\tb"\t3\n',
      { delimiter: '\\t' },
      "format csv, delimiter E'\\t'",
    ],
    ['--quote', `1,'x,''y',"b",3\n`, { quote: "'" }, "format csv, quote ''''"],
    ['--escape', '1,"x\\"y\\\\",b,3\n', { escape: '\\' }, "format csv, escape '\\'"],
    ['--null', '1,NIL,"NIL",3\n2,,x,NIL\n', { null: 'NIL' }, "format csv, null 'NIL'"],
    ['--force-null', '1,"","",3\n', { 'force-null': ['a'] }, 'format csv, force_null (a)'],
    [
      ...(['--force-null of the key', '"",x,y,3\n', { 'force-null': ['id'] }] as const),
      'format csv, force_null (id)',
    ],
    ['--force-not-null', '1,,,3\n', { 'force-not-null': ['a'] }, 'format csv, force_not_null (a)'],
    [
      ...([
        '--encoding',
        Buffer.from('1,\xe9t\xe9,b,3\n', 'latin1'),
        { encoding: 'LATIN1' },
      ] as const),
      "format csv, encoding 'LATIN1'",
    ],
    ['--columns', 'x,1\ny,2\n', { columns: ['b, id'] }, 'format csv', '(b, id)'],
    ['--header', 'b,id\nx,1\n"y\n",2\n', { header: true }, 'format csv, header', '(b, id)'],
    [
      ...(['--header of text', '\ufeffb\tid\nx\t1\n', { format: 'text', header: true }] as const),
      ...(['format text, header', '(b, id)'] as const),
    ],
    ['--format text', '1\tx\\ty\t\\N\t3\n', { format: 'text' }, 'format text'],
    ['--format text --null', '1\tNIL\t\\\\N\t3\n', { format: 'text', null: 'NIL' }, "null 'NIL'"],
  ]

  it.each(dialects)('%s means what COPY means', async (_, data, flags, options, columns) => {
    const bytes = Buffer.from(data)
    const rows = await expected(bytes, options, columns)
    const report = await load([write('data.csv', bytes)], flags)
    expect(await loaded()).toEqual(rows)
    expect(report).toMatchObject({ read: rows.length, written: rows.length, rejected: 0 })
  })

  it('takes the format from the name, unless --format says it', async () => {
    const text = '1\tx,y\t\\N\t3\n'
    await load([write('a.tsv', text)], {})
    expect(await loaded()).toEqual(await expected(Buffer.from(text), 'format text'))
    await expect(load([write('b.csv', text)], {})).rejects.toMatchObject({ sqlstate: '22P02' })
    await expect(load([path('a.tsv')], { format: 'csv' })).rejects.toMatchObject({
      sqlstate: '22P02',
    })
  })

  it('--compression: what is packed is unpacked, or not', async () => {
    const packed = write('p.csv', gzipSync('1,a,b,3\n'))
    await load([packed], {})
    await load([packed], { compression: 'gzip' })
    expect(await loaded()).toHaveLength(2)
    await expect(load([packed], { compression: 'none' })).rejects.toThrow()
    await expect(load([packed], { compression: 'zstd' })).rejects.toThrow()
    const zstd = Buffer.from('28b52ffd0458410000312c610a322c620ac4149a93', 'hex')
    await load([write('z.csv', zstd)], { compression: 'zstd', columns: ['id,a'] })
    expect(await loaded()).toHaveLength(4)
  })

  it('loads several files and patterns, each once', async () => {
    for (const n of [1, 2, 3]) write(`g${n}.csv`, `${n},a,b,${n}\n`)
    await load([path('g[.csv').replace('g[', 'g?'), write('h.csv', '9,a,b,9\n')], {})
    expect(await loaded()).toHaveLength(4)
    await expect(load([path('g1.csv'), path('g?.csv')], {})).rejects.toThrow('is named twice')
    await expect(load(['-', '-'], {})).rejects.toThrow('is named twice')
    await expect(load([path('g1.csv'), write('g1.tsv', '')], {})).rejects.toThrow(
      'tell of csv and text',
    )
    expect(await loaded()).toHaveLength(4)
  })

  const shardOf = (key: string, bucketMap: readonly number[]) =>
    makeKeyPlacer({
      column: 'id',
      keyType: 'bigint',
      placement: { kind: 'hash', hasher: 'postgres', buckets: bucketMap.length, bucketMap },
    }).ofString(key)

  it('--map and --key-type place rows', async () => {
    const keys = Array.from({ length: 60 }, (_, key) => String(key))
    const file = write('keys.csv', keys.map((key) => `${key},a,b,1\n`).join(''))
    const bucketMap = [1, 0, 1, 1, 0]
    await load([file], { map: write('map.json', JSON.stringify(bucketMap)) })
    const placed = await everywhere('select id::text from t')
    for (const [shard, rows] of placed.entries())
      expect(rows.map(({ id }) => id).sort()).toEqual(
        keys.filter((key) => shardOf(key, bucketMap) === shard).sort(),
      )
    await expect(load([file], { map: write('bad.json', '[0,2]') })).rejects.toThrow('JSON array')
    await expect(load([file], { 'key-type': 'uuid' })).rejects.toMatchObject({ sqlstate: '42804' })
  })

  it('--max-rate keeps the mean', async () => {
    const file = write('rate.csv', '1,aaaaaaaaaaaaaaaaaaaa,b,1\n'.repeat(40_000))
    let nowMs = 0
    const clock: Clock = {
      ...systemClock,
      after: (delay, run) => systemClock.after(delay, run),
      nowMs: () => nowMs,
      monotonicMs: () => nowMs,
      sleep: async (delay) => {
        nowMs += delay
      },
    }
    const { read } = await load([file], { 'max-rate': '100kB', 'dry-run': true }, clock)
    expect(read).toBe(40_000)
    expect(nowMs).toBeGreaterThan(9000)
    const before = nowMs
    await load([file], { 'max-rate': '200kB' }, clock)
    expect(nowMs - before).toBeGreaterThan(4500)
  })

  it('--batch-size and --jobs: how many transactions there are', async () => {
    const file = write('many.csv', '1,aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa,b,1\n'.repeat(80_000))
    const transactions = async () =>
      (await everywhere('select count(distinct xmin::text)::int as n from t')).reduce(
        (sum, [row]) => sum + Number(row?.['n']),
        0,
      )
    await load([file], {})
    expect(await transactions()).toBe(1)
    await everywhere('truncate t')
    await load([file], { 'batch-size': '1MB' })
    expect(await transactions()).toBeGreaterThan(2)
    await everywhere('truncate t')
    await load([file], { jobs: 3 })
    expect(await transactions()).toBe(3)
    expect(await loaded()).toHaveLength(80_000)
  })

  it('--dry-run writes nothing and says how even it is', async () => {
    const file = write('dry.csv', '1,a,b,1\n2,a,b,1\n')
    const report = await load([file], { 'dry-run': true })
    expect(report).toMatchObject({ read: 2, written: 0, isDryRun: true })
    expect(await loaded()).toEqual([])
  })

  it('--verify finds rows that were not written by the load', async () => {
    const file = write('verify.csv', '1,a,b,1\n2,a,b,1\n3,a,b,1\n')
    await load([file], { verify: true })
    await everywhere(
      `create function more() returns trigger language plpgsql as $$ begin
         if pg_trigger_depth() = 1 then insert into t values (0, 'more', 'b', 1); end if; return null; end $$;
       create trigger more after insert on t for each row execute function more()`,
    )
    try {
      await expect(load([file], { verify: true })).rejects.toMatchObject({
        code: 'COPY_VERIFY_FAILED',
        exitCode: 7,
      })
    } finally {
      await everywhere('drop function more cascade')
    }
  })

  it('--reject-file tells how many fields a row has', async () => {
    const file = write('rejects-in.csv', '1,a,b,1\n2,"a,b",c\n3,a,b,1,5\n4,a,b,x\n')
    const rejects = { 'on-error': 'reject', 'reject-file': path('rejects.csv') }
    const report = await load([file], rejects)
    expect(report).toMatchObject({ read: 4, written: 1, rejected: 3, inRejectFile: 3 })
    const reasons = readFileSync(path('rejects.csv.reasons'), 'utf8').trimEnd().split('\n')
    expect(reasons.map((line) => (JSON.parse(line) as { fields: number }).fields)).toEqual([
      3, 5, 4,
    ])
    await expect(load([path('rejects.csv')], rejects)).rejects.toThrow('would overwrite')
    expect(readFileSync(path('rejects.csv'), 'utf8')).toContain('3,a,b,1,5')
  })

  it('finds another delimiter in a header that names no columns', async () => {
    const file = write('semicolons.csv', 'id;b\n1;x\n')
    await expect(load([file], { header: true })).rejects.toMatchObject({
      code: 'COPY_COLUMN_MISSING',
      hint: expect.stringContaining("--delimiter ';'") as string,
    })
    await load([file], { header: true, delimiter: ';' })
    expect(await loaded()).toHaveLength(1)
  })

  const senseless: [Flags, string][] = [
    [{ 'reject-file': 'r.csv' }, '--on-error reject'],
    [{ 'on-error': 'reject' }, '--reject-file'],
    [{ 'on-error': 'reject', 'reject-file': 'r.csv', 'dry-run': true }, '--dry-run'],
    [
      { 'on-error': 'reject', 'reject-file': 'r.csv', 'single-transaction': true },
      '--single-transaction',
    ],
    [{ jobs: 2, 'dry-run': true }, 'one job'],
    [{ jobs: 2, 'single-transaction': true }, 'one job'],
    [{ format: 'text', quote: "'" }, 'quote available only in CSV'],
    [{ format: 'text', 'force-null': ['a'] }, 'force null available only in CSV'],
    [{ format: 'binary', header: true }, 'HEADER in BINARY'],
    [{ format: 'binary', null: 'x' }, 'NULL in BINARY'],
    [{ format: 'binary', delimiter: ';' }, 'DELIMITER in BINARY'],
    [{ delimiter: ';', quote: ';' }, 'must be different'],
    [{ encoding: 'SJIS' }, 'SJIS'],
    [{ 'batch-size': 'much' }, '--batch-size'],
    [{ 'max-rate': '0' }, '--max-rate'],
    [{ format: 'pg_dump' }, '--table is not for'],
    [{ format: 'pg_dump', table: undefined, jobs: 2 }, '--jobs is not for'],
    [{ 'sharding-key': undefined }, '--sharding-key'],
    [{ 'sharding-key': 'nope' }, 'nope'],
    [{ table: 'nope' }, 'nope'],
    [{ 'force-null': ['nope'] }, 'nope'],
  ]

  it.each(senseless)('refuses %j', async (flags, word) => {
    const file = write('sense.csv', '1,a,b,1\n')
    await expect(load([file], flags)).rejects.toThrow(word)
    expect(await loaded()).toEqual([])
  })
})
