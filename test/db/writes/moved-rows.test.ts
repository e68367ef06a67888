/** Rows that change shards with their key: both protocols, other clients at the same rows, columns that nobody knew of. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { waitFor } from '../../support/wait-for.js'
import { RawClient, SHARDS, useShardedRig } from '../session/sharded-rig.js'

describe('rows that move', () => {
  const rig = useShardedRig()
  const clients: RawClient[] = []
  const raw = async (): Promise<RawClient> => {
    const client = await RawClient.open(rig().served.port)
    clients.push(client)
    return client
  }
  beforeEach(async () => {
    const { everywhere, key, onShard } = rig()
    await everywhere('truncate item')
    for (let shard = 0; shard < SHARDS; shard++)
      await onShard(shard, `insert into item values (${key(shard)}, ${shard}, 'v${shard}')`)
  })
  afterEach(() => {
    for (const client of clients.splice(0)) client.end()
  })
  const rowsOn = async (shard: number) =>
    (await rig().onShard(shard, 'select id, v from item order by id')).map(
      ({ id, v }) => `${id} ${v}`,
    )

  it('D65, D133: Describe of the statement in the batch, and before it', async () => {
    const { key } = rig()
    const client = await raw()
    const sql = 'update item set k = $1, v = $2 where id = $3 returning id, v'
    const answer = await client
      .parse('', sql)
      .describe('S')
      .bind('', key(1), 'a', 0)
      .execute()
      .sync()
      .answers()
    expect(answer).toEqual(['1', 't', 'T', '2', 'D 0,a', 'C UPDATE 1', 'Z I'])
    expect([await rowsOn(0), await rowsOn(1)]).toEqual([[], ['0 a', '1 v1']])
    expect(await client.parse('again', sql).describe('S', 'again').sync().answers()).toEqual([
      '1',
      't',
      'T',
      'Z I',
    ])
    const back = await client.bind('again', key(2), 'b', 1).execute().sync().answers()
    expect(back).toEqual(['2', 'D 1,b', 'C UPDATE 1', 'Z I'])
    expect([await rowsOn(1), await rowsOn(2)]).toEqual([['0 a'], ['1 b', '2 v2']])
  })

  it('D80, D133: a row that another client changes is waited for, and moves as it is then', async () => {
    const { key, onShard } = rig()
    const [one, other] = [await raw(), await raw()]
    await one.query('begin').answers()
    await one.query(`update item set v = 'seen' where k = ${key(0)}`).answers()
    const moved = other.query(`update item set k = ${key(1)} where id = 0 returning v`).answers()
    await waitFor(async () => {
      const sql = "select from pg_stat_activity where wait_event_type = 'Lock'"
      return (await onShard(0, sql)).length > 0
    })
    await one.query('commit').answers()
    expect(await moved).toEqual(['T', 'D seen', 'C UPDATE 1', 'Z I'])
    expect(await rowsOn(1)).toEqual(['0 seen', '1 v1'])
  })

  it('D80, D133: at REPEATABLE READ too, and nothing is left prepared', async () => {
    const { everywhere, key } = rig()
    const client = await raw()
    await client.query('begin isolation level repeatable read').answers()
    const answer = await client.query(`update item set k = ${key(2)}, v = 'all'`).answers()
    expect(answer).toEqual(['C UPDATE 3', 'Z T'])
    expect(await client.query('commit').answers()).toEqual(['C COMMIT', 'Z I'])
    expect(await rowsOn(2)).toEqual(['0 all', '1 all', '2 all'])
    const prepared = await everywhere('select from pg_prepared_xacts')
    expect(prepared.flat()).toEqual([])
  })

  it('D132: a column that was added past the proxy is not lost on the way', async () => {
    const { everywhere, key, onShard, served } = rig()
    await served.query('select v from item')
    await everywhere(
      'alter table item add column if not exists extra int; update item set extra = 7',
    )
    const client = await raw()
    const move = async () =>
      (await client.query(`update item set k = ${key(1)} where id = 0`).answers())[0] ?? ''
    const said = new Set<string>()
    await waitFor(
      async () => {
        const first = await move()
        said.add(first.slice(0, 7))
        return first.startsWith('C UPDATE')
      },
      { deadlineMs: 30_000 },
    )
    expect([...said].every((one) => one === 'E 40001' || one === 'C UPDAT')).toBe(true)
    expect(await onShard(1, 'select extra from item where id = 0')).toEqual([{ extra: 7 }])
    await everywhere('alter table item drop column extra')
  })
})
