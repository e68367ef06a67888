/** Requests that are flushed and stay open: who hears their replies, what ends them, and what a vanished client leaves. */
import pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Served, startServe } from '../../support/serve.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'
import { RawClient } from './sharded-rig.js'

describe('flushed requests on a pool of one', () => {
  const postgres = usePostgres({ version: 15 })
  let served: Served

  beforeAll(async () => {
    const { host, port } = postgres().servers[0]!
    served = await startServe({
      shards: [{ host, port, database: postgres().database }],
      general: ['default_pool_size = 1', 'min_pool_size = 1', 'checkout_timeout = 5000'],
    })
    await served.query('create table kept (n int)')
  })

  it('leave nothing to the next client when theirs vanishes: no replies, no rows', async () => {
    for (const seconds of [0, 0.2]) {
      const gone = await RawClient.open(served.port)
      const sql = `insert into kept select 1 from pg_sleep(${seconds}) returning 'secret'`
      gone.parse('', sql).bind('').execute().flush().send()
      // the second one vanishes while its statement runs
      if (seconds === 0) await gone.until((one) => one.startsWith('C'))
      else await waitFor(async () => (await postgres().query(sleeping))[0]?.['n'] === 1)
      gone.socket.destroy()
      const next = await RawClient.open(served.port)
      next.query('select 2').send()
      await next.until((one) => one.startsWith('Z'))
      expect(next.heard.filter((one) => one.startsWith('D'))).toEqual(['D 2'])
      next.socket.destroy()
    }
    expect(await postgres().query('select * from kept')).toEqual([])
  })

  it('wait for a server with what follows them, and answer in order', async () => {
    const holder = await served.connect()
    await holder.query('begin')
    await holder.query('select 1')
    const client = await RawClient.open(served.port)
    client.parse('', 'select 1').bind('').execute().flush().send()
    client.parse('', 'select 2').bind('').execute().sync().query('select 3').send()
    await waitFor(async () => (await waiting()) === 1)
    expect(client.heard).toEqual([])
    await holder.query('commit')
    await holder.end()
    await client.until((one) => one === 'D 3')
    await waitFor(() => client.heard.at(-1) === 'Z I')
    expect(client.heard.filter((one) => /^[DZ]/.test(one))).toEqual([
      'D 1',
      'D 2',
      'Z I',
      'D 3',
      'Z I',
    ])
    client.socket.destroy()
  })

  it('are refused without ReadyForQuery, which only their Sync brings', async () => {
    const client = await RawClient.open(served.port)
    client.bind('nobody').execute().flush().send()
    await client.until((one) => one.startsWith('E'))
    client.query('select 4').sync().query('select 5').send()
    await client.until((one) => one === 'D 5')
    await waitFor(() => client.heard.at(-1) === 'Z I')
    expect(client.heard.filter((one) => /^[DEZ]/.test(one)).map((one) => one.slice(0, 7))).toEqual([
      'E 26000',
      'Z I',
      'D 5',
      'Z I',
    ])
    client.socket.destroy()
  })

  it('that failed on the server ignore a Query before their Sync', async () => {
    const client = await RawClient.open(served.port)
    client.parse('', 'select 1/0').bind('').execute().flush().send()
    await client.until((one) => one.startsWith('E'))
    client.query('select 4').sync().query('select 5').send()
    await client.until((one) => one === 'D 5')
    expect(client.heard).not.toContain('D 4')
    client.socket.destroy()
  })

  it('need no Flush when they are many: they are served, not stored', async () => {
    const client = await RawClient.open(served.port)
    for (let i = 0; i < 25_000; i++) client.parse('', 'select 1')
    client.send()
    await waitFor(() => client.heard.length === 20_000)
    client.sync().send()
    await waitFor(() => client.heard.length === 25_001)
    client.socket.destroy()
  })

  it('stop being read while their server does not take them', async () => {
    const client = await RawClient.open(served.port)
    client.parse('', 'select pg_sleep(2)').bind('').execute().flush().send()
    const text = 'x'.repeat(1_000_000)
    for (let i = 0; i < 40; i++) client.parse('', `select '${text}'`).flush().send()
    await waitFor(async () => (await postgres().query(asleep))[0]?.['n'] === 1)
    expect(client.socket.writableLength).toBeGreaterThan(10_000_000)
    client.sync().send()
    await client.until((one) => one === 'Z I')
    client.socket.destroy()
  })

  const asleep =
    "select count(*)::int as n from pg_stat_activity where query like 'select pg_sleep%' and wait_event = 'PgSleep'"
  const sleeping =
    "select count(*)::int as n from pg_stat_activity where query like 'insert into kept%' and state = 'active' and wait_event = 'PgSleep'"

  async function waiting(): Promise<number> {
    const console_ = new pg.Client({ connectionString: served.adminUrl })
    await console_.connect()
    try {
      const { rows } = await console_.query('show pools')
      return Number(rows[0].cl_waiting)
    } finally {
      await console_.end()
    }
  }
})
