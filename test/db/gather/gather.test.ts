/** Reads that finish over copies: what they see in transactions, what they refuse, and that nothing of them is left. */
import type pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { waitFor } from '../../support/wait-for.js'
import { RawClient } from '../session/sharded-rig.js'
import { failureOf, type GatherRig, SHARDS, useGatherRig, withClient } from './gather-rig.js'

const rig = useGatherRig()

/** `wide` is read between the two that change together, and takes its time. */
const sums = `select (select sum(amount) from purse) + (select count(v) * 0 from wide) + (select sum(amount) from chest) as total,
  count(distinct p.id)::int as people from purse p`

const fill = (served: GatherRig['served']) =>
  withClient(served, async (client) => {
    for (let k = 0; k < 30; k++) {
      await client.query('insert into purse values ($1, $2, 100, $3)', [k, k % 10, `n${k % 4}`])
      await client.query('insert into chest values ($1, $2, 0, now())', [k, k % 10])
    }
  })

beforeAll(async () => {
  await fill(rig().served)
  await rig().everywhere(
    'insert into wide select i, repeat(i::text, 8) from generate_series(1, 40000) i',
  )
})

const total = async (client: pg.Client): Promise<number> =>
  Number((await client.query(sums)).rows[0].total)

describe('what a gathered read sees', () => {
  it.each([
    ['outside a transaction', undefined],
    ['inside a READ COMMITTED transaction', 'begin'],
    ['inside a REPEATABLE READ transaction', 'begin isolation level repeatable read'],
  ])('D5: sums stay the same %s while a writer moves amounts', async (_, begin) => {
    const { served } = rig()
    let isOver = false
    const writer = withClient(served, async (client) => {
      let moves = 0
      for (; !isOver; moves++) {
        const [from, to] = moves % 2 === 0 ? ['purse', 'chest'] : ['chest', 'purse']
        const k = moves % 30
        await client.query('begin')
        await client.query(`update ${from} set amount = amount - 7 where k = ${k}`)
        await client.query(`update ${to} set amount = amount + 7 where k = ${k}`)
        await client.query('commit')
      }
      return moves
    })
    const seen = new Set<number>()
    await withClient(served, async (client) => {
      if (begin) await client.query(begin)
      for (let i = 0; i < 8; i++) seen.add(await total(client))
      if (begin) await client.query('commit')
    })
    isOver = true
    expect(await writer).toBeGreaterThan(10)
    expect([...seen]).toEqual([3000])
  })

  it('D5: a transaction sees its own writes, also of reference tables, and may go on to write', async () => {
    await withClient(rig().served, async (client) => {
      await client.query('begin')
      await client.query('insert into purse values (1000, 1, 11, null)')
      await client.query('insert into purse values (1001, 77, 12, null)')
      const { rows } = await client.query(
        'select count(distinct id)::int as n, sum(amount)::int as s from purse where k >= $1',
        [1000],
      )
      expect(rows).toEqual([{ n: 2, s: 23 }])
      await client.query('delete from purse where k = 1000')
      await client.query('commit')
      await client.query('delete from purse where k = 1001')
    })
  })

  it.each(['begin', 'begin isolation level repeatable read', 'begin read only'])(
    'D5: now() and its kin are the time of the transaction, under their own names (%s)',
    async (begin) => {
      await withClient(rig().served, async (client) => {
        await client.query("set timezone to 'Asia/Kolkata'; set datestyle to 'SQL, DMY'")
        await client.query(begin)
        const { rows: first } = await client.query(
          'select now()::text as n, current_timestamp(1)::text as t, count(distinct id) from purse',
        )
        await client.query('select pg_sleep(0.02)')
        const { rows, fields } = await client.query(
          `select now()::text, (select current_date) = now()::date as today, now() = transaction_timestamp() as same,
             CURRENT_TIMESTAMP(1)::text, count(distinct id)::int, localtime = now()::time as l from purse, lateral (select now() as z) q where q.z = pg_catalog.now() group by now()`,
        )
        expect(rows).toEqual([
          {
            now: first[0].n,
            today: true,
            same: true,
            current_timestamp: first[0].t,
            count: 10,
            l: true,
          },
        ])
        expect(fields.map(({ name }) => name)).toContain('current_timestamp')
        await client.query('commit')
        await client.query('begin')
        const later = await client.query(
          'select now()::text as n, count(distinct id)::int as c from purse',
        )
        expect(later.rows[0].n).not.toBe(first[0].n)
        const quoted = client.query('select "now"(), count(distinct id) from purse')
        expect(await failureOf(quoted)).toMatchObject({ code: '0A000' })
        await client.query('rollback')
      })
      await rig().expectClean()
    },
  )

  it.each([
    'truncate wide',
    'lock table wide',
    'lock table only wide in access exclusive mode',
    'drop index wide_v',
    'reindex table wide',
  ])(
    'behind %s of its own transaction a read is refused, and does not wait for it',
    async (sql) => {
      await rig().everywhere('create index if not exists wide_v on wide (v)')
      await withClient(rig().served, async (client) => {
        await client.query('begin')
        await client.query(sql)
        expect((await failureOf(total(client))).code).toBe('0A000')
        await client.query('rollback; begin; lock table wide in share mode')
        expect(await total(client)).toBe(3000)
        await client.query('rollback')
      })
      await rig().expectClean()
    },
  )

  it('what waits behind one that waits for the same transaction is a deadlock', async () => {
    const { served } = rig()
    await withClient(served, async (client) => {
      await client.query('begin')
      await client.query('select count(*) from wide')
      const outsiders = rig().everywhere('begin; lock table wide; commit')
      const queued = `/* pgshard_shard: 0 */ select count(*)::int as n from pg_catalog.pg_locks where not granted`
      await waitFor(async () => (await served.query(queued))[0]?.['n'] === SHARDS)
      expect((await failureOf(total(client))).code).toBe('40P01')
      await client.query('rollback')
      await outsiders
    })
    await rig().expectClean()
  })

  it('D5: an error of the statement fails the transaction, and ROLLBACK TO goes on', async () => {
    await withClient(rig().served, async (client) => {
      await client.query('begin')
      await client.query('savepoint here')
      const failed = await failureOf(client.query('select count(distinct id) / 0 from purse'))
      expect(failed.code).toBe('22012')
      expect((await failureOf(client.query('select 1'))).code).toBe('25P02')
      await client.query('rollback to here')
      expect(await total(client)).toBe(3000)
      await client.query('rollback')
    })
    await rig().expectClean()
  })

  it('D117: values of every form come through as they are', async () => {
    const { served } = rig()
    const row = `'ok', '{a,"b c"}', 'x', '\\x00ff5c', '-1 mons +2 days -00:00:01', 0.1, '{"a": 1.50}', '<a/>', '2024-03-31 02:30:00.123456+02'`
    await withClient(served, async (client) => {
      for (const k of [1, 2, 3, 4]) await client.query(`insert into odd values (${k}, ${row})`)
    })
    await withClient(served, async (client) => {
      for (const begin of ['rollback', 'begin']) {
        await client.query(begin)
        await client.query("set datestyle to 'German'; set intervalstyle to sql_standard")
        await client.query("set extra_float_digits to -5; set timezone to 'Asia/Tokyo'")
        const { rows } = await client.query(
          `select o.m::text, o.tags, o.blank || '|' as b, o.raw, o.span::text, o.f::text, o.j::text, o.x::text, o.z::text,
             count(distinct p.id)::int as n, count(distinct o.k)::int as c from odd o, purse p group by 1, 2, 3, 4, 5, 6, 7, 8, 9`,
        )
        expect(rows).toEqual([
          {
            m: 'ok',
            tags: ['a', 'b c'],
            b: 'x|',
            raw: Buffer.from('00ff5c', 'hex'),
            span: '-0-1 +2 -0:00:01',
            f: '0.1',
            j: '{"a": 1.50}',
            x: '<a/>',
            z: '31.03.2024 09:30:00.123456 JST',
            n: 10,
            c: 4,
          },
        ])
        await client.query('rollback')
      }
    })
  })
})

