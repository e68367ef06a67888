/** Requests that come in one write, and statements described before it is known which shard they are for. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { RawClient, SHARDS, useShardedRig } from './sharded-rig.js'

const ABORTED =
  'E 25P02 current transaction is aborted, commands ignored until end of transaction block'
const SELECT = 'select id, v from item where k = $1 order by id'
const INSERT = 'insert into item (k, id, v) values ($1, $2, $3)'

describe('pipelines over shards', () => {
  const rig = useShardedRig(['default_pool_size = 3'])
  let client: RawClient
  const key = (shard: number, nth = 0) => rig().key(shard, nth)

  beforeEach(async () => {
    await rig().everywhere('truncate item')
    for (let shard = 0; shard < SHARDS; shard++) {
      const values = `(${key(shard)}, ${shard}, 'shard ${shard}')`
      await rig().onShard(shard, `insert into item values ${values}`)
    }
    client = await RawClient.open(rig().served.port)
  })
  afterEach(() => client.end())

  const ids = async () =>
    (await rig().everywhere('select id from item order by id')).map((rows) =>
      rows.map(({ id }) => id),
    )

  it('answer in order, each Sync from its own shard', async () => {
    const shards = Array.from({ length: 30 }, (_, i) => (i * 7) % SHARDS)
    client.parse('s', SELECT)
    for (const shard of shards) client.bind('s', key(shard)).execute().sync()
    const expected = shards.flatMap((shard) => [
      '2',
      `D ${shard},shard ${shard}`,
      'C SELECT 1',
      'Z I',
    ])
    expect(await client.answers(shards.length)).toEqual(['1', ...expected])
  })

  it('answer simple queries in order, and go on after an error', async () => {
    const select = (shard: number) => `select id from item where k = ${key(shard)}`
    client
      .query(select(2))
      .query(select(0))
      .query(`${select(1)} and 1 / (id - 1) = 0`)
    client.query(select(1)).query('select id from item').query(select(2))
    const heard = await client.answers(6)
    expect(heard.filter((one) => one !== 'T')).toEqual([
      ...['D 2', 'C SELECT 1', 'Z I', 'D 0', 'C SELECT 1', 'Z I'],
      ...['E 22012 division by zero', 'Z I', 'D 1', 'C SELECT 1', 'Z I'],
      ...heard.filter((one) => one.startsWith('D ')).slice(3, 6),
      ...['C SELECT 3', 'Z I', 'D 2', 'C SELECT 1', 'Z I'],
    ])
  })

  it('run a whole transaction in one write', async () => {
    client.query('begin')
    for (const shard of [1, 0, 2])
      client.parse('', INSERT).bind('', key(shard), 10, 'w').execute().sync()
    client.query('commit')
    const one = ['1', '2', 'C INSERT 0 1', 'Z T']
    expect(await client.answers(5)).toEqual([
      ...['C BEGIN', 'Z T', ...one, ...one, ...one],
      ...['C COMMIT', 'Z I'],
    ])
    expect(await ids()).toEqual([
      [0, 10],
      [1, 10],
      [2, 10],
    ])
  })

  it('fail a whole transaction in one write', async () => {
    client.parse('i', INSERT).parse('b', 'begin').parse('c', 'commit').sync()
    await client.answers()
    client.bind('b').execute().sync()
    client.bind('i', key(0), 10, 'w').execute().sync()
    client.bind('i', key(1), 1, 'there already').execute().sync()
    client.bind('i', key(2), 10, 'w').execute().sync()
    client.bind('c').execute().sync()
    client.bind('i', key(2), 11, 'w').execute().sync()
    expect(await client.answers(6)).toEqual([
      ...['2', 'C BEGIN', 'Z T', '2', 'C INSERT 0 1', 'Z T'],
      ...['2', 'E 23505 duplicate key value violates unique constraint "item_pkey"', 'Z E'],
      ...[ABORTED, 'Z E', '2', 'C ROLLBACK', 'Z I', '2', 'C INSERT 0 1', 'Z I'],
    ])
    expect(await ids()).toEqual([[0], [1], [2, 11]])
  })

  it('take what stands before one Sync as one transaction of one shard', async () => {
    client.parse('i', INSERT).bind('i', key(0), 10, 'w').execute()
    client.bind('i', key(0), 0, 'there already').execute()
    client.bind('i', key(0), 11, 'skipped').execute().sync()
    expect(await client.answers()).toEqual([
      ...['1', '2', 'C INSERT 0 1', '2'],
      ...['E 23505 duplicate key value violates unique constraint "item_pkey"', 'Z I'],
    ])
    expect(await ids()).toEqual([[0], [1], [2]])
  })

  it('take Binds for two shards before one Sync as one transaction of both', async () => {
    client.parse('i', INSERT).bind('i', key(0), 10, 'w').execute()
    client.bind('i', key(1), 10, 'w').execute().sync()
    client.bind('i', key(2), 10, 'w').execute().bind('i', key(0), 10, 'there').execute().sync()
    expect(await client.answers(2)).toEqual([
      ...['1', '2', 'C INSERT 0 1', '2', 'C INSERT 0 1', 'Z I', '2', 'C INSERT 0 1', '2'],
      ...['E 23505 duplicate key value violates unique constraint "item_pkey"', 'Z I'],
    ])
    expect(await ids()).toEqual([[0, 10], [1, 10], [2]])
  })

  it.each(['outside', 'inside'])(
    'describe first and bind for any shard, %s a transaction',
    async (where) => {
      const state = where === 'inside' ? 'Z T' : 'Z I'
      if (where === 'inside') await client.query('begin').answers()
      for (let i = 0; i < 9; i++) {
        const shard = (i * 2) % SHARDS
        client.heard.length = 0
        client.parse(`s${i}`, SELECT).describe('S', `s${i}`).flush().send()
        await client.until((one) => one === 'T')
        expect(client.heard).toEqual(['1', 't', 'T'])
        client.bind(`s${i}`, key(shard)).execute().sync()
        const row = `D ${shard},shard ${shard}`
        expect(await client.answers()).toEqual(['2', row, 'C SELECT 1', state])
        client.parse(`w${i}`, INSERT).describe('S', `w${i}`).flush().send()
        await client.until((one) => one === 'n')
        client
          .bind(`w${i}`, key(shard), 100 + i, 'w')
          .execute()
          .sync()
        expect(await client.answers()).toEqual(['2', 'C INSERT 0 1', state])
        if (where === 'outside') {
          await rig().onShard(shard, `delete from item where id = ${100 + i}`)
        } else {
          client.query(`delete from item where k = ${key(shard)} and id = ${100 + i}`)
          expect(await client.answers()).toEqual(['C DELETE 1', state])
        }
      }
      if (where === 'inside')
        expect(await client.query('commit').answers()).toEqual(['C COMMIT', 'Z I'])
      expect(await ids()).toEqual([[0], [1], [2]])
    },
  )

  it.each(['outside', 'inside'])(
    'describe first and bind for all shards, %s a transaction',
    async (where) => {
      const state = where === 'inside' ? 'Z T' : 'Z I'
      if (where === 'inside') await client.query('begin').answers()
      for (let i = 0; i < 9; i++) {
        client.heard.length = 0
        client.parse(`a${i}`, 'select id from item where v <> $1').describe('S', `a${i}`)
        client.flush().send()
        await client.until((one) => one === 'T')
        const heard = await client
          .bind(`a${i}`, `shard ${i % SHARDS}`)
          .execute()
          .sync()
          .answers()
        const rows = [0, 1, 2].filter((id) => id !== i % SHARDS).map((id) => `D ${id}`)
        expect(heard[0]).toBe('2')
        expect(heard.slice(1, 3).sort()).toEqual(rows)
        expect(heard.slice(3)).toEqual(['C SELECT 2', state])
      }
      client.heard.length = 0
      client.parse('bad', 'select 1 / (id - 1) from item').describe('S', 'bad').flush().send()
      await client.until((one) => one === 'T')
      const failed = await client.bind('bad').execute().sync().answers()
      expect(failed.slice(-2)).toEqual([
        'E 22012 division by zero',
        where === 'inside' ? 'Z E' : 'Z I',
      ])
      if (where === 'inside')
        expect(await client.query('commit').answers()).toEqual(['C ROLLBACK', 'Z I'])
      expect(await client.query('select id from item where id < 0').answers()).toEqual([
        'T',
        'C SELECT 0',
        'Z I',
      ])
    },
  )

  it('describe COMMIT first, and run it over shards', async () => {
    client.query('begin')
    for (const shard of [0, 1])
      client.parse('', INSERT).bind('', key(shard), 10, 'w').execute().sync()
    await client.answers(3)
    client.parse('c', 'commit').describe('S', 'c').flush().send()
    await client.until((one) => one === 'n')
    expect(await client.bind('c').execute().sync().answers()).toEqual(['2', 'C COMMIT', 'Z I'])
    expect(await ids()).toEqual([[0, 10], [1, 10], [2]])
  })

  it('describe, flush, bind and flush again before the Sync', async () => {
    client.parse('s', SELECT).describe('S', 's').flush().send()
    await client.until((one) => one === 'T')
    client.heard.length = 0
    client.bind('s', key(1)).describe('P').execute().flush().send()
    await client.until((one) => one === 'C SELECT 1')
    expect(client.heard).toEqual(['2', 'T', 'D 1,shard 1', 'C SELECT 1'])
    expect(await client.sync().answers()).toEqual(['Z I'])
  })

  it('answer an error of a flushed request once, and skip to its Sync', async () => {
    client.parse('bad', 'select nothing from item where k = $1').describe('S', 'bad').flush().send()
    await client.until((one) => one.startsWith('E'))
    expect(client.heard).toEqual(['E 42703 column "nothing" does not exist'])
    client.bind('bad', key(2)).execute().sync()
    expect(await client.answers()).toEqual(['Z I'])
    client.parse('s', SELECT).bind('s', key(2)).execute().sync()
    expect(await client.answers()).toEqual(['1', '2', 'D 2,shard 2', 'C SELECT 1', 'Z I'])
  })

  it('read a portal in portions, over several shards too', async () => {
    for (let id = 20; id < 25; id++)
      await rig().onShard(1, 'insert into item values ($1, $2, null)', [key(1), id])
    client.query('begin').parse('s', SELECT).bind('s', key(1)).execute(4).execute(4).sync()
    expect(await client.answers(2)).toEqual([
      ...['C BEGIN', 'Z T', '1', '2', 'D 1,shard 1', 'D 20,NULL', 'D 21,NULL', 'D 22,NULL', 's'],
      ...['D 23,NULL', 'D 24,NULL', 'C SELECT 2', 'Z T'],
    ])
    client.query('commit').parse('', 'select id from item').bind('').execute(2).sync()
    const heard = await client.answers(2)
    expect(heard.slice(0, 4)).toEqual(['C COMMIT', 'Z I', '1', '2'])
    expect(heard.slice(4).map((one) => one[0])).toEqual(['D', 'D', 's', 'Z'])
    client.query('begin').parse('', 'select id from item').bind('').execute(2).sync()
    const begun = await client.answers(2)
    expect(begun.map((one) => one[0]).join('')).toBe('CZ12DDsZ')
    client.execute(3).sync()
    expect((await client.answers(1)).map((one) => one[0]).join('')).toBe('DDDsZ')
    client.query('rollback')
    expect(await client.answers(1)).toEqual(['C ROLLBACK', 'Z I'])
  })

  it('hold names of statements apart from servers: close, prepare again, deallocate', async () => {
    client.parse('s', SELECT).sync()
    for (const shard of [0, 1, 2]) client.bind('s', key(shard)).execute().sync()
    client.query('deallocate s').bind('s', key(0)).execute().sync()
    client.parse('s', INSERT).bind('s', key(2), 30, 'again').execute().sync()
    const heard = await client.answers(7)
    expect(heard).toContain('C DEALLOCATE')
    expect(heard).toContain('E 26000 prepared statement "s" does not exist')
    expect(heard.slice(-4)).toEqual(['1', '2', 'C INSERT 0 1', 'Z I'])
  })
})
