/** node-postgres with pg-cursor and pg-copy-streams, and postgres.js: usual work, several clients at once, as direct. */
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import pg from 'pg'
import { from as copyFrom, to as copyTo } from 'pg-copy-streams'
import Cursor from 'pg-cursor'
import postgresJs from 'postgres'
import { describe, expect, it } from 'vitest'
import { type Target, useDriverRig } from './driver-rig.js'

const CLIENTS = 4

/** Several clients at once, each with tables of its own. */
const together = <T>(work: (n: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: CLIENTS }, (_, n) => work(n)))

async function withClient<T>(target: Target, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: target.url })
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

const codeOf = (error: unknown) => {
  const { code, message } = error as { code?: string; message: string }
  return { code, message }
}

async function readByCursor(client: pg.Client, table: string) {
  await client.query('begin')
  const sql = `select id from ${table} where id > $1 order by id`
  const cursor = client.query(new Cursor<{ id: number }>(sql, [5]))
  const sizes: number[] = []
  let last = 0
  for (;;) {
    const rows = await cursor.read(30)
    sizes.push(rows.length)
    last = rows.at(-1)?.id ?? last
    if (rows.length === 0) break
  }
  await cursor.close()
  // two at once, and one that is left before its end
  const left = client.query(new Cursor<{ id: number }>(sql, [50]))
  const some = await left.read(3)
  await left.close()
  await client.query('commit')
  const alone = client.query(new Cursor<{ id: number }>(sql, [190]))
  const outside = await alone.read(100)
  await alone.close()
  return { sizes, last, some, outside }
}

async function copyBothWays(client: pg.Client, table: string) {
  const lines = Array.from({ length: 5000 }, (_, n) => `${1000 + n}\tcopied ${n}\n`)
  const into = client.query(copyFrom(`copy ${table} (id, name) from stdin`))
  await pipeline(Readable.from(lines), into)
  const out = client.query(copyTo(`copy (select * from ${table} order by id) to stdout`))
  let bytes = 0
  for await (const chunk of out) bytes += (chunk as Buffer).length
  const bad = client.query(copyFrom(`copy ${table} (id, name) from stdin`))
  const failure = await pipeline(Readable.from(['x\ty\n']), bad).catch(codeOf)
  return { rows: into.rowCount, bytes, failure }
}

async function nodePostgres(target: Target, n: number) {
  return withClient(target, async (client) => {
    const notices: (string | undefined)[] = []
    client.on('notice', (notice) => notices.push(notice.message))
    const table = `node_${n}`
    await client.query(`create table ${table} (id int primary key, name text, data jsonb)`)
    const insert = `insert into ${table} values ($1, $2, $3) returning *`
    const first = await client.query(insert, [1, "o'neil", { a: [1, null] }])
    const many = `insert into ${table} select n, 'name ' || n from generate_series(2, 200) n`
    const filled = await client.query(many)
    const named = { name: 'by id', text: `select name from ${table} where id = $1` }
    const names: unknown[] = []
    for (let id = 1; id < 40; id++)
      names.push((await client.query({ ...named, values: [id] })).rows[0])
    const several = await client.query(`select 1 as a; select 2 as b, 'x' as c; begin; commit`)
    const nothing = await client.query('')
    const queued = await Promise.all(
      Array.from({ length: 20 }, (_, i) => client.query('select $1::int + 1 as n', [i])),
    )
    const cursor = await readByCursor(client, table)
    const copied = await copyBothWays(client, table)
    const failed = await client.query('select 1 / $1::int', [0]).catch(codeOf)
    await client.query('begin')
    await client.query('savepoint a')
    const missing = await client.query('select * from no_such_table_of_ours').catch(codeOf)
    const aborted = await client.query('select 1').catch(codeOf)
    await client.query('rollback to a')
    const again = await client.query({ ...named, values: [3] })
    await client.query('commit')
    await client.query(`alter table ${table} alter column name type varchar(50)`)
    const changed = await client.query({ ...named, values: [4] }).catch(codeOf)
    await client.query(`do $$ begin raise notice 'of ${n}'; end $$`)
    await client.query(`drop table ${table}`)
    return {
      ...{ first: first.rows, filled: filled.rowCount, names, cursor, copied, failed, missing },
      ...{ aborted, again: again.rows, notices, nothing: nothing.command },
      several: (several as unknown as pg.QueryResult[]).map(({ command, rows }) => [command, rows]),
      queued: queued.map(({ rows }) => rows[0].n),
      changed: 'code' in changed ? changed : changed.rows,
    }
  })
}

