/** DDL and its kin over shards: on all of them or on none, and known to everybody at once. */
import { describe, expect, it } from 'vitest'
import { failure, SHARDS, useShardedRig } from '../session/sharded-rig.js'

const made = "select count(*)::int as n from pg_class where relname = '"

describe('schema changes over shards', () => {
  const rig = useShardedRig()

  const onAll = async (name: string): Promise<unknown[]> =>
    (await rig().everywhere(`${made}${name}'`)).map(([row]) => row?.['n'])

  it('D118: CREATE TABLE stands on every shard, and is routed by this and other clients at once', async () => {
    const { key, served, onShard } = rig()
    const client = await served.connect()
    await client.query('drop table big')
    await client.query('create table big (id bigserial primary key, k bigint, n int)')
    expect(await onAll('big')).toEqual([1, 1, 1])
    const rows = [0, 1, 2, 0].map((shard) => `(${key(shard)}, ${shard})`).join(', ')
    const { rows: made } = await client.query(`insert into big (k, n) values ${rows} returning id`)
    expect(new Set(made.map(({ id }) => id)).size).toBe(4)
    await served.query(`insert into big (k, n) values (${key(1)}, 9)`)
    expect(await onShard(1, 'select n from big order by n')).toEqual([{ n: 1 }, { n: 9 }])
    await client.query('truncate big, item restart identity')
    const { rows: again } = await client.query(`insert into big (k, n) values ${rows} returning id`)
    expect(new Set(again.map(({ id }) => id)).size).toBe(4)
    await client.end()
  })

  it('D118: what is made shard by shard, by a hint, is there for the next statement', async () => {
    const { key, served } = rig()
    const client = await served.connect()
    await client.query('drop table big')
    for (let shard = 0; shard < SHARDS; shard++)
      await client.query(`/* pgshard_shard: ${shard} */ create table big (k bigint, n int)`)
    await client.query(`insert into big values (${key(1)}, 1)`)
    for (let shard = 0; shard < SHARDS; shard++) {
      await client.query('begin')
      await client.query(`/* pgshard_shard: ${shard} */ alter table big add column more int`)
      await client.query('commit')
    }
    // what was sent before the answers came is planned no sooner
    const answers = await Promise.all([
      ...[0, 1, 2].map((shard) =>
        client.query(`/* pgshard_shard: ${shard} */ alter table big rename column n to m`),
      ),
      client.query({ text: 'select m, more from big where k = $1', values: [key(1)] }),
    ])
    expect(answers.at(-1)?.rows).toEqual([{ m: 1, more: null }])
    await client.query('drop table big')
    await client.query('create table big (id bigserial primary key, k bigint, n int)')
    await client.end()
  })

  it('D118: RESTART IDENTITY leaves sequences that setup has made disjoint so', async () => {
    const { key, onShard, served } = rig()
    for (let shard = 0; shard < SHARDS; shard++) {
      await onShard(shard, 'drop table late2; create table late2 (k bigint, id serial)')
      const apart = `increment by ${SHARDS} restart with ${shard + 1}`
      await onShard(shard, `alter sequence late2_id_seq ${apart}`)
    }
    const client = await served.connect()
    await client.query('create index on late2 (k)') // makes the proxy look at the schema
    const rows = [0, 1, 2, 0, 1, 2].map((shard) => `(${key(shard)})`).join(', ')
    for (let round = 0; round < 2; round++) {
      const made = await client.query(`insert into late2 (k) values ${rows} returning id`)
      expect(made.rows.map(({ id }) => id)).toEqual([1, 2, 3, 4, 5, 6])
      await client.query('truncate late2 restart identity cascade')
    }
    await client.end()
  })

  it('D118: what servers notice comes whole, once for what all shards say', async () => {
    const { key, everywhere, served } = rig()
    await everywhere(
      "create function tell() returns trigger language plpgsql as $$ begin raise notice 'row %', new.v; return new; end $$; create trigger tell before update on item for each row execute function tell()",
    )
    const client = await served.connect()
    const heard: string[] = []
    client.on('notice', ({ message }) => heard.push(message ?? ''))
    const gone = Array.from({ length: 40 }, (_, i) => `gone_${i}_${'x'.repeat(40)}`)
    for (let round = 0; round < 2; round++) {
      await client.query(`drop table if exists ${gone.join(', ')}`)
      expect(heard.splice(0)).toEqual(
        gone.map((name) => `table "${name}" does not exist, skipping`),
      )
      await client.query('begin')
      const keys = [0, 1, 2, 0].map(key)
      const rows = keys.map((k, v) => `(${k}, ${900 + v}, 'told ${v}')`).join(', ')
      await client.query(`insert into item (k, id, v) values ${rows}`)
      await client.query("update item set v = v where v like 'told %'")
      expect(heard.splice(0).sort()).toEqual([0, 1, 2, 3].map((v) => `row told ${v}`))
      await client.query('rollback')
    }
    await client.end()
    await everywhere('drop trigger tell on item; drop function tell')
  })

  it('D60: a prepared statement of several commands runs none of them', async () => {
    const { key, served } = rig()
    const client = await served.connect()
    await client.query(`insert into item values (${key(0)}, 700, 'kept'), (${key(1)}, 701, 'kept')`)
    for (const text of [
      'truncate item; select 1',
      'create table extra (n int); select 1',
      "set local work_mem = '8MB'; show work_mem",
      `begin; delete from item where k = ${key(0)}`,
    ]) {
      const both = client.query({ name: `of ${text}`, text })
      expect(await failure(both), text).toBe(
        '42601 cannot insert multiple commands into a prepared statement',
      )
    }
    expect((await client.query("delete from item where v = 'kept'")).rowCount).toBe(2)
    expect(await onAll('extra')).toEqual([0, 0, 0])
    await client.end()
  })

  it('D118: what an open transaction has made is told apart from what is not there', async () => {
    const { served } = rig()
    const client = await served.connect()
    const seen = () => failure(client.query('select * from own_view'))
    expect(await seen()).toBe('42P01 relation "own_view" does not exist')
    await client.query('begin')
    await client.query('create view own_view as select * from item')
    expect(await seen()).toMatch(
      /^0A000 relation "own_view" does not exist, or it was made in this/,
    )
    await client.query('rollback')
    expect(await seen()).toBe('42P01 relation "own_view" does not exist')
    // a view with another text, of which only this transaction knows, is not read by the old one
    await client.query('create view own_view as select k, count(*) as n from item group by k')
    for (const sql of ['select sum(n) from own_view', 'select k from own_view order by n, k']) {
      await client.query('begin')
      await client.query('create or replace view own_view as select k, 0::bigint as n from item')
      expect(await failure(client.query(sql)), sql).toMatch(/^0A000 a read over several shards/)
      await client.query('rollback')
      await client.query(sql)
    }
    await client.query('begin; create index own_index on item (v)')
    await client.query('select count(*) from item')
    await client.query('rollback; drop view own_view')
    await client.end()
  })

  it('D118: rows are not placed by columns that the open transaction has dropped or renamed', async () => {
    const { served } = rig()
    const client = await served.connect()
    await client.query('drop table if exists late; create table late (gone int, k bigint, v text)')
    const refused = /^0A000 a statement for rows of one shard behind a dropped/
    const behind = async (change: string, sql: string) => {
      await client.query('begin')
      await client.query(change)
      expect(await failure(client.query(sql)), sql).toMatch(refused)
      await client.query('rollback')
    }
    await behind('alter table late drop gone', "insert into late values (1, '2')")
    await behind('alter table late drop gone', "insert into late values (1, '2'), (2, '3')")
    await behind('alter table late drop gone', 'copy late from stdin')
    await behind('alter table late rename k to old_k', 'select * from late where k = 1')
    await client.query('begin; alter table late add more int')
    await client.query('insert into late (k) values (7)')
    await client.query('rollback')
    await client.end()
  })

  it('D118: what one shard refuses stands on none', async () => {
    const { onShard, served } = rig()
    await onShard(1, 'create table taken (n int)')
    expect(await failure(served.query('create table taken (n int)'))).toBe(
      '42P07 relation "taken" already exists',
    )
    expect(await onAll('taken')).toEqual([0, 1, 0])
  })

  it('D118: in a transaction of the client it is undone with it', async () => {
    const { served } = rig()
    const client = await served.connect()
    await client.query('begin')
    await client.query('create view names as select code from country')
    await client.query('create index on item (v)')
    await client.query('rollback')
    expect(await onAll('names')).toEqual([0, 0, 0])
    await client.query('begin; create view names as select code from country; commit')
    expect(await onAll('names')).toEqual([1, 1, 1])
    expect((await client.query('select * from names order by 1')).rows).toHaveLength(2)
    await client.end()
  })

  it('D118: indexes that are built CONCURRENTLY say which shards have them when one fails', async () => {
    const { onShard, served } = rig()
    await served.query('create index concurrently item_v on item (v)')
    expect(await onAll('item_v')).toEqual([1, 1, 1])
    await onShard(1, 'create table item_id (n int)')
    const client = await served.connect()
    const error = await client.query('create index concurrently item_id on item (id)').then(
      () => undefined,
      (cause: unknown) => cause as { code: string; detail: string; hint: string },
    )
    expect(error).toMatchObject({
      code: '55000',
      detail: 'it has run on shard 0, and not on shard 1, 2',
      hint: expect.stringContaining('pgshard_shard'),
    })
    expect(await failure(client.query('begin; create index concurrently x on item (v)'))).toMatch(
      /^25001 /,
    )
    await client.end()
    await served.query('vacuum (analyze) item')
  })

  it('D118: TRUNCATE, LOCK, COMMENT, GRANT and types reach every shard', async () => {
    const { everywhere, key, served } = rig()
    for (let shard = 0; shard < SHARDS; shard++)
      await served.query(`insert into item values (${key(shard)}, 1, 'x')`)
    const client = await served.connect()
    await client.query('begin')
    await client.query('lock table item in exclusive mode')
    await client.query('truncate item')
    await client.query('commit')
    expect(await everywhere('select 1 from item')).toEqual([[], [], []])
    expect(await failure(client.query('lock table item'))).toMatch(/^25P01 /)
    await client.query("create type mood as enum ('sad', 'happy')")
    await client.query("comment on table item is 'things'")
    await client.query('grant select on item to public')
    await client.end()
    const comments = await everywhere("select obj_description('item'::regclass) as d")
    expect(comments.map(([row]) => row?.['d'])).toEqual(['things', 'things', 'things'])
  })

  it('D118: what would differ between shards is refused', async () => {
    const { served } = rig()
    const refusals = [
      'create table copied as select * from item',
      'create table drawn as select random() as r from country',
      'create database other',
    ]
    for (const sql of refusals) expect(await failure(served.query(sql)), sql).toMatch(/^0A000 /)
    await served.query('create table copied as select * from country')
    expect(await onAll('copied')).toEqual([1, 1, 1])
  })
})
