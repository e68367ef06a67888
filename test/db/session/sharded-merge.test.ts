/** Merged reads by the frame: what each message of the protocol is answered with, portals, failures, memory. */
import { readFileSync } from 'node:fs'
import type pg from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { expectNothingLeft } from '../../support/leak-check.js'
import { bySize } from '../../support/test-size.js'
import { failure, RawClient, SHARDS, useShardedRig } from './sharded-rig.js'

const ROWS = 300
const BIG_ROWS = bySize(600_000, 3_000_000)
const MAX_GROWTH_KB = 50 * 1024

describe('merged reads', () => {
  const rig = useShardedRig(['default_pool_size = 4', 'cross_shard_gather = "off"'])
  let client: pg.Client
  let raw: RawClient
  let filled = false
  let heard: string[] = []

  beforeEach(async () => {
    client = await rig().served.connect()
    raw = await RawClient.open(rig().served.port)
    if (filled) return
    filled = true
    for (let shard = 0; shard < SHARDS; shard++) {
      const key = rig().key(shard)
      await rig().onShard(
        shard,
        `insert into item select ${key}, n * ${SHARDS} + ${shard}, 'row ' || n from generate_series(0, ${ROWS / SHARDS - 1}) n`,
      )
      await rig().onShard(
        shard,
        `insert into big select ${key}, n * ${SHARDS} + ${shard} from generate_series(0, ${BIG_ROWS / SHARDS - 1}) n`,
      )
    }
  })
  afterEach(async () => {
    await client.end()
    raw.socket.destroy()
    for (let shard = 0; shard < SHARDS; shard++)
      await expectNothingLeft((sql) => rig().onShard(shard, sql))
  })

  const first = (count: number) => Array.from({ length: count }, (_, id) => `D ${id}`)
  const sorted = 'select id from item order by id limit $1 offset $2'

  it('D123, D130: one RowDescription without hidden columns, rows, one tag, one ReadyForQuery', async () => {
    heard = await raw.query('select id from item order by v desc, k, id limit 2').answers()
    expect(heard.map((one) => one[0])).toEqual(['T', 'D', 'D', 'C', 'Z'])
    expect(heard.at(-2)).toBe('C SELECT 2')
    const { fields, rows } = await client.query({
      text: 'select id from item order by v desc, k, id limit 2',
      rowMode: 'array',
    })
    expect(fields.map(({ name }) => name)).toEqual(['id'])
    expect(rows.every((row) => row.length === 1)).toBe(true)
  })

  it('answers every order of messages of the extended protocol that drivers send', async () => {
    heard = await raw.parse('s', sorted).describe('S', 's').sync().answers()
    expect(heard.map((one) => one[0])).toEqual(['1', 't', 'T', 'Z'])
    heard = await raw.bind('s', 3, 0).execute().sync().answers()
    expect(heard).toEqual(['2', ...first(3), 'C SELECT 3', 'Z I'])
    heard = await raw
      .parse('', sorted)
      .describe('S')
      .bind('', 2, 0)
      .describe('P')
      .execute()
      .sync()
      .answers()
    expect(heard.map((one) => one[0])).toEqual(['1', 't', 'T', '2', 'T', 'D', 'D', 'C', 'Z'])
    heard = await raw.bind('s', 5, 1).describe('P').sync().answers()
    expect(heard.map((one) => one[0])).toEqual(['2', 'T', 'Z'])
  })

  it('takes LIMIT and OFFSET as parameters of any statement, prepared once', async () => {
    const named = { name: 'page', text: sorted }
    for (const [limit, offset] of [
      [4, 0],
      [2, 10],
      [null, ROWS - 3],
      [5, null],
      [0, 0],
      [10, ROWS],
    ] as const) {
      const { rows, rowCount } = await client.query({ ...named, values: [limit, offset] })
      const from = offset ?? 0
      const wanted = Math.max(0, Math.min(limit ?? ROWS, ROWS - from))
      expect(rowCount).toBe(wanted)
      expect(rows.map(({ id }) => id)).toEqual(Array.from({ length: wanted }, (_, i) => from + i))
    }
    expect(await failure(client.query({ ...named, values: [-1, 0] }))).toBe(
      '2201W LIMIT must not be negative',
    )
    expect((await client.query({ ...named, values: [1, 0] })).rowCount).toBe(1)
  })

  it('gives a portal its first rows outside of a transaction, where none can follow', async () => {
    heard = await raw
      .parse('', 'select id from item order by id')
      .bind('')
      .execute(4)
      .sync()
      .answers()
    expect(heard).toEqual(['1', '2', ...first(4), 's', 'Z I'])
    heard = await raw.parse('', 'select id from item').bind('').execute(7).sync().answers()
    expect(heard.filter((one) => one.startsWith('D'))).toHaveLength(7)
    expect(heard.slice(-2)).toEqual(['s', 'Z I'])
    heard = await raw
      .parse('', 'select id from item order by id limit 3')
      .bind('')
      .execute(9)
      .sync()
      .answers()
    expect(heard.slice(-2)).toEqual(['C SELECT 3', 'Z I'])
  })

  const rowsOf = (from: number, to: number): string[] => first(to).slice(from)

  it('gives a portal in portions inside a transaction', async () => {
    const sql = 'select id from item order by id'
    heard = await raw.query('begin').answers()
    const open = raw.parse('', sql).bind('').describe('P').execute(4).sync()
    expect(await open.answers()).toEqual(['1', '2', 'T', ...rowsOf(0, 4), 's', 'Z T'])
    expect(await raw.execute(3).sync().answers()).toEqual([...rowsOf(4, 7), 's', 'Z T'])
    // the servers are free for something else
    heard = await raw.parse('other', 'select count(*) from item').sync().answers()
    expect(heard).toEqual(['1', 'Z T'])
    const all = await raw.execute().sync().answers()
    expect(all.at(-2)).toBe(`C SELECT ${ROWS - 7}`)
    expect(all.slice(0, -2)).toEqual(rowsOf(7, ROWS))
    expect(await raw.execute(5).sync().answers()).toEqual(['C SELECT 0', 'Z T'])
    heard = await raw.query('rollback').answers()
    // its portals are gone with the transaction
    expect((await raw.execute(5).sync().answers())[0]).toMatch(/^E 34000/)
  })

  it('says as PostgreSQL when a portion holds the last row, and nothing in a failed transaction', async () => {
    heard = await raw.query('begin').answers()
    const limited = 'select id from item order by id limit 3'
    heard = await raw.parse('', limited).bind('').execute(3).sync().answers()
    expect(heard.slice(-2)).toEqual(['s', 'Z T'])
    expect(await raw.execute(3).sync().answers()).toEqual(['C SELECT 0', 'Z T'])
    heard = await raw.parse('', limited).bind('').execute(2).sync().answers()
    heard = await raw.parse('f', 'select 1 / 0').bind('f').execute().sync().answers()
    expect((await raw.execute(1).sync().answers())[0]).toMatch(/^E (?:25P02|34000)/)
    heard = await raw.query('rollback').answers()
  })

  it('refuses more of a portal that has run on several servers to its end', async () => {
    heard = await raw.query('begin').answers()
    const once = 'select id from item order by id limit 1'
    heard = await raw.parse('', once).bind('').execute().sync().answers()
    heard = await raw.execute().sync().answers()
    expect(heard[0]).toMatch(/^E 0A000 /)
    heard = await raw.query('rollback').answers()
  })

  it('D132: one error of one shard, and clean servers behind it', async () => {
    const failing = `select 1 / (id - ${ROWS - 2}) from item order by id`
    for (const query of [failing, { text: failing, values: [] }, { name: 'f', text: failing }]) {
      const error = (await client
        .query(query as string)
        .catch((cause) => cause)) as pg.DatabaseError
      expect(error.code).toBe('22012')
      expect(error.detail).toBe(`shard 1 of ${SHARDS}`)
      expect((await client.query('select id from item order by id')).rowCount).toBe(ROWS)
    }
    await client.query('begin')
    expect(await failure(client.query(failing))).toBe('22012 division by zero')
    expect(await failure(client.query('select id from item order by 1'))).toMatch(/^25P02 /)
    expect((await client.query('commit')).command).toBe('ROLLBACK')
  })

  it('sees in a transaction what it wrote on each shard', async () => {
    await client.query('begin')
    for (let shard = 0; shard < SHARDS; shard++) {
      await client.query('insert into item values ($1, $2, $3)', [
        rig().key(shard),
        -1 - shard,
        'mine',
      ])
    }
    const mine = "select id from item where v = 'mine' order by id"
    expect((await client.query(mine)).rows.map(({ id }) => id)).toEqual([-3, -2, -1])
    await client.query('rollback')
    expect((await client.query(mine)).rows).toEqual([])
  })

  it('stops shards that nobody listens to any more, and goes on', async () => {
    const text = 'select n from big order by k, n'
    for (let round = 0; round < 3; round++) {
      heard = await raw.parse('', text).bind('').execute(5).sync().answers()
      expect(heard.slice(-2)).toEqual(['s', 'Z I'])
      expect((await client.query('select id from item order by id limit 1')).rowCount).toBe(1)
    }
  })

  it(
    'D121: a large answer in order takes no memory',
    async () => {
      const { pid } = rig().served.program
      const rss = (field: string) =>
        Number(
          new RegExp(`${field}:\\s+(\\d+)`).exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1],
        )
      const quiet = await RawClient.open(rig().served.port, false)
      const read = async () => {
        heard = await quiet.query('select n, k from big order by n').answers()
        expect(heard.at(-2)).toBe(`C SELECT ${BIG_ROWS}`)
      }
      await read()
      const before = rss('VmHWM')
      await read()
      await read()
      expect(rss('VmHWM') - before).toBeLessThan(MAX_GROWTH_KB)
      quiet.socket.destroy()
    },
    bySize(60_000, 300_000),
  )
})
