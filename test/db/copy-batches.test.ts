/**
 * Files of some size through `copy-shard` in batches, one row of each unlike the others, against one PostgreSQL that reads the
 * same bytes: the same rows, or the same SQLSTATE on the same line. Most of the rows are taken in bulk, the odd one among them.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type pg from 'pg'
import { from as copyFrom } from 'pg-copy-streams'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../src/base/clock.js'
import { makeCopyOptions } from '../../src/copy/copy-options.js'
import { contextLine } from '../../src/copy/line-map.js'
import { isEngineError } from '../../src/errors/engine-error.js'
import { loadBatches } from '../../src/load/batches/load-batches.js'
import { listInputs } from '../../src/load/input/open-input.js'
import { placeByColumn } from '../../src/load/request/load-options.js'
import { usePostgres } from '../support/use-postgres.js'

const SHARDS = 3
/** More than a megabyte, less than two batches of the first kind. */
const ROWS = 24_000
const ODD = 20_000
const columns =
  'id bigint unique, a smallint check (a <> 77), b integer, c text, d varchar(12), e char(10)'

type Format = 'csv' | 'text'
interface Case {
  readonly title: string
  readonly formats: readonly Format[]
  /** Fields of the row that differs; absent: none does. */
  readonly odd?: (format: Format) => Buffer | string
  /** SQL on each shard and on the one server, or on the last shard alone. */
  readonly sql?: string
  readonly lastShardSql?: string
  readonly null?: string
  readonly batchBytes?: number
}

const both = ['csv', 'text'] as const
const line = (format: Format, ...fields: string[]) =>
  `${fields.join(format === 'csv' ? ',' : '\t')}\n`
const oddRow = (at: number, value: string) => (format: Format) => {
  const fields = ['5000000', '5', '6', 'text', 'seven', 'eight']
  fields[at] = value
  return line(format, ...fields)
}
const row = (format: Format, n: number) =>
  line(
    format,
    String(n * 1009 - 9_000_000_000),
    String((n % 65_536) - 32_768 === 77 ? 0 : (n % 65_536) - 32_768),
    String(((n * 88_883) % 4_294_967_296) - 2_147_483_648),
    n % 5 === 0 ? '' : `é${'x'.repeat(n % 40)}`,
    'y'.repeat(n % 13),
    `${n % 1000} `,
  )

const cases: Case[] = [
  { title: 'plain rows', formats: both },
  { title: 'plain rows in many batches', formats: both, batchBytes: 200_000 },
  { title: 'NULLs in csv', formats: ['csv'], odd: () => '5000000,,,,,\n' },
  { title: 'a NULL key', formats: ['csv'], odd: oddRow(0, '') },
  { title: 'a NULL in text', formats: ['text'], odd: oddRow(2, '\\N') },
  { title: 'quotes', formats: ['csv'], odd: oddRow(3, '"a,""b\nc"') },
  { title: 'escapes', formats: ['text'], odd: oddRow(3, 'a\\tb\\x41\\101') },
  { title: 'zeros in front', formats: both, odd: oddRow(1, '-0007') },
  { title: 'blanks around a number', formats: both, odd: oddRow(2, ' 5 ') },
  { title: 'a plus', formats: both, odd: oddRow(1, '+5') },
  { title: 'nineteen digits', formats: both, odd: oddRow(0, '9223372036854775807') },
  { title: 'an empty number', formats: ['text'], odd: oddRow(2, '') },
  { title: 'a smallint too large', formats: both, odd: oddRow(1, '32768') },
  { title: 'an integer too small', formats: both, odd: oddRow(2, '-2147483649') },
  { title: 'a word for a number', formats: both, odd: oddRow(2, 'x') },
  { title: 'too long a varchar', formats: both, odd: oddRow(4, 'x'.repeat(13)) },
  {
    title: 'a varchar too long by blanks',
    formats: both,
    odd: oddRow(4, `x${' '.repeat(20)}`),
  },
  { title: 'too long a char', formats: both, odd: oddRow(5, 'x'.repeat(11)) },
  { title: 'a check', formats: both, odd: oddRow(1, '77') },
  { title: 'a key twice', formats: both, odd: (format) => row(format, 5) },
  {
    title: 'a column too few',
    formats: both,
    odd: (format) => line(format, '1', '2', '3', '4', '5'),
  },
  { title: 'a column too many', formats: both, odd: (format) => line(format, ...'1234567') },
  { title: 'an empty line', formats: both, odd: () => '\n' },
  { title: 'a carriage return', formats: both, odd: oddRow(3, 'a\rb') },
  { title: 'an end of data', formats: ['text'], odd: () => '\\.\n' },
  {
    title: 'bytes that are no character',
    formats: both,
    odd: (format) => Buffer.from(oddRow(3, 'a\xffb')(format), 'latin1'),
  },
  { title: 'a zero byte', formats: both, odd: oddRow(3, 'a\0b') },
  { title: 'another mark of NULL', formats: both, null: 'x' },
  {
    title: 'a shard whose column has another type of four bytes',
    formats: both,
    lastShardSql: 'alter table t alter b type real',
  },
  {
    title: 'a domain',
    formats: both,
    sql: 'drop domain if exists small; create domain small as int check (value <> 6); alter table t alter b type small',
    odd: oddRow(2, '6'),
  },
  {
    title: 'a trigger that changes rows',
    formats: both,
    sql: `create or replace function up() returns trigger language plpgsql as 'begin new.c = upper(new.c); return new; end'; create trigger up before insert on t for each row execute function up()`,
  },
  {
    title: 'a trigger with an error of its own',
    formats: both,
    sql: `create or replace function no() returns trigger language plpgsql as 'begin if new.b = 6 then raise exception ''no'' using errcode = ''XX123''; end if; return new; end'; create trigger no before insert on t for each row execute function no()`,
    odd: oddRow(2, '6'),
  },
]