describe('many rows', () => {
  it('every byte comes through sockets that are full', async () => {
    const { served } = rig()
    const [own] = await rig().onShard(0, 'select sum(hashtextextended(v, 3)) as h from wide')
    await withClient(served, async (client) => {
      for (const begin of ['rollback', 'rollback', 'rollback', 'begin']) {
        await client.query(begin)
        const { rows } = await client.query(
          `select count(distinct w.v)::int as n, sum(hashtextextended(w.v, 3)) as h, min(p.k)::int as k
           from wide w left join purse p on p.id = w.k + 100000`,
        )
        expect(rows).toEqual([{ n: 40_000, h: String(3n * BigInt(own!['h'] as string)), k: null }])
        await client.query('rollback')
      }
    })
  })
})

describe('the protocol of a gathered read', () => {
  it('D123: one RowDescription, rows, one CommandComplete, one ReadyForQuery, in both protocols', async () => {
    const sql = 'select count(distinct id)::int from purse where amount > $1'
    const client = await RawClient.open(rig().served.port)
    const simple = await client.query(sql.replace('$1', '-1000')).answers()
    expect(simple).toEqual(['T', 'D 10', 'C SELECT 1', 'Z I'])
    client.parse('s', sql).describe('S', 's').bind('s', -1000).describe('P').execute().sync()
    expect(await client.answers()).toEqual(['1', 't', 'T', '2', 'T', 'D 10', 'C SELECT 1', 'Z I'])
    client.bind('s', -1000).execute().sync()
    expect(await client.answers()).toEqual(['2', 'D 10', 'C SELECT 1', 'Z I'])
    client.describe('S', 's').sync()
    expect(await client.answers()).toEqual(['t', 'T', 'Z I'])
    client.bind('s', 'x').execute().sync()
    const bad = await client.answers()
    expect(bad.at(-2)).toMatch(/^E 22P02/)
    client.query('copy (select count(distinct id) from purse) to stdout')
    expect(await client.answers()).toEqual(['H', 'd', 'c', 'C COPY 1', 'Z I'])
    client.end()
    await rig().expectClean()
  })

  it('portals are read in portions inside a transaction, and have a first one outside', async () => {
    const client = await RawClient.open(rig().served.port)
    const sql = 'select k from purse where id >= (select min(id) from chest) order by k'
    const rows = (from: number, to: number) =>
      Array.from({ length: to - from }, (_, i) => `D ${from + i}`)
    const outside = await client.parse('', sql).bind('').execute(2).sync().answers()
    expect(outside).toEqual(['1', '2', ...rows(0, 2), 's', 'Z I'])
    await client.query('begin').answers()
    const open = client.parse('', sql).bind('').describe('P').execute(4).sync()
    expect(await open.answers()).toEqual(['1', '2', 'T', ...rows(0, 4), 's', 'Z T'])
    await client.parse('other', 'update purse set note = note where k = 5').sync().answers()
    expect(await client.execute(3).sync().answers()).toEqual([...rows(4, 7), 's', 'Z T'])
    expect(await client.execute().sync().answers()).toEqual([...rows(7, 30), 'C SELECT 23', 'Z T'])
    await client.query('rollback').answers()
    client.end()
    await rig().expectClean()
  })

  it('positions of errors are those of the text that was sent', async () => {
    await withClient(rig().served, async (client) => {
      const sql = '  select count(distinct p.nosuch) from public.purse p'
      const error = await client.query(sql).catch((one: unknown) => one)
      expect(error).toMatchObject({ code: '42703', position: String(sql.indexOf('p.nosuch') + 1) })
    })
  })
})

