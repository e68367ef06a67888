/** Client libraries and programs as people use them, through serve in front of one PostgreSQL 15. */
import { spawnSync } from 'node:child_process'
import type { createConnection } from 'node:net'
import postgresJs from 'postgres'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Served, startServe } from '../../support/serve.js'
import { findTool, isMissing, isPythonModuleMissing } from '../../support/tools.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'

const PASSWORD = 'two words '

describe('clients through serve', () => {
  const postgres = usePostgres({ version: 15, password: PASSWORD })
  let served: Served

  beforeAll(async () => {
    const server = postgres().servers[0]!
    served = await startServe({
      shards: [{ host: server.host, port: server.port, database: postgres().database }],
      general: ['default_pool_size = 4', 'prepared_statements_limit = 20'],
      password: PASSWORD,
    })
    await served.query('create table account (id int primary key, owner text, amount int)')
    await served.query(
      "insert into account select n, 'owner ' || n, 100 from generate_series(1, 50) n",
    )
  })

  const run = (program: string, args: string[], input = '') => {
    const done = spawnSync(findTool(program) ?? program, args, {
      encoding: 'utf8',
      input,
      env: { ...process.env, PGPASSWORD: PASSWORD },
    })
    return { code: done.status, stdout: done.stdout, stderr: done.stderr }
  }
  const place = () => ['-h', '127.0.0.1', '-p', String(served.port), '-U', 'postgres']

  it('runs a transaction of node-postgres, with parameters and named statements', async () => {
    const client = await served.connect()
    await client.query('begin')
    const moved = await client.query(
      'update account set amount = amount - $1 where id = $2 returning amount',
      [10, 1],
    )
    await client.query({
      name: 'add',
      text: 'update account set amount = amount + $1 where id = $2',
      values: [10, 2],
    })
    await client.query('commit')
    await client.query({
      name: 'add',
      text: 'update account set amount = amount + $1 where id = $2',
      values: [0, 2],
    })
    const rows = await client.query('select id, amount from account where id in (1, 2) order by id')
    await client.end()
    expect(moved.rows).toEqual([{ amount: 90 }])
    expect(rows.rows).toEqual([
      { id: 1, amount: 90 },
      { id: 2, amount: 110 },
    ])
  })

  it('runs a transaction and pipelined statements of postgres.js', async () => {
    const sql = postgresJs(served.url, { max: 3 })
    const total = await sql.begin(async (tx) => {
      await tx`update account set amount = amount + 1 where id = ${3}`
      const [row] = await tx`select amount from account where id = ${3}`
      return row?.['amount']
    })
    const many = await Promise.all(
      Array.from(
        { length: 60 },
        (_, n) => sql`select ${n}::int as n, owner from account where id = ${(n % 50) + 1}`,
      ),
    )
    await sql.end()
    expect(total).toBe(101)
    expect(many.map((rows) => rows[0]?.['n'])).toEqual(Array.from({ length: 60 }, (_, n) => n))
    expect(many[7]?.[0]?.['owner']).toBe('owner 8')
  })

  it.skipIf(isMissing('psql'))('answers psql and its \\d', () => {
    const shown = run('psql', [...place(), '-c', '\\d account', served.database])
    expect(shown.stdout).toContain('"account_pkey" PRIMARY KEY, btree (id)')
    expect(shown.code).toBe(0)
  })

  it.skipIf(isMissing('pgbench')).each(['simple', 'extended', 'prepared'])(
    'runs pgbench in protocol %s without a failed transaction',
    (protocol) => {
      if (protocol === 'simple')
        expect(run('pgbench', ['-i', '-q', '-s', '1', ...place(), served.database]).code).toBe(0)
      const read = run('pgbench', [
        '-n',
        '-S',
        '-c',
        '8',
        '-T',
        '2',
        '-M',
        protocol,
        ...place(),
        served.database,
      ])
      expect(read.stdout, read.stderr).toContain('number of failed transactions: 0 (0.000%)')
      expect(read.code).toBe(0)
      const write = run('pgbench', [
        '-n',
        '-c',
        '4',
        '-t',
        '50',
        '-M',
        protocol,
        ...place(),
        served.database,
      ])
      expect(write.stdout, write.stderr).toContain(
        'number of transactions actually processed: 200/200',
      )
    },
  )

  it.skipIf(isPythonModuleMissing('psycopg2')).each(['psycopg2', 'psycopg'])(
    'runs a transaction of %s',
    (module) => {
      const program = `
import ${module} as driver
c = driver.connect(host='127.0.0.1', port=${served.port}, user='postgres', password='${PASSWORD}', dbname='${served.database}')
cur = c.cursor()
cur.execute('select amount from account where id = %s for update', (4,))
before = cur.fetchone()[0]
cur.execute('update account set amount = amount + %s where id = %s', (5, 4))
c.commit()
cur.execute('select amount from account where id = 4')
print(cur.fetchone()[0] - before)
c.close()
`
      const done = run('/usr/bin/python3', ['-c', program])
      expect(done.stderr).toBe('')
      expect(done.stdout.trim()).toBe('5')
    },
  )

  it.skipIf(isPythonModuleMissing('asyncpg'))(
    'runs statements of asyncpg, which flushes before it binds',
    () => {
      const program = `
import asyncio, asyncpg
async def main():
    c = await asyncpg.connect(host='127.0.0.1', port=${served.port}, user='postgres', password='${PASSWORD}', database='${served.database}')
    async with c.transaction():
        await c.execute('update account set amount = amount + 1 where id = $1', 5)
    rows = [await c.fetchval('select $1::int * 2', n) for n in range(40)]
    print(sum(rows), await c.fetchval('select amount from account where id = $1', 5))
    await c.close()
asyncio.run(main())
`
      const done = run('/usr/bin/python3', ['-c', program])
      expect(done.stderr).toBe('')
      expect(done.stdout.trim()).toBe('1560 101')
    },
  )

  it('refuses a wrong password as PostgreSQL does', async () => {
    const wrong = served.url.replace(encodeURIComponent(PASSWORD), 'wrong')
    const sql = postgresJs(wrong, { max: 1, onclose: () => undefined })
    await expect(sql`select 1`).rejects.toMatchObject({ code: '28P01' })
    await sql.end()
  })

  it('keeps settings of one client from the next, on every server', async () => {
    const a = await served.connect()
    const b = await served.connect()
    await a.query("set statement_timeout to '1234ms'")
    for (let i = 0; i < 10; i++) {
      expect((await a.query('show statement_timeout')).rows[0]).toEqual({
        statement_timeout: '1234ms',
      })
      expect((await b.query('show statement_timeout')).rows[0]).toEqual({ statement_timeout: '0' })
    }
    await Promise.all([a.end(), b.end()])
  })

  it('rolls back what a vanished client left open, and lends the server again', async () => {
    const port = served.port
    const client = await served.connect()
    await client.query('begin')
    await client.query('update account set amount = -1 where id = 6')
    const socket = (
      client as unknown as { connection: { stream: ReturnType<typeof createConnection> } }
    ).connection.stream
    client.on('error', () => undefined)
    socket.destroy()
    await waitFor(async () => {
      const [row] = await served.query(
        'update account set amount = amount where id = 6 returning amount',
      )
      return row?.['amount'] === 100
    })
    expect(port).toBe(served.port)
  })
})
