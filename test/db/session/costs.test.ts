/** What a proxy is for: what was paid once is not paid again, by whoever asks next. */
import pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Served, startServe } from '../../support/serve.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'

describe('D223: what is saved', () => {
  const postgres = usePostgres({ version: 15 })
  let served: Served
  let databases: string[]

  beforeAll(async () => {
    const { port } = postgres().servers[0]!
    databases = [postgres().database, await postgres().createDatabase()]
    for (const [shard, database] of databases.entries()) {
      const client = await postgres().connect(0, database)
      await client.query('create table met (id bigint primary key)')
      await client.query('insert into met values ($1)', [shard])
      await client.end()
    }
    served = await startServe({
      shards: databases.map((database) => ({ host: 'localhost', port, database })),
      general: ['default_pool_size = 1', 'min_pool_size = 0', 'dns_ttl = 60000'],
      tables: '[[sharded_tables]]\ndatabase = "app"\nname = "met"\ncolumn = "id"\n',
    })
  })

  const onConsole = async (sql: string) => {
    const client = new pg.Client({ connectionString: served.adminUrl })
    await client.connect()
    const { rows } = await client.query(sql)
    await client.end()
    return rows as Record<string, unknown>[]
  }

  it('connections: ten clients one after the other meet one server', async () => {
    const pids = new Set<unknown>()
    for (let i = 0; i < 10; i++) {
      const [row] = await served.query('select pg_backend_pid() as pid from met where id = 1')
      pids.add(row?.['pid'])
    }
    expect(pids.size).toBe(1)
  })

  it('statements: two clients who prepare one text share it on the server', async () => {
    const text = 'select id, 223 as row from met where id = $1'
    const clients = await Promise.all([served.connect(), served.connect()])
    for (const [i, client] of clients.entries())
      await client.query({ name: `own name ${i}`, text, values: [1] })
    const { rows } = await clients[0]!.query(
      `select count(*)::int as n from pg_prepared_statements where statement = '${text}'
       and (select count(*) from met where id = 1) >= 0`,
    )
    expect(rows).toEqual([{ n: 1 }])
    for (const client of clients) await client.end()
  })

  it('reading SQL: a text with other literals is not read anew', async () => {
    for (let id = 0; id < 5; id++)
      await served.query(`select id, 'cached' from met where id = ${id}`)
    const plans = await onConsole('show query_cache')
    const own = plans.filter(({ query }) => query === 'select id, ? from met where id = ?')
    expect(own.map(({ hits, direct }) => [Number(hits), Number(direct)])).toEqual([[5, 5]])
  })

  it('time: shards work at the same time', async () => {
    const keepers = await Promise.all(databases.map((name) => postgres().connect(0, name)))
    for (const keeper of keepers) await keeper.query('begin; lock table met')
    const answer = served.query('select id from met order by id')
    await waitFor(async () => {
      const { rows } = await keepers[0]!.query(
        "select count(distinct datname)::int as n from pg_stat_activity where wait_event_type = 'Lock' and datname = any($1)",
        [databases],
      )
      return rows[0]?.n === 2
    })
    for (const keeper of keepers) {
      await keeper.query('commit')
      await keeper.end()
    }
    expect(await answer).toEqual([{ id: '0' }, { id: '1' }])
  })

  it('names of hosts: looked up once, and kept', async () => {
    const names = await onConsole('show dns_hosts')
    expect(names.map(({ hostname, ttl }) => [hostname, Number(ttl)])).toEqual([['localhost', 60]])
    expect(names[0]?.['addrs']).toMatch(/127\.0\.0\.1/)
  })
})