describe('views over sharded tables', () => {
  it('are made anew over the copies, one over the other', async () => {
    await withClient(rig().served, async (client) => {
      for (const begin of ['rollback', 'begin']) {
        await client.query(begin)
        const { rows } = await client.query(
          'select note, held::int, worth from public.rich order by public.rich.note',
        )
        // ten ids of three purses each meet three chests each
        const notes = ['n0', 'n1', 'n2', 'n3'].map((note) => rows.find((row) => row.note === note))
        expect(notes.reduce((sum, row) => sum + row.held, 0)).toBe(2 * 4500)
        expect(new Set(rows.map(({ worth }) => worth))).toEqual(new Set([10]))
        await client.query('rollback')
      }
      expect((await failureOf(client.query('select * from shy'))).message).toContain(
        'calls more than PostgreSQL’s own'.replace('’', "'"),
      )
    })
    await rig().expectClean()
  })
})

describe('who may gather, and what is refused', () => {
  it('a name that a CTE or a temporary table of the client bears is theirs', async () => {
    await withClient(rig().served, async (client) => {
      const { rows } = await client.query(
        `with purse as (select 5 as id union all select 5) select count(distinct purse.id)::int as n,
         (select count(distinct id)::int from public.purse) as m from purse`,
      )
      expect(rows).toEqual([{ n: 1, m: 10 }])
      await client.query('/* pgshard_shard: 0 */ create temp table chest (id int)')
      const failed = await failureOf(client.query('select count(distinct id) from chest, purse'))
      expect(failed.code).toBe('0A000')
      const { rows: real } = await client.query(
        'select count(distinct id)::int as n from public.chest',
      )
      expect(real).toEqual([{ n: 10 }])
    })
  })

  it.each([
    ['select ctid, count(distinct id) from purse group by 1', 'system column ctid'],
    ['select random() * count(distinct id) from purse', 'function random()'],
    ['select p from purse p order by count(*) over ()', 'a whole row of "purse"'],
    ["select nextval('q') + count(distinct id) from purse", 'function nextval()'],
    ['select count(distinct id) from purse tablesample system (50)', 'TABLESAMPLE'],
    ['select count(distinct p.id) from purse p, pg_class c', 'system catalog "pg_class"'],
    ["select count(distinct id), 'purse'::regclass from purse", 'a cast to regclass'],
    ['select count(distinct id), pg_backend_pid() from purse', 'function pg_backend_pid()'],
  ])('refuses %s', async (sql, reason) => {
    const failed = await withClient(rig().served, (client) => failureOf(client.query(sql)))
    expect(failed.code).toBe('0A000')
    expect(failed.message).toContain(reason)
  })

  it('now() is one value outside a transaction and inside one', async () => {
    await withClient(rig().served, async (client) => {
      const sql = 'select count(distinct now())::int as n, count(distinct id)::int as m from purse'
      expect((await client.query(sql)).rows).toEqual([{ n: 1, m: 10 }])
      await client.query('begin')
      expect((await client.query(sql)).rows).toEqual([{ n: 1, m: 10 }])
      await client.query('rollback')
    })
  })

  it('reads with the rights and row security of the client, and needs TEMPORARY', async () => {
    const { everywhere, served, databases } = rig()
    await rig().onShard(0, 'create role gatherer')
    await everywhere(
      `grant select (k, id, amount) on purse to gatherer; alter table purse enable row level security;
       create policy few on purse to gatherer using (id < 3)`,
    )
    await withClient(served, async (client) => {
      await client.query('set role gatherer')
      const sql = 'select count(distinct id)::int as n from purse'
      expect((await client.query(sql)).rows).toEqual([{ n: 3 }])
      const note = await failureOf(client.query('select count(distinct note) from purse'))
      expect(note.code).toBe('42501')
      for (const [shard, name] of databases.entries())
        await rig().onShard(shard, `revoke temporary on database "${name}" from public`)
      const failed = await failureOf(client.query(sql))
      expect(failed, failed.message).toMatchObject({
        code: '42501',
        hint: expect.stringContaining('GRANT TEMPORARY'),
      })
      for (const [shard, name] of databases.entries())
        await rig().onShard(shard, `grant temporary on database "${name}" to public`)
      expect((await client.query(sql)).rows).toEqual([{ n: 3 }])
    })
    await everywhere('drop policy few on purse; alter table purse disable row level security')
    await rig().expectClean()
  })
})
