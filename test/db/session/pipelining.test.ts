/** What is pipelined and what is not, against real servers: a statement that was sent behind one that waits for a lock shows it. */
import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sendCancel } from '../../support/send-cancel.js'
import { type Served, startServe } from '../../support/serve.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'
import { lockedRead, Stage } from './pipelining-stage.js'

const schema = `
  create table free (id int primary key, v text);
  insert into free select n, 'v' || n from generate_series(1, 100) n;
  create table locked (id int primary key, v text);
  insert into locked values (1, 'locked');
  create view plain_view as select id, upper(v) as v from free;
  create view sleeping_view as select id, v from free where pg_sleep(0) is not null;
  create function lower(free) returns text language sql stable as 'select $1.v';
  create function shouted(free) returns text language sql immutable as 'select upper($1.v)';
  create function clean(int) returns int language sql immutable as 'select $1';
  create domain checked as int check (value > 0);
  create table guarded (id int primary key, owner text);
  insert into guarded values (1, 'postgres');
  alter table guarded enable row level security;
  create policy own on guarded using (owner = current_user);
  create table spied (id int primary key);
  insert into spied values (1);
  alter table spied enable row level security;
  create function spy() returns bool language plpgsql stable as 'begin return true; end';
  create policy spies on spied using (spy());
  create table counted (n int)`

