/** The connection that listens for all: what becomes of clients when it is lost, of those who do not read, and what the console shows. */
import { afterEach, beforeAll, describe, expect, it, test } from 'vitest'
import { type Served, startServe } from '../../support/serve.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'
import { Listener } from './listener.js'

const HUBS = `select pid from pg_stat_activity
  where application_name = 'pgshard listener' and datname = current_database()`

describe('the connection that listens for clients', () => {
  const postgres = usePostgres({ version: 15 })
  const open: Listener[] = []
  let served: Served
  let pinning: Served
  let sessionMode: Served

  beforeAll(async () => {
    const { host, port } = postgres().servers[0]!
    const shards = [{ host, port, database: postgres().database }]
    served = await startServe({ shards, general: ['pub_sub_channel_size = 100'] })
    pinning = await startServe({ shards, general: ['pub_sub_channel_size = 0'] })
    sessionMode = await startServe({ shards, general: ['pooler_mode = "session"'] })
  })

  const listen = async (at: Served, ...statements: string[]): Promise<Listener> => {
    const listener = await Listener.at(at, ...statements)
    open.push(listener)
    return listener
  }

  afterEach(async () => {
    for (const listener of open.splice(0)) await listener.end()
  })

  const hubs = async (): Promise<number[]> =>
    (await postgres().query(HUBS)).map(({ pid }) => Number(pid))

  const show = async (command: string): Promise<Record<string, unknown>[]> => {
    const admin = await Listener.atUrl(served.adminUrl)
    try {
      return (await admin.query(command)).rows
    } finally {
      await admin.end()
    }
  }

  it('is one for all clients and all channels, and the console shows it', async () => {
    await listen(served, 'listen a', 'listen b')
    await listen(served, 'listen a')
    expect(await hubs()).toHaveLength(1)
    await postgres().query('notify a')
    await waitFor(async () =>
      (await show('show listeners')).some(({ received }) => received === '1'),
    )
    expect(await show('show listeners')).toMatchObject([
      {
        database: 'app',
        user: 'postgres',
        channel: 'a',
        listeners: '2',
        received: '1',
        dropped: '0',
      },
      { channel: 'b', listeners: '1', received: '0' },
    ])
    const servers = await show('show servers')
    expect(servers.filter(({ state }) => state === 'listening')).toMatchObject([
      { remote_pid: String((await hubs())[0]), application_name: 'pgshard listener', shard: '0' },
    ])
  })

  it('lost, it ends those who listened with a FATAL that says why, and nobody else', async () => {
    const idle = await listen(served, 'listen a')
    const pending = await listen(served, 'begin', 'listen a')
    const working = await listen(served, 'listen a', 'begin', 'select 1')
    const formerly = await listen(served, 'listen a', 'unlisten a')
    const never = await listen(served, 'select 1')
    const [pid] = await hubs()
    await postgres().query('select pg_terminate_backend($1)', [pid])
    for (const { ended } of [
      await waitFor(() => idle.ended && idle),
      await waitFor(() => pending.ended && pending),
    ]) {
      expect(ended).toMatchObject({ code: '57P01' })
      expect(ended?.message).toMatch(/notifications may have been missed/)
    }
    // its transaction may end first: nothing in it depends on what was missed
    expect((await working.query('commit')).command).toBe('COMMIT')
    await waitFor(() => working.ended)
    for (const listener of [formerly, never]) {
      expect((await listener.query('select 1 as one')).rows).toEqual([{ one: 1 }])
    }
    const again = await listen(served, 'listen a')
    await postgres().query("notify a, 'again'")
    expect(await again.until('again')).toEqual(['again'])
  })

  it('ends a listener who stays in a transaction for too many notifications, and says so', async () => {
    const other = await listen(served, 'listen a')
    const held = await listen(served, 'listen a', 'begin', 'select 1')
    await postgres().query("select pg_notify('a', i::text) from generate_series(1, 99) i")
    await other.until('99')
    expect(held.ended).toBeUndefined()
    await postgres().query("select pg_notify('a', i::text) from generate_series(100, 150) i")
    await waitFor(() => held.ended)
    expect(held.ended).toMatchObject({ code: '53400' })
    expect(await other.until('150')).toHaveLength(150)
    expect((await show('show listeners')).find(({ channel }) => channel === 'a')).toMatchObject({
      dropped: '1',
    })
  })

  it('ends a listener who does not read, while others go on', async () => {
    const other = await listen(served, 'listen deaf')
    const deaf = await listen(served, 'listen deaf')
    const { stream } = (deaf.client as unknown as { connection: { stream: NodeJS.ReadableStream } })
      .connection
    const rowOf = async () =>
      (await show('show listeners')).find(({ channel }) => channel === 'deaf')
    stream.pause()
    try {
      const payload = 'x'.repeat(7900)
      for (let round = 0; round < 200 && (await rowOf())?.['dropped'] === '0'; round++) {
        await postgres().query("select pg_notify('deaf', i || $1) from generate_series(1, 50) i", [
          payload,
        ])
        await other.until(`50${payload}`)
        other.heard.length = 0
      }
      expect(await rowOf()).toMatchObject({ listeners: '1', dropped: '1' })
    } finally {
      stream.resume()
    }
    await waitFor(() => deaf.ended)
  })

  test('clients of another encoding hear what can be written in it, and end at what cannot', async () => {
    const latin = await listen(served, "set client_encoding to 'LATIN1'", 'listen a')
    await postgres().query("notify a, 'plain'")
    await latin.until('plain')
    await expect(latin.query('listen "schöne"')).rejects.toMatchObject({ code: '0A000' })
    await postgres().query("notify a, 'schön'")
    await waitFor(() => latin.ended)
    expect(latin.ended).toMatchObject({ code: '22P05' })
  })

  it('does not stand in the way of PAUSE, and is not replaced by RECONNECT and RELOAD', async () => {
    const listener = await listen(served, 'listen a')
    const before = await hubs()
    for (const command of ['pause', 'resume', 'reconnect', 'reload']) await show(command)
    await postgres().query("notify a, 'still'")
    expect(await listener.until('still')).toEqual(['still'])
    expect(await hubs()).toEqual(before)
  })

  it('turned off, LISTEN keeps its server', async () => {
    const before = await hubs()
    const listener = await listen(pinning, 'listen a')
    expect(await hubs()).toEqual(before)
    await postgres().query("notify a, 'direct'")
    expect(await listener.until('direct')).toEqual(['direct'])
    const { rows } = await listener.query('select pg_listening_channels() as channel')
    expect(rows).toEqual([{ channel: 'a' }])
  })

  it('is not used in session mode, where the server listens', async () => {
    const before = await hubs()
    const listener = await listen(sessionMode, 'listen a')
    await postgres().query("notify a, 'direct'")
    expect(await listener.until('direct')).toEqual(['direct'])
    expect(await hubs()).toEqual(before)
  })

  it('takes a place under max_db_connections, and waits for one', async () => {
    const { host, port } = postgres().servers[0]!
    const small = await startServe({
      shards: [{ host, port, database: await postgres().createDatabase() }],
      general: ['max_db_connections = 2', 'default_pool_size = 2', 'checkout_timeout = 1000'],
    })
    const one = await listen(small, 'begin', 'select 1')
    const two = await listen(small, 'begin', 'select 1')
    const third = await listen(small)
    await expect(third.query('listen a')).rejects.toMatchObject({ code: '53300' })
    await two.query('commit')
    await third.query('listen a')
    await one.query("notify a, 'heard'")
    await one.query('commit')
    expect(await third.until('heard')).toEqual(['heard'])
    await one.query('begin')
    await one.query('select 1')
    await expect(two.query('select 1')).rejects.toMatchObject({ code: '53300' })
  })
})
