/** UPDATE and DELETE of rows on several shards, writes of reference tables, and keys that a server must draw. */
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { failure, RawClient, SHARDS, useShardedRig } from '../session/sharded-rig.js'

describe('writes without a key', () => {
  const rig = useShardedRig()
  const clients: RawClient[] = []
  const raw = async (): Promise<RawClient> => {
    const client = await RawClient.open(rig().served.port)
    clients.push(client)
    return client
  }
  afterEach(() => {
    for (const client of clients.splice(0)) client.end()
  })
  beforeAll(async () => {
    const client = await rig().served.connect()
    await client.query('create table stamp (code text, at timestamptz default now(), n serial)')
    await client.end()
  })
  beforeEach(async () => {
    const { everywhere, key, onShard } = rig()
    await everywhere(
      "truncate item, late, stamp; delete from country where code not in ('de', 'fr')",
    )
    for (let shard = 0; shard < SHARDS; shard++) {
      await onShard(
        shard,
        `insert into item values (${key(shard)}, 1, 'de'), (${key(shard)}, 2, 'xx')`,
      )
      await onShard(shard, `insert into late values (${key(shard)}, ${shard})`)
    }
  })
  const texts = async (): Promise<unknown[]> =>
    (await rig().everywhere('select v from item order by id')).flat().map((row) => row['v'])

  it('D133: UPDATE and DELETE without a key count the rows of all shards', async () => {
    const client = await raw()
    expect(await client.query("update item set v = 'a' where id = 1").answers()).toEqual([
      'C UPDATE 3',
      'Z I',
    ])
    const deleted = await client
      .parse('', 'delete from item where v = $1 returning id, v')
      .bind('', 'a')
      .describe('P')
      .execute()
      .sync()
      .answers()
    expect(deleted).toEqual(['1', '2', 'T', 'D 1,a', 'D 1,a', 'D 1,a', 'C DELETE 3', 'Z I'])
    expect(await texts()).toEqual(['xx', 'xx', 'xx'])
  })

  it.each([
    ['begin isolation level repeatable read', 'commit'],
    ["set default_transaction_isolation to 'repeatable read'", 'reset all'],
  ])('D132, D133: they run at REPEATABLE READ, too (%s)', async (begin, end) => {
    const { served, key, onShard } = rig()
    const client = await served.connect()
    const values = [0, 1, 2].map((shard) => `(${key(shard)}, 7, 'new')`)
    await client.query(begin)
    const made = await client.query(`insert into item values ${values.join(', ')} returning id`)
    expect(made.rowCount).toBe(SHARDS)
    expect((await client.query("update item set v = 'b' where id = 1")).rowCount).toBe(SHARDS)
    expect((await client.query("insert into country values ('rr')")).rowCount).toBe(1)
    expect((await client.query('explain delete from item')).rows.length).toBeGreaterThan(3)
    expect((await client.query(end)).command).toBe(end === 'commit' ? 'COMMIT' : 'RESET')
    expect((await texts()).sort()).toEqual(['b', 'b', 'b', 'new', 'new', 'new', 'xx', 'xx', 'xx'])
    // one shard's row has changed since the snapshots: nothing of the statement stays on the others
    await client.query('begin isolation level repeatable read')
    await client.query('select 1 from item where k = $1', [key(0)])
    await onShard(2, "update item set v = 'other' where id = 1")
    expect(await failure(client.query("update item set v = 'lost' where id = 1"))).toMatch(
      /^40001 /,
    )
    await client.query('rollback')
    expect((await texts()).filter((one) => one === 'lost')).toEqual([])
    await client.end()
  })

  it('D133: joined by the key, or reading reference tables, they run on every shard', async () => {
    const { served } = rig()
    const client = await served.connect()
    const joined = 'update item set v = l.n from late l where l.k = item.k and id = 2 returning v'
    expect((await client.query(joined)).rows.map(({ v }) => v).sort()).toEqual(['0', '1', '2'])
    const known = 'delete from item i where exists (select from country c where c.code = i.v)'
    expect((await client.query(known)).rowCount).toBe(3)
    const counted =
      "update item set v = 'n' || (select count(*) from late l where l.k = item.k) where id = 2"
    expect((await client.query(counted)).rowCount).toBe(3)
    expect(await texts()).toEqual(['n1', 'n1', 'n1'])
    await client.end()
  })

  it('D133: what would need rows of other shards is refused, and changes nothing', async () => {
    const { served } = rig()
    for (const sql of [
      'delete from item where id in (select n from late)',
      'update item set v = l.n from late l where l.n = item.id',
      'delete from item where v in (select code from country order by code limit 1)',
      "with gone as (delete from late returning k) update item set v = 'x'",
    ])
      expect(await failure(served.query(sql)), sql).toMatch(/^0A000 /)
    expect(await texts()).toEqual(['de', 'xx', 'de', 'xx', 'de', 'xx'])
  })

  it('D133: an error on one shard undoes all', async () => {
    const { key, served } = rig()
    const sql = `update item set id = case when k = ${key(1)} then 7 else id + 10 end`
    expect(await failure(served.query(sql))).toMatch(/^23505 /)
    expect(await texts()).toEqual(['de', 'xx', 'de', 'xx', 'de', 'xx'])
  })

  it('D133: the time of the transaction is one value on all shards', async () => {
    const { everywhere, served } = rig()
    await served.query('update item set v = now()::text')
    expect(new Set(await texts()).size).toBe(1)
    const client = await served.connect()
    await client.query('begin')
    const [{ now }] = (await client.query('select now()::text')).rows
    await client.query('update item set v = current_timestamp::text')
    await client.query('commit')
    await client.end()
    const shown = await everywhere(
      `select count(*)::int as n from item where v::timestamptz = '${now}'`,
    )
    expect(shown.map(([row]) => row?.['n'])).toEqual([2, 2, 2])
  })

  it('D118, D133: a reference table is written alike on every shard, generated values too', async () => {
    const { everywhere, served } = rig()
    const client = await served.connect()
    const made = await client.query(
      "insert into stamp (code) values ('a'), ('b') returning code, at::text, n",
    )
    expect(made.rowCount).toBe(2)
    expect((await client.query("update stamp set code = 'c' where code = 'a'")).rowCount).toBe(1)
    await client.query("insert into country values ('it') on conflict do nothing")
    expect((await client.query("delete from country where code = 'it'")).rowCount).toBe(1)
    const copies = await everywhere('select code, at::text, n from stamp order by n')
    expect(copies[0]).toHaveLength(2)
    expect(copies[1]).toEqual(copies[0])
    expect(copies[2]).toEqual(copies[0])
    expect(made.rows.map(({ n }) => n)).toEqual(copies[0]?.map(({ n }) => n))
    for (const sql of [
      'update stamp set code = random()::text',
      "insert into stamp (code) select 'x'",
      'delete from stamp where code in (select v from item)',
    ])
      expect(await failure(client.query(sql)), sql).toMatch(/^0A000 /)
    await client.end()
  })

  it('D133: copies of a reference table that differ are left as they are', async () => {
    const { everywhere, onShard, served } = rig()
    await onShard(1, "insert into country values ('zz')")
    expect(await failure(served.query("delete from country where code > 'f'"))).toMatch(
      /^XX000 shard 1 changed 2 rows of a reference table, and shard 0 1/,
    )
    expect((await everywhere('select 1 from country')).map((rows) => rows.length)).toEqual([
      2, 3, 2,
    ])
  })

  it('D116: a key that its default draws is drawn before the row is placed', async () => {
    const { everywhere, served } = rig()
    const client = await served.connect()
    await client.query('drop table late2')
    await client.query('create table late2 (k bigint generated always as identity, v text)')
    await everywhere('select 1')
    const one = await client.query("insert into late2 (v) values ('a') returning k")
    const more = await client.query(
      "insert into late2 (v) values ('b'), ('c'), ('d') returning k, v",
    )
    expect(more.rows.map(({ v }) => v)).toEqual(['b', 'c', 'd'])
    const keys = [...one.rows, ...more.rows].map(({ k }) => k)
    expect(new Set(keys).size).toBe(4)
    for (const k of keys) {
      const found = await client.query('select v from late2 where k = $1', [k])
      expect(found.rowCount).toBe(1)
    }
    await client.end()
  })
})
