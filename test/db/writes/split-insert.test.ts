/** INSERT of rows for several shards: each row on its shard, one answer as of one PostgreSQL, all or nothing. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { failure, RawClient, SHARDS, useShardedRig } from '../session/sharded-rig.js'

describe('INSERT of several rows over shards', () => {
  const rig = useShardedRig()
  beforeEach(() => rig().everywhere('truncate item'))
  const clients: RawClient[] = []
  afterEach(() => {
    for (const client of clients.splice(0)) client.end()
  })
  const raw = async (): Promise<RawClient> => {
    const client = await RawClient.open(rig().served.port)
    clients.push(client)
    return client
  }
  const idsOn = async (shard: number) =>
    (await rig().onShard(shard, 'select id from item order by id')).map(({ id }) => id)

  it('D116: each row goes to the shard of its key, and RETURNING comes in the order of VALUES', async () => {
    const { key } = rig()
    const client = await raw()
    const rows = [2, 0, 1, 0, 2].map((shard, i) => `(${key(shard)}, ${i}, 'a,(b)''c')`)
    const answer = await client
      .query(`insert into item (k, id, v) values ${rows.join(', ')} returning id, v`)
      .answers()
    expect(answer).toEqual([
      'T',
      ...[0, 1, 2, 3, 4].map((i) => `D ${i},a,(b)'c`),
      'C INSERT 0 5',
      'Z I',
    ])
    expect([await idsOn(0), await idsOn(1), await idsOn(2)]).toEqual([[1, 3], [2], [0, 4]])
  })

  it('D63, D116: parameters of any row go with their row, whatever their place', async () => {
    const { key } = rig()
    const client = await raw()
    const sql = 'insert into item values ($1, $2, $7), ($3, $4, $7), ($5, $6, $7) returning v, id'
    const answer = await client
      .parse('', sql)
      .bind('', key(2), 1, key(0), 2, key(1), 3, 'same')
      .describe('P')
      .execute()
      .sync()
      .answers()
    expect(answer).toEqual([
      '1',
      '2',
      'T',
      'D same,1',
      'D same,2',
      'D same,3',
      'C INSERT 0 3',
      'Z I',
    ])
    expect([await idsOn(0), await idsOn(1), await idsOn(2)]).toEqual([[2], [3], [1]])
  })

  it('D116: a parameter that stands in places of two types keeps the type of the first', async () => {
    const { key } = rig()
    const client = await raw()
    // as text alone, $2 would be text in the part that has it in column v only
    const sql = 'insert into item values ($1, $2, null), ($3, 5, ($2 + 1)::text)'
    const answer = await client
      .parse('', sql)
      .bind('', key(0), 7, key(1))
      .execute()
      .sync()
      .answers()
    expect(answer).toEqual(['1', '2', 'C INSERT 0 2', 'Z I'])
    expect((await rig().onShard(1, 'select v from item'))[0]).toEqual({ v: '8' })
  })

  it('D116: an error on one shard leaves nothing on any, inside and outside of a transaction', async () => {
    const { key, served } = rig()
    const rows = `(${key(0)}, 1, 'x'), (${key(1)}, 1, 'x'), (${key(1)}, 1, 'twice')`
    const client = await served.connect()
    expect(await failure(client.query(`insert into item values ${rows}`))).toMatch(/^23505 /)
    await client.query('begin')
    await client.query(`insert into item values (${key(2)}, 9, 'y'), (${key(0)}, 9, 'y')`)
    expect(await failure(client.query(`insert into item values ${rows}`))).toMatch(/^23505 /)
    await client.query('rollback')
    await client.end()
    for (let shard = 0; shard < SHARDS; shard++) expect(await idsOn(shard)).toEqual([])
  })

  it('D116: ON CONFLICT on the key is decided on each shard', async () => {
    const { key, served } = rig()
    const rows = (v: string) => [0, 1, 2].map((shard) => `(${key(shard)}, 1, '${v}')`).join(', ')
    await served.query(`insert into item values ${rows('old')}`)
    const client = await served.connect()
    const upsert = `insert into item as i values ${rows('new')} on conflict (k, id) do update set k = excluded.k, v = excluded.v || i.v returning v`
    const { rows: returned, rowCount } = await client.query(upsert)
    expect([returned.map(({ v }) => v), rowCount]).toEqual([['newold', 'newold', 'newold'], 3])
    const nothing = await client.query(
      `insert into item values ${rows('x')}, (${key(0)}, 2, 'x') on conflict do nothing`,
    )
    expect(nothing.rowCount).toBe(1)
    await client.end()
  })

  it('D116: thousands of rows in one statement', async () => {
    const { served } = rig()
    const values = Array.from({ length: 10_000 }, (_, i) => `(${i}, ${i}, 'row ${i}')`)
    const client = await served.connect()
    const { rowCount } = await client.query(
      `insert into item (k, id, v) values ${values.join(',')}`,
    )
    expect(rowCount).toBe(10_000)
    await client.end()
    const counts = await rig().everywhere('select count(*)::int as n from item')
    expect(counts.map(([row]) => row?.['n'] as number).reduce((a, b) => a + b)).toBe(10_000)
  })
})
