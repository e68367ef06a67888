/** Clients that leave while a statement of theirs still runs: what it does to its server must not reach the next client. */
import { beforeAll, describe, expect, it } from 'vitest'
import { openServer } from '../../../src/server/open-server.js'
import { queryFrame } from '../../../src/server/server-connection.js'
import { type Served, startServe } from '../../support/serve.js'
import { startSpoiler } from '../../support/spoiler.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'

describe('a client that vanishes in mid-statement', () => {
  const postgres = usePostgres({ version: 15 })
  let served: Served

  beforeAll(async () => {
    const { host, port } = postgres().servers[0]!
    served = await startServe({
      shards: [{ host, port, database: postgres().database }],
      general: ['default_pool_size = 1'],
    })
  })

  it.each([
    'listen leaked',
    "set statement_timeout to '7654ms'",
    'select pg_advisory_lock(4711)',
    'create temp table leaked (n int)',
  ])('%s', async (statement) => {
    const target = {
      host: '127.0.0.1',
      port: served.port,
      user: 'postgres',
      database: served.database,
    }
    const client = await openServer(target, { timeoutMs: 10_000 })
    client.write(queryFrame(statement), 1)
    client.destroy()
    const [row] = await served.query(
      `select current_setting('statement_timeout') as timeout,
        (select count(*) from pg_listening_channels()) as channels,
        (select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()) as locks,
        to_regclass('pg_temp.leaked') as leaked`,
    )
    expect(row).toEqual({ timeout: '0', channels: '0', locks: '0', leaked: null })
  })

  it.each(['commit', 'begin'])(
    'D55: in the middle of rows, behind a %s: the next client hears its own',
    async (before) => {
      const { port, database } = served
      const target = { host: '127.0.0.1', port, user: 'postgres', database }
      const client = await openServer(target, { timeoutMs: 10_000 })
      await client.query(before)
      client.socket.pause()
      client.write(queryFrame("select n, repeat('x', 1000) from generate_series(1, 200000) n"), 1)
      const busy = `select count(*)::int as n from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid()
        and (query like '%generate_series(1, 200000)%' and state = 'active' or state like 'idle in%')`
      await waitFor(async () => (await postgres().query(busy))[0]?.['n'] === 1)
      client.destroy()
      for (let n = 0; n < 5; n++) expect(await served.query(`select ${n} as n`)).toEqual([{ n }])
      expect(await postgres().query(busy)).toEqual([{ n: 0 }])
    },
  )

  it('hands no notification to a client that does not listen', async () => {
    const heard: unknown[] = []
    const other = await served.connect()
    other.on('notification', (message) => heard.push(message))
    // a function's LISTEN cannot be seen in the statement that calls it
    await served.query(
      `create or replace function listen_hidden() returns void language plpgsql as 'begin listen hidden; end'`,
    )
    await other.query('select listen_hidden()')
    await other.query("notify hidden, 'x'")
    await other.query('select 1')
    await served.query("notify hidden, 'y'")
    await other.query('select 1')
    await other.end()
    expect(heard).toEqual([])
  })
})

describe('a server that is lost in mid-request', () => {
  const postgres = usePostgres({ version: 15 })

  it('ends the client who has a part of a row: an error behind it would be read as the rest', async () => {
    const { host, port } = postgres().servers[0]!
    const spoiler = await startSpoiler({ host, port })
    const served = await startServe({
      shards: [{ host: spoiler.host, port: spoiler.port, database: postgres().database }],
    })
    const client = await served.connect()
    client.on('error', () => undefined)
    const lost = client
      .query("select repeat('x', 100000); select pg_sleep(30)")
      .catch((error: unknown) => error)
    await waitFor(async () => {
      const rows = await postgres().query(
        "select 1 from pg_stat_activity where state = 'active' and wait_event = 'PgSleep'",
      )
      return rows.length === 1
    })
    // by now the client has what the server has sent: all but the end of the row
    await served.query('select 1')
    spoiler.strike('reset')
    expect(String(await lost)).toMatch(/terminated|ECONNRESET/)
    await client.end().catch(() => undefined)
    await spoiler.close()
  })
})