/** Bytes that are no character are found where a server reads, which may be another line. */
const placed = (outcome: { code?: string | undefined }) =>
  outcome.code === '22021' ? outcome.code : outcome

describe('D136, D139, D140: a file in batches', () => {
  const postgres = usePostgres()
  const directory = mkdtempSync(join(tmpdir(), 'pgshard-batches-'))
  const databases: string[] = []
  const shards: pg.Client[] = []
  let whole: pg.Client

  beforeAll(async () => {
    whole = await postgres().connect()
    for (let shard = 0; shard < SHARDS; shard++) {
      databases.push(await postgres().createDatabase())
      shards.push(await postgres().connect(0, databases[shard]))
    }
  })
  beforeEach(async () => {
    for (const one of [whole, ...shards])
      await one.query(
        `drop schema if exists pgshard cascade; drop table if exists t; create table t (${columns})`,
      )
  })
  afterAll(() => rmSync(directory, { recursive: true, force: true }))

  const rowsOf = async (client: pg.Client) =>
    (await client.query<{ r: string }>('select t::text as r from t')).rows.map(({ r }) => r)

  function copyWhole(sql: string, data: Buffer) {
    return new Promise<object>((resolve) => {
      const stream = whole.query(copyFrom(sql))
      stream.on('error', ({ code, where }: Error & { code?: string; where?: string }) =>
        resolve({ code, line: contextLine(where) }),
      )
      stream.on('finish', () => resolve({ rows: stream.rowCount }))
      stream.end(data)
    })
  }

  async function load(format: Format, path: string, one: Case) {
    const options = makeCopyOptions({
      format,
      ...(one.null === undefined ? {} : { null: one.null }),
    })
    let seen = 0
    let bytes = 0
    const request = {
      inputs: await listInputs([path]),
      compression: 'none' as const,
      urls: databases.map((database) => postgres().url(0, database)),
      table: 't',
      options,
      jobs: 1,
      isDryRun: false,
      verifies: false,
      placementOf: (table: Parameters<typeof placeByColumn>[1]) =>
        placeByColumn({ column: 'id' }, table, SHARDS),
      isResume: false,
      batchBytes: one.batchBytes ?? 1e9,
      usesEveryShard: true,
    }
    const watch = {
      clock: systemClock,
      signal: new AbortController().signal,
      onProgress: (moreBytes: number, moreRows: number) => {
        bytes += moreBytes
        seen += moreRows
      },
      note: () => undefined,
    }
    try {
      const { written } = await loadBatches(request, watch)
      return { outcome: { rows: written }, seen, bytes }
    } catch (error) {
      if (!isEngineError(error)) throw error
      const line = contextLine(error.where)
      return { outcome: { code: error.sqlstate, line }, seen, bytes }
    }
  }

  it.each(cases.flatMap((one) => one.formats.map((format) => ({ ...one, format }))))(
    '$format, $title: as one server takes them',
    async ({ format, ...one }) => {
      for (const client of [whole, ...shards]) if (one.sql) await client.query(one.sql)
      if (one.lastShardSql) await shards.at(-1)!.query(one.lastShardSql)
      const all = Array.from({ length: ROWS }, (_, n) => Buffer.from(row(format, n)))
      if (one.odd) all.splice(ODD, 0, Buffer.from(one.odd(format)))
      const data = Buffer.concat(all)
      expect(data.length).toBeGreaterThan(1 << 20)
      const path = join(directory, 'data')
      writeFileSync(path, data)
      const mark = one.null === undefined ? '' : `, null '${one.null}'`
      const wanted = await copyWhole(`copy t from stdin (format ${format}${mark})`, data)
      const found = await load(format, path, one)
      expect(placed(found.outcome)).toEqual(placed(wanted))
      const wholeRows = await rowsOf(whole)
      const rows = (await Promise.all(shards.map(rowsOf))).flat()
      if (one.lastShardSql === undefined) expect(rows.sort()).toEqual(wholeRows.sort())
      else expect(rows.length).toBe(wholeRows.length)
      if (!('rows' in wanted)) return
      expect({ seen: found.seen, bytes: found.bytes }).toEqual({
        seen: wholeRows.length,
        bytes: data.length,
      })
    },
    60_000,
  )
})