async function postgresJsWork(target: Target, n: number) {
  const sql = postgresJs(target.url, { max: 2, onnotice: () => undefined })
  const table = sql(`postgresjs_${n}`)
  await sql`create table ${table} (id int primary key, name text, tags text[])`
  const rows = Array.from({ length: 50 }, (_, id) => ({ id, name: `name ${id}`, tags: ['a', 'b'] }))
  const inserted = await sql`insert into ${table} ${sql(rows)} returning id`
  const many = await Promise.all(
    Array.from({ length: 60 }, (_, id) => sql`select name from ${table} where id = ${id}`),
  )
  const undone = await sql
    .begin(async (tx) => {
      await tx`delete from ${table}`
      await tx.savepoint((inner) => inner`select 1 / 0`).catch(() => undefined)
      throw new Error(`left ${(await tx`select * from ${table}`).length}`)
    })
    .catch(codeOf)
  const batch = await sql.begin((tx) => [
    tx`update ${table} set name = 'x' where id = 1`,
    tx`select name from ${table} where id = 1`,
  ])
  const portions: number[] = []
  await sql`select id from ${table} order by id`.cursor(15, (part) => {
    portions.push(part.length)
  })
  const simple = await sql`select 1 as a; select 2 as a`.simple()
  const writable = await sql`copy ${table} (id, name) from stdin`.writable()
  await pipeline(Readable.from(['100\tone\n', '101\ttwo\n']), writable)
  const readable =
    await sql`copy (select id, name from ${table} where id >= 100 order by id) to stdout`.readable()
  let copied = ''
  for await (const chunk of readable) copied += String(chunk)
  const described = await sql`select id, tags from ${table}`.describe()
  const failed = await sql`select * from no_such_table_of_ours where id = ${1}`.catch(codeOf)
  await sql`drop table ${table}`
  await sql.end()
  return {
    ...{ inserted: inserted.length, undone, portions, simple, copied, failed },
    many: many.map((found) => found[0]?.['name']),
    batch: batch.map((result) => [result.command, result.count, [...result]]),
    described: described.columns.map(({ name, type }) => [name, type]),
  }
}

describe('drivers of Node', () => {
  const rig = useDriverRig(['prepared_statements_limit = 40'])

  it('node-postgres does its usual work', async () => {
    const [one] = await rig().same((target) => together((n) => nodePostgres(target, n)))
    expect(one?.cursor.sizes).toEqual([30, 30, 30, 30, 30, 30, 15, 0])
    expect(one?.copied.rows).toBe(5000)
    expect(one?.changed).toMatchObject({ code: '0A000' })
  })

  it('the pool of node-postgres keeps transactions apart', async () => {
    const total = await rig().same(async (target) => {
      const pool = new pg.Pool({ connectionString: target.url, max: 8 })
      await pool.query('create table pooled (id int primary key, n int)')
      await pool.query('insert into pooled select n, 0 from generate_series(1, 5) n')
      const move = async (n: number) => {
        const client = await pool.connect()
        try {
          await client.query('begin')
          await client.query('update pooled set n = n + 1 where id = $1', [(n % 5) + 1])
          await client.query(n % 3 === 0 ? 'rollback' : 'commit')
        } finally {
          client.release()
        }
      }
      await Promise.all(Array.from({ length: 60 }, (_, n) => move(n)))
      const { rows } = await pool.query('select sum(n)::int as n from pooled')
      await pool.query('drop table pooled')
      await pool.end()
      return rows[0].n as number
    })
    expect(total).toBe(40)
  })

  it('postgres.js does its usual work', async () => {
    const [one] = await rig().same((target) => together((n) => postgresJsWork(target, n)))
    expect(one?.portions).toEqual([15, 15, 15, 5])
    expect(one?.copied).toBe('100\tone\n101\ttwo\n')
  })

  it('a statement that is cancelled or late fails alone, and its client goes on', async () => {
    const done = await rig().same(async (target) => {
      const sql = postgresJs(target.url, { max: 2 })
      const slow = sql`select pg_sleep(30)`.execute()
      // the first may come before the statement has begun
      const repeat = setInterval(() => slow.cancel(), 100)
      const cancelled = await slow.catch(codeOf)
      clearInterval(repeat)
      const after = await sql`select 1 as one`
      await sql.end()
      const late = await withClient(target, async (client) => {
        await client.query('begin')
        await client.query('set local statement_timeout = 100')
        const alone = await client.query('select pg_sleep(30)').catch(codeOf)
        await client.query('rollback')
        const { rows } = await client.query('show statement_timeout')
        return { alone, rows }
      })
      return { cancelled, after: [...after], late }
    })
    const code = '57014'
    expect(done).toMatchObject({ cancelled: { code }, late: { alone: { code } } })
  })

  it('node-postgres hears in a transaction only what it ends with', async () => {
    const heard = await rig().same((target) =>
      withClient(target, async (client) => {
        const payloads: string[] = []
        client.on('notification', ({ payload = '' }) => payloads.push(payload))
        await client.query('listen node_news')
        await client.query("notify node_news, 'own'")
        await client.query('begin')
        await client.query("notify node_news, 'with the commit'")
        payloads.push('before the commit')
        await client.query('commit')
        await client.query('unlisten node_news')
        await client.query("notify node_news, 'never'")
        await client.query({ name: 'again', text: 'listen node_news' })
        await client.query("notify node_news, 'again'")
        return payloads
      }),
    )
    expect(heard).toEqual(['own', 'before the commit', 'with the commit', 'again'])
  })

  it('postgres.js hears what others notify', async () => {
    const heard = await rig().same(async (target) => {
      const sql = postgresJs(target.url, { max: 1 })
      const payloads: string[] = []
      const done = new Promise<void>((resolve) => {
        void sql
          .listen('news', (payload) => {
            if (payloads.push(payload) === 3) resolve()
          })
          .then(async () => {
            await sql.notify('news', 'one')
            await sql.begin(async (tx) => {
              await tx`select pg_notify('news', ${'two'})`
              await tx`select pg_notify('news', ${'three'})`
            })
          })
      })
      await done
      await sql.end()
      return payloads
    })
    expect(heard).toEqual(['one', 'two', 'three'])
  })
})
