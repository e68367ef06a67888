/**
 * Keys of every type as people write them, placed by `copy-shard`: PostgreSQL's own partitions by hash are the oracle. What a key
 * means must not depend on a server's settings; what cannot be placed is refused by name, never guessed.
 */
import { Readable } from 'node:stream'
import type pg from 'pg'
import { from as copyFrom } from 'pg-copy-streams'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { systemClock } from '../../src/base/clock.js'
import { makeCopyOptions } from '../../src/copy/copy-options.js'
import { isEngineError } from '../../src/errors/engine-error.js'
import { loadBatches } from '../../src/load/batches/load-batches.js'
import { placeByColumn } from '../../src/load/request/load-options.js'
import { usePostgres } from '../support/use-postgres.js'

const SHARDS = 4

/** By type: keys that servers read in one way only. */
const placed: Readonly<Record<string, readonly string[]>> = {
  bigint: ['1', ' 2', '3 ', '+4', '-5', '007', '9223372036854775807', '-9223372036854775808', ''],
  integer: ['1', ' 2 ', '+4', '\t7', '-2147483648'],
  smallint: ['1', '-32768', ' 5'],
  text: ['a', '', '"\\x41"', 'é', ' a ', 'A', '"a""b"', '"a\nb"'],
  'varchar(3)': ['abc', 'abc   ', 'é'],
  'char(5)': ['a', 'a    ', 'abcde ', 'ab\tc'],
  uuid: [
    'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11',
    '{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12}',
    'A0EEBC999C0B4EF8BB6D6BB9BD380A13',
    'a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a14',
  ],
  numeric: ['1', '1.0', '1e2', '100', 'NaN', 'Infinity', '-0', '0.1'],
  'numeric(5,2)': ['1', '1.001', '1.004'],
  date: ['2020-01-02', '2020-1-2', '20200103', 'infinity', 'epoch', '0044-03-15 BC'],
  timestamp: ['2020-01-02 03:04:05', '2020-01-02T03:04:05.123456', '2020-01-02', 'infinity'],
  timestamptz: ['2020-01-02 03:04:05+00', '2020-01-02 04:04:05+01'],
  whole: ['1', '2'],
  words: ['a', 'B'],
}

/** A key and the SQLSTATE of its refusal: PostgreSQL's own, or ours where a setting would decide. */
const refused: readonly (readonly [type: string, key: string, sqlstate: string])[] = [
  ['bigint', '0x1F', '22P02'],
  ['bigint', '1_000', '22P02'],
  ['bigint', '1.0', '22P02'],
  ['bigint', '9223372036854775808', '22003'],
  ['integer', '2147483648', '22003'],
  ['smallint', '32768', '22003'],
  ['varchar(3)', 'abcd', '22001'],
  ['uuid', 'x', '22P02'],
  ['date', '2020-13-01', '22008'],
  ['date', 'Jan 2 2020', '0A000'],
  ['timestamptz', '2020-01-02 03:04:05', '0A000'],
  ['timestamptz', '2020-01-02 03:04:05 Europe/Berlin', '0A000'],
  ['whole', '13', '23514'],
  ...[
    'bytea',
    'boolean',
    'real',
    'double precision',
    'inet',
    'interval',
    'time',
    'oid',
    'name',
  ].map((type) => [type, '1', '42804'] as const),
  ['jsonb', '1', '42804'],
  ['letter', 'a', '42804'],
]

describe('D137, D138: the type of a sharding key', () => {
  const postgres = usePostgres({ version: 15 })
  const databases: string[] = []
  const shards: pg.Client[] = []
  let whole: pg.Client

  beforeAll(async () => {
    whole = await postgres().connect()
    for (let shard = 0; shard < SHARDS; shard++) {
      databases.push(await postgres().createDatabase())
      shards.push(await postgres().connect(0, databases[shard]))
    }
    for (const one of [whole, ...shards])
      await one.query(
        `create domain whole as int check (value <> 13); create domain words as text collate "C"; create type letter as enum ('a', 'b')`,
      )
  })
  afterAll(async () => {
    await Promise.all(shards.map((shard) => shard.query('drop table if exists t')))
  })

  async function load(type: string, data: string) {
    for (const shard of shards)
      await shard.query(`drop table if exists t; create table t (k ${type}, v text)`)
    const request = {
      inputs: [{ name: 'keys', open: () => Readable.from([Buffer.from(data)]) }],
      compression: 'none' as const,
      urls: databases.map((database) => postgres().url(0, database)),
      table: 't',
      options: makeCopyOptions({ format: 'csv' }),
      jobs: 1,
      isDryRun: false,
      verifies: false,
      placementOf: (table: Parameters<typeof placeByColumn>[1]) =>
        placeByColumn({ column: 'k' }, table, SHARDS),
      isResume: false,
      batchBytes: 1e6,
      usesEveryShard: true,
    }
    const signal = new AbortController().signal
    const ignore = () => undefined
    await loadBatches(request, { clock: systemClock, signal, onProgress: ignore, note: ignore })
  }

  /** Where PostgreSQL puts each row, by the partition of its hash. */
  async function partitioned(type: string, data: string) {
    await whole.query(
      `drop table if exists t; create table t (k ${type}, v text) partition by hash (k)`,
    )
    for (let n = 0; n < SHARDS; n++)
      await whole.query(
        `create table t_${n} partition of t for values with (modulus ${SHARDS}, remainder ${n})`,
      )
    const stream = whole.query(copyFrom('copy t from stdin (format csv)'))
    await new Promise<void>((resolve, reject) => {
      stream.on('finish', resolve).on('error', reject)
      stream.end(data)
    })
    const { rows } = await whole.query(
      `select right(tableoid::regclass::text, 1)::int as shard, k::text, v from t order by v`,
    )
    return rows
  }

  it.each(Object.entries(placed))(
    '%s: each row where PostgreSQL partitions it',
    async (type, keys) => {
      const data = keys.map((key, n) => `${key},${n}\n`).join('')
      await load(type, data)
      const found = await Promise.all(
        shards.map(
          async (shard, n) => (await shard.query(`select ${n} as shard, k::text, v from t`)).rows,
        ),
      )
      const byNumber = (a: { v: string }, b: { v: string }) => Number(a.v) - Number(b.v)
      expect(found.flat().sort(byNumber)).toEqual((await partitioned(type, data)).sort(byNumber))
    },
  )

  it.each(refused)('%s: %s is refused with %s', async (type, key, sqlstate) => {
    const error = await load(type, `${key},x\n`).then(
      () => undefined,
      (thrown: unknown) => thrown,
    )
    expect(isEngineError(error) && error.sqlstate).toBe(sqlstate)
    for (const shard of shards) expect((await shard.query('select from t')).rowCount).toBe(0)
  })
})