describe('pipelining', () => {
  const postgres = usePostgres({ version: 15 })
  let served: Served
  let stage: Stage

  beforeAll(async () => {
    for (const sql of schema.split(';\n')) await postgres().query(sql)
    const { host, port } = postgres().servers[0]!
    served = await startServe({
      shards: [{ host, port, database: postgres().database }],
      general: [
        'default_pool_size = 2',
        'min_pool_size = 2',
        'pipeline_stall_ms = 60_000',
        'assume_clean_functions = ["clean"]',
      ],
    })
    stage = await Stage.open(served, postgres())
    // the schema is read a little after the start
    await waitFor(() => isPipelined('select v from free where id = 2'), { deadlineMs: 30_000 })
  })
  afterAll(() => stage?.close())

  /** Runs `sql` often enough to be known, then behind a statement that waits. */
  async function isPipelined(sql: string, values?: unknown[]): Promise<boolean> {
    const client = await served.connect()
    try {
      for (let i = 0; i < 3; i++) await client.query(sql, values)
      return await stage.carries(() => client.query(sql, values))
    } finally {
      await client.end()
    }
  }

  it.each([
    'select v from free where id = 3',
    'select count(*), max(v) from free where id between 1 and 10',
    "select a.v from free a join free b using (id) where b.v like 'v1%' order by 1 limit 3",
    'with few as (select * from free where id < 5) select now() is not null, v from few',
    'select v from plain_view where id = 4',
    'select id from guarded',
    'select clean(id) from free where id = 1',
    'select 1',
  ])('carries %s', async (sql) => {
    expect(await isPipelined(sql)).toBe(true)
  })

  it('carries the extended protocol', async () => {
    expect(await isPipelined('select v from free where id = $1', [5])).toBe(true)
  })

  it.each([
    'select v from sleeping_view where id = 1',
    'select v from free where id = 1 for update',
    'select random(), v from free where id = 1',
    'select pg_backend_pid(), v from free where id = 1',
    "select set_config('work_mem', '8MB', true), v from free where id = 1",
    'select f.shouted from free f where id = 1',
    'select spy(), v from free where id = 1',
    'select id::checked from free where id = 1',
    'select id from spied',
    'select relname from pg_class where oid = 1259',
    'insert into counted values (1)',
    'update free set v = v where id = 1',
    'with gone as (delete from counted where n < 0 returning n) select * from gone',
    'select v from free where id = 1; select v from free where id = 2',
  ])('gives a server of its own to %s', async (sql) => {
    expect(await isPipelined(sql)).toBe(false)
  })

  it('notices what changes past the proxy', async () => {
    await postgres().query('create table late as select * from free')
    await waitFor(() => isPipelined('select v from late where id = 1'), { deadlineMs: 40_000 })
    const asleep = 'select id, upper(v) as v from free where pg_sleep(0) is not null'
    await postgres().query(`create or replace view plain_view as ${asleep}`)
    const isAlone = async () => !(await isPipelined('select v from plain_view where id = 5'))
    await waitFor(isAlone, { deadlineMs: 40_000 })
  })

  it('runs DML once each beside a head that waits', async () => {
    await postgres().query('truncate counted')
    const clients = await Promise.all(Array.from({ length: 5 }, () => served.connect()))
    for (const client of clients) await client.query('insert into counted values (0)')
    const { headDone, sent } = await stage.block(() =>
      clients.map((client) => client.query('insert into counted values (1)')),
    )
    await stage.freeServer()
    await Promise.all(sent)
    expect(await postgres().query('select count(*)::int as n from counted where n = 1')).toEqual([
      { n: 5 },
    ])
    await stage.unlock()
    await headDone
    await Promise.all(clients.map((client) => client.end()))
  })

  it('D81: fails the head alone when its server is killed', async () => {
    const doomed = await Stage.open(served, postgres())
    const clients = await readers(8)
    const { headDone, sent } = await doomed.block(() => clients.map(readOf))
    await postgres().query('select pg_terminate_backend($1)', [await doomed.waitingPid()])
    await doomed.freeServer()
    expect(await Promise.all(sent)).toEqual(clients.map((_, n) => `v${n + 1}`))
    await expect(headDone).rejects.toMatchObject({ code: '57P01' })
    await doomed.unlock()
    await doomed.close()
    await Promise.all(clients.map((client) => client.end()))
  })

  it('cancels what waits behind another without touching it, and the head without the others', async () => {
    const clients = await readers(3)
    const [cancelled, ...others] = clients as [pg.Client, ...pg.Client[]]
    const { headDone, sent } = await stage.block(() => [
      expect(readOf(cancelled, 0)).rejects.toMatchObject({ code: '57014' }),
      ...others.map((client, n) => readOf(client, n + 1)),
    ])
    await sendCancel(cancelled, served.port)
    await sent[0]
    expect(await stage.waitingPid()).toBeDefined()
    await sendCancel(stage.head, served.port)
    await expect(headDone).rejects.toMatchObject({ code: '57014' })
    await stage.freeServer()
    expect(await Promise.all(sent.slice(1))).toEqual(['v2', 'v3'])
    await stage.unlock()
    expect((await stage.head.query(lockedRead)).rows).toEqual([{ v: 'locked' }])
    await Promise.all(clients.map((client) => client.end()))
  })

  it('does not mind a client that leaves from the middle', async () => {
    const clients = await readers(3)
    const { headDone, sent } = await stage.block(() =>
      clients.map((client, n) => readOf(client, n).catch(() => 'gone')),
    )
    ;(
      clients[1] as unknown as { connection: { stream: { destroy(): void } } }
    ).connection.stream.destroy()
    await stage.unlock()
    expect((await headDone).rows).toEqual([{ v: 'locked' }])
    expect(await Promise.all(sent)).toEqual(['v1', 'gone', 'v3'])
    await stage.freeServer()
    await clients[0]?.end()
    await clients[2]?.end()
  })

  /** Clients whose class of statements is known. */
  async function readers(count: number): Promise<pg.Client[]> {
    const clients = await Promise.all(Array.from({ length: count }, () => served.connect()))
    for (const client of clients) client.on('error', () => undefined)
    for (const [n, client] of clients.entries()) await readOf(client, n)
    return clients
  }

  const readOf = async (client: pg.Client, n: number): Promise<string> =>
    (await client.query(`select v from free where id = ${n + 1}`)).rows[0].v as string

  it('reads a text that was pipelined anew when the session or the schema gives it another meaning', async () => {
    const client = await served.connect()
    const other = await served.connect()
    const ask = async (id: number) =>
      (await client.query(`select v from alike where id = ${id}`)).rows
    try {
      await other.query('create table alike (id int primary key, v text)')
      await other.query("insert into alike select n, 'old' || n from generate_series(1, 9) n")
      await waitFor(() => isPipelined('select v from alike where id = 1'), { deadlineMs: 30_000 })
      for (let id = 1; id <= 5; id++) expect(await ask(id)).toEqual([{ v: `old${id}` }])
      await client.query('create temp table alike as select 6 as id, $$mine$$::text as v')
      expect(await ask(6)).toEqual([{ v: 'mine' }])
      await client.query('drop table pg_temp.alike')
      expect(await ask(6)).toEqual([{ v: 'old6' }])
      await other.query('create schema elsewhere create table alike (id int, v text)')
      await other.query("insert into elsewhere.alike values (7, 'elsewhere')")
      await client.query('set search_path to elsewhere')
      expect(await ask(7)).toEqual([{ v: 'elsewhere' }])
      await client.query('reset search_path')
      expect(await ask(7)).toEqual([{ v: 'old7' }])
      await client.query('begin')
      await client.query("update alike set v = 'changed' where id = 8")
      expect(await ask(8)).toEqual([{ v: 'changed' }])
      await client.query('rollback')
      expect(await ask(8)).toEqual([{ v: 'old8' }])
      await expect(client.query('select v from alike where id = 1/0')).rejects.toThrow(/zero/)
      expect(await ask(9)).toEqual([{ v: 'old9' }])
    } finally {
      await other.query('drop table alike')
      await other.query('drop schema elsewhere cascade')
      await client.end()
      await other.end()
    }
  }, 60_000)
})
