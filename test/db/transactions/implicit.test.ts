/** Pipelines up to a Sync and strings of statements, over three shards and on one plain PostgreSQL: the same answers, the same rows. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { expectNothingLeft } from '../../support/leak-check.js'
import { makeRandom } from '../../support/random.js'
import { bySize } from '../../support/test-size.js'
import { RawClient, SHARDS, useShardedRig } from '../session/sharded-rig.js'

const CREATE = `create table item (k bigint, id int, v text, primary key (k, id));
create table late (k bigint, n int, unique (k, n) deferrable initially deferred)`
const INSERT = 'insert into item (k, id, v) values ($1, $2, $3)'

const SELECT = 'select id, v from item where k = $1 and id >= $2 order by id'

/** What fails in PostgreSQL, each in a way of its own. */
const FAULTS = [
  'insert into item (k, id) values ($K, null)',
  'select 1/0',
  'selec 1',
  'select nothing from item where k = $K',
] as const

describe('D80: requests of several statements over shards', () => {
  const rig = useShardedRig(['default_pool_size = 3'])
  let plain: RawClient
  let sharded: RawClient

  beforeAll(async () => {
    await rig().onShard(0, 'create database plain')
    plain = await RawClient.open(rig().plainPort, true, 'plain')
    await plain.query(CREATE).answers()
  })
  beforeEach(async () => {
    await rig().everywhere('truncate item, late')
    await plain.query('truncate item, late').answers()
    sharded?.end()
    sharded = await RawClient.open(rig().served.port)
  })
  afterAll(async () => {
    plain.end()
    sharded.end()
    for (let shard = 0; shard < SHARDS; shard++)
      await expectNothingLeft((sql) => rig().onShard(shard, sql))
  })

  const rowsOf = async (): Promise<{ plain: string[]; sharded: string[] }> => {
    const sql = "select k || ' ' || id || ' ' || coalesce(v, '') as r from item"
    const all = (await rig().everywhere(sql)).flat().map((row) => String(row['r']))
    const answer = await plain.query(sql).answers()
    const rows = answer.flatMap((one) => (one.startsWith('D ') ? [one.slice(2)] : []))
    return { plain: rows.sort(), sharded: all.sort() }
  }

  /** The same frames to both; the answers and the rows behind them must be equal. */
  const same = async (write: (client: RawClient) => void, what: string, readies = 1) => {
    write(plain)
    write(sharded)
    const [wanted, given] = await Promise.all([plain.answers(readies), sharded.answers(readies)])
    expect(given, what).toEqual(wanted)
    const rows = await rowsOf()
    expect(rows.sharded, what).toEqual(rows.plain)
    return wanted
  }

  const key = (n: number) => rig().key(n % SHARDS, Math.floor(n / SHARDS))

  it('D80, D82: pipelines of 2 to 20 statements with an error at each position', async () => {
    const random = makeRandom(20_261_130)
    const lengths = bySize(
      [2, 3, 5, 20],
      Array.from({ length: 19 }, (_, i) => i + 2),
    )
    let next = 0
    for (const length of lengths) {
      for (let bad = 0; bad <= length; bad++) {
        const fault = FAULTS[Math.floor(random() * FAULTS.length)] as string
        const first = next
        next += length
        const ask = (client: RawClient, i: number) => {
          const id = first + i
          if (i === bad) client.parse('', fault.replaceAll('$K', String(key(i)))).bind('')
          else if (i % 3 === 2) client.parse('', SELECT).bind('', key(i), first).describe('P')
          else client.parse('', INSERT).bind('', key(i), id, `v${id}`)
          client.execute()
        }
        const talk = (client: RawClient) => {
          for (let i = 0; i < length; i++) ask(client, i)
          client.sync()
        }
        await same(talk, `${length} statements, ${fault} at ${bad}`)
      }
    }
  })

  it('D80, D82: strings of 2 to 20 statements with an error at each position', async () => {
    const random = makeRandom(7)
    const lengths = bySize(
      [2, 3, 7],
      Array.from({ length: 19 }, (_, i) => i + 2),
    )
    let next = 0
    for (const length of lengths) {
      for (let bad = 0; bad <= length; bad++) {
        // one that cannot be read fails the string before any of it has run
        const fault = FAULTS[Math.floor(random() * FAULTS.length)] as string
        const first = next
        next += length
        const statements = Array.from({ length }, (_, i) => {
          if (i === bad) return fault.replaceAll('$K', String(key(i)))
          if (i % 3 === 2) return `select v from item where k = ${key(i)} and id >= ${first}`
          return `insert into item values (${key(i)}, ${first + i}, 'é${i}')`
        })
        await same((client) => client.query(statements.join('; ')), `${fault} at ${bad}`)
      }
    }
  })

  it('D76, D79: BEGIN, COMMIT and ROLLBACK inside a string', async () => {
    const put = (n: number, id: number) => `insert into item values (${key(n)}, ${id}, 'b')`
    const dup = put(0, 1)
    const strings = [
      [dup, 'begin', put(1, 2), 'commit', put(2, 3), put(0, 4)],
      ['begin', put(0, 5), put(1, 6), 'commit', put(2, 7), dup, put(1, 8)],
      ['begin', put(0, 9), put(1, 10), 'rollback', put(2, 11)],
      [put(0, 12), put(1, 13), 'commit', put(2, 14), dup],
      [put(0, 15), put(1, 16), 'rollback', put(2, 17)],
      [put(0, 18), put(1, 19), 'savepoint s', put(2, 20)],
      ['begin', put(0, 21), 'savepoint s', put(1, 22), 'rollback to s', put(2, 23), 'commit'],
      [put(0, 24), put(1, 25), 'commit and chain'],
      ['begin', 'begin', put(1, 26), put(2, 27), 'commit', 'commit'],
      [
        'begin',
        put(1, 28),
        put(2, 29),
        'end',
        'start transaction',
        put(0, 30),
        put(1, 31),
        'abort',
      ],
    ]
    for (const string of strings) {
      const text = string.join('; ')
      await same((client) => client.query(text), text)
    }
    // left open at the end of the string, and in the middle of one that is open
    const open = ['begin', put(0, 40), put(1, 41)].join('; ')
    for (const ends of ['commit', 'rollback']) {
      const talk = (client: RawClient) => client.query(open).query(`${put(2, 42)}; ${ends}`)
      await same(talk, `${open}, ${ends}`, 2)
      for (const n of [0, 1, 2])
        await same((client) => client.query(`delete from item where k = ${key(n)}`), 'between')
    }
  })

  it('D77, D78, D148: statements of one request inside an open transaction', async () => {
    const put = (n: number, id: number) => `insert into item values (${key(n)}, ${id}, 'c')`
    for (const ends of ['commit', 'rollback']) {
      const id = ends === 'commit' ? 1 : 10
      const talk = (client: RawClient) =>
        client
          .query('begin')
          .query(`${put(0, id)}; ${put(1, id)}`)
          .query(`${put(2, id)}; ${put(0, id + 1)}; select v from item where k = ${key(1)}`)
          .query(ends)
      await same(talk, ends, 4)
      const fails = (client: RawClient) =>
        client
          .query('begin')
          .query(`${put(0, id + 2)}; ${put(1, id)}; ${put(1, id)}; ${put(2, id + 2)}`)
          .query(`${put(2, id + 3)}; select 1`)
          .query(ends)
      await same(fails, `${ends} after an error`, 4)
    }
  })

  it('D146: a constraint that is looked at when the request commits undoes it on all shards', async () => {
    const late = (n: number, value: number) => `insert into late values (${key(n)}, ${value})`
    const text = `${late(0, 1)}; ${late(1, 1)}; ${late(1, 1)}; ${late(2, 1)}`
    // on three shards it is found when they are readied, on one by the commit: the same error
    await same((client) => client.query(text), text)
    expect((await rig().everywhere('select * from late')).flat()).toEqual([])
  })

  it('leaves settings as the request did, on whichever server', async () => {
    const put = (n: number, id: number) => `insert into item values (${key(n)}, ${id}, 'd')`
    for (const [text, work] of [
      [`${put(0, 1)}; set work_mem = '1MB'; ${put(1, 1)}`, '1MB'],
      [`${put(0, 2)}; set work_mem = '2MB'; ${put(1, 2)}; select 1/0`, '1MB'],
      [`set local work_mem = '3MB'; ${put(0, 3)}; ${put(1, 3)}; show work_mem`, '1MB'],
    ] as const) {
      await same((client) => client.query(text), text)
      const shown = await same((client) => client.query('show work_mem'), text)
      expect(shown).toContain(`D ${work}`)
    }
    await plain.query('reset work_mem').answers()
  })

  it('plans what follows a SET by what it has set', async () => {
    await rig().everywhere('create schema if not exists other')
    await plain.query('create schema if not exists other').answers()
    const text = `set search_path to other, public; select id from item where k = ${key(0)}; reset search_path`
    await same((client) => client.query(text), text)
  })
})
