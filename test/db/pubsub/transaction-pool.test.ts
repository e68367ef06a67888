/** LISTEN and NOTIFY through a transaction pool whose only server nobody may keep; what is right is what PostgreSQL does. */
import type pg from 'pg'
import { afterEach, beforeAll, describe, expect, it, test } from 'vitest'
import { type Served, startServe } from '../../support/serve.js'
import { bySize } from '../../support/test-size.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'
import { Listener } from './listener.js'

describe('LISTEN through a transaction pool of one server', () => {
  const postgres = usePostgres({ version: 15 })
  let served: Served
  const open: Listener[] = []

  beforeAll(async () => {
    const { host, port } = postgres().servers[0]!
    await postgres().query('create table counter (n int); insert into counter values (0)')
    served = await startServe({
      shards: [{ host, port, database: postgres().database }],
      general: ['default_pool_size = 1', 'checkout_timeout = 5000'],
    })
  })

  const listen = async (...statements: string[]): Promise<Listener> => {
    const listener = await Listener.at(served, ...statements)
    open.push(listener)
    return listener
  }

  afterEach(async () => {
    for (const listener of open.splice(0)) await listener.end()
  })

  /** Everything that was sent before has been heard when this has. */
  const fence = async (listener: Listener, channel: string): Promise<string[]> => {
    const mark = `fence ${Math.random()}`
    await postgres().query('select pg_notify($1, $2)', [channel, mark])
    await listener.until(mark)
    return listener.payloads.filter((payload) => !payload.startsWith('fence'))
  }

  test('D217: clients listen without keeping a server, and hear what comes through the pool and past it', async () => {
    const listeners = [await listen('listen a'), await listen('listen a'), await listen('listen b')]
    const sender = await listen()
    await sender.query("notify a, 'through'")
    await sender.query("select pg_notify('b', 'by function')")
    await postgres().query("notify a, 'past'")
    for (const listener of listeners.slice(0, 2)) {
      expect(await listener.until('past')).toEqual(['through', 'past'])
    }
    expect(await listeners[2]!.until('by function')).toEqual(['by function'])
    expect(sender.heard).toEqual([])
    // all of them still find the one server
    for (const listener of listeners) {
      expect((await listener.query('select 1 as one')).rows).toEqual([{ one: 1 }])
    }
    const admin = await Listener.atUrl(served.adminUrl)
    open.push(admin)
    const { rows } = await admin.query('show clients')
    expect(rows.filter(({ pinned_by }) => pinned_by !== '')).toEqual([])
  })

  it('takes effect at COMMIT, and not at all with ROLLBACK', async () => {
    const listener = await listen('listen fence', 'begin', 'listen a')
    await postgres().query("notify a, 'before the commit'")
    await listener.query('select 1')
    await listener.query('commit')
    expect(await fence(listener, 'fence')).toEqual([])
    await postgres().query("notify a, 'after the commit'")
    expect(await fence(listener, 'fence')).toEqual(['after the commit'])
    await listener.query('begin')
    await listener.query('listen b')
    await listener.query('rollback')
    await postgres().query("notify b, 'rolled back'")
    expect(await fence(listener, 'fence')).toEqual(['after the commit'])
  })

  it('is undone by ROLLBACK TO a savepoint, as UNLISTEN and NOTIFY are', async () => {
    const listener = await listen('listen fence', 'listen kept')
    await listener.query('begin')
    await listener.query('listen outer_one')
    await listener.query('savepoint s')
    await listener.query('listen inner_one')
    await listener.query('unlisten kept')
    await listener.query("notify fence, 'undone'")
    await listener.query('rollback to s')
    await listener.query('savepoint t')
    await listener.query('listen released')
    await listener.query('release t')
    await listener.query('commit')
    for (const channel of ['outer_one', 'inner_one', 'kept', 'released']) {
      await postgres().query('select pg_notify($1, $1)', [channel])
    }
    expect(await fence(listener, 'fence')).toEqual(['outer_one', 'kept', 'released'])
  })

  it('a failed transaction listens to nothing, and LISTEN in it fails as PostgreSQL lets it fail', async () => {
    const listener = await listen('listen fence', 'begin', 'listen a')
    await expect(listener.query('select 1/0')).rejects.toMatchObject({ code: '22012' })
    await expect(listener.query('listen b')).rejects.toMatchObject({ code: '25P02' })
    expect((await listener.query('commit')).command).toBe('ROLLBACK')
    await postgres().query("notify a, 'never'")
    await postgres().query("notify b, 'never'")
    expect(await fence(listener, 'fence')).toEqual([])
  })

  it('holds notifications back while the client is in a transaction, and tells them in order at its end', async () => {
    const listener = await listen('listen a', 'listen fence', 'begin', 'select 1')
    for (let i = 0; i < 5; i++) await postgres().query(`notify a, '${i}'`)
    const other = await listen('listen fence')
    await fence(other, 'fence')
    await listener.query('select 2')
    expect(listener.heard).toEqual([])
    await listener.query('commit')
    expect(listener.payloads.slice(0, 5)).toEqual(['0', '1', '2', '3', '4'])
  })

  it('UNLISTEN counts from COMMIT on: what came meanwhile is not told', async () => {
    const listener = await listen('listen a', 'listen fence', 'begin', 'unlisten a')
    await postgres().query("notify a, 'meanwhile'")
    const other = await listen('listen fence')
    await fence(other, 'fence')
    await listener.query('commit')
    expect(await fence(listener, 'fence')).toEqual([])
  })

  it('tells a client its own notification before the answer of its COMMIT is over, in its own name', async () => {
    const listener = await listen('listen own')
    const { processID } = listener.client as pg.Client & { processID: number }
    await listener.query("notify own, 'at once'")
    expect(listener.heard).toEqual([{ channel: 'own', payload: 'at once', processId: processID }])
    await listener.query('begin')
    await listener.query("notify own, 'in a transaction'")
    await listener.query("notify own, 'in a transaction'")
    expect(listener.payloads).toEqual(['at once'])
    await listener.query('commit')
    expect(listener.payloads).toEqual(['at once', 'in a transaction'])
    await postgres().query("notify own, 'of another'")
    await listener.until('of another')
    expect(listener.heard.at(-1)?.processId).not.toBe(processID)
    // by the function it is told as well, at the latest right behind the answer
    await listener.query("select pg_notify('own', 'by function')")
    expect(await listener.until('by function')).toHaveLength(4)
  })

  it('carries payloads of 7999 bytes, any text, and folds duplicates of one transaction', async () => {
    const listener = await listen('listen a')
    const long = 'x'.repeat(7999)
    const sender = await listen()
    await sender.client.query('select pg_notify($1, $2)', ['a', long])
    await sender.query("notify a, 'Grüße 🐘 ''quoted'''")
    await sender.query("begin; notify a, 'twice'; notify a, 'twice'; commit")
    await sender.query('notify a')
    await sender.query("notify a, 'last'")
    expect(await listener.until('last')).toEqual([long, "Grüße 🐘 'quoted'", 'twice', '', 'last'])
    await expect(
      sender.client.query('select pg_notify($1, $2)', ['a', `${long}x`]),
    ).rejects.toMatchObject({ code: '22023' })
  })

  it('names of channels are folded, quoted and cut as names are', async () => {
    const name = 'n'.repeat(70)
    const listener = await listen(
      'LISTEN Mixed',
      'listen "Mixed"',
      'listen "with ""quotes"""',
      `listen ${name}`,
    )
    const sender = await listen()
    await sender.query("notify mixed, 'folded'")
    await sender.query(`notify "Mixed", 'quoted'`)
    await sender.query(`notify "with ""quotes""", 'quotes'`)
    await sender.query(`notify ${name}, 'cut'`)
    await listener.until('cut')
    expect(listener.heard.map(({ channel }) => channel)).toEqual([
      'mixed',
      'Mixed',
      'with "quotes"',
      'n'.repeat(63),
    ])
  })

  it('UNLISTEN, UNLISTEN * and DISCARD ALL end it', async () => {
    const first = await listen('listen a', 'listen b', 'listen fence', 'unlisten a')
    const second = await listen('listen a', 'listen b', 'unlisten *', 'listen fence')
    const third = await listen('listen a', 'listen b', 'discard all', 'listen fence')
    await postgres().query('notify a')
    await postgres().query("notify b, 'b'")
    expect(await fence(first, 'fence')).toEqual(['b'])
    expect(await fence(second, 'fence')).toEqual([])
    expect(await fence(third, 'fence')).toEqual([])
  })

  it('works in requests of several statements, and is undone with them', async () => {
    const listener = await listen()
    const results = (await listener.query(
      "select 1 as one; listen a; select 'LISTEN b' as text; listen fence",
    )) as unknown as pg.QueryResult[]
    expect(results.map(({ command }) => command)).toEqual(['SELECT', 'LISTEN', 'SELECT', 'LISTEN'])
    expect(results[2]?.rows).toEqual([{ text: 'LISTEN b' }])
    await expect(listener.query('listen gone; select 1/0')).rejects.toMatchObject({ code: '22012' })
    await listener.query('begin; listen in_one; commit; select 1')
    await postgres().query("notify a, 'a'")
    await postgres().query("notify gone, 'gone'")
    await postgres().query("notify in_one, 'in one'")
    expect(await fence(listener, 'fence')).toEqual(['a', 'in one'])
  })

  it('works in the extended protocol, prepared once and run often', async () => {
    const listener = await listen('listen fence')
    const prepared = { name: 'l', text: 'listen prepared' }
    expect((await listener.client.query(prepared)).command).toBe('LISTEN')
    await postgres().query("notify prepared, 'first'")
    expect(await fence(listener, 'fence')).toEqual(['first'])
    await listener.query('unlisten prepared')
    await listener.client.query(prepared)
    await listener.client.query({ text: 'listen unnamed', values: [] })
    await postgres().query("notify prepared, 'again'")
    await postgres().query("notify unnamed, 'unnamed'")
    expect(await fence(listener, 'fence')).toEqual(['first', 'again', 'unnamed'])
  })

  it('pg_listening_channels() says what was committed, alone and in a simple query', async () => {
    const listener = await listen()
    const channels = async () =>
      (await listener.query('select pg_listening_channels()')).rows.map(
        (row) => row.pg_listening_channels,
      )
    expect(await channels()).toEqual([])
    await listener.query('listen a; listen "B"')
    expect(await channels()).toEqual(['a', 'B'])
    await listener.query('begin')
    await listener.query('unlisten a')
    expect(await channels()).toEqual(['a', 'B'])
    await listener.query('commit')
    const { rows } = await listener.query('select * from pg_listening_channels() as name')
    expect(rows).toEqual([{ name: 'B' }])
    for (const query of [
      'select count(*) from pg_listening_channels()',
      { text: 'select pg_listening_channels()', name: 'prepared' },
    ]) {
      await expect(listener.client.query(query as string)).rejects.toMatchObject({ code: '0A000' })
    }
    await listener.query('unlisten *')
    const none = await listener.query('select count(*)::int as n from pg_listening_channels()')
    expect(none.rows).toEqual([{ n: 0 }])
  })

  it('refuses to PREPARE a transaction that has listened, as PostgreSQL does', async () => {
    const listener = await listen('begin', 'listen a')
    await expect(listener.query("prepare transaction 'x'")).rejects.toMatchObject({ code: '0A000' })
    expect((await listener.query('rollback')).command).toBe('ROLLBACK')
  })

  it('hears nothing that was committed before it listened, also on a channel that others hear', async () => {
    await listen('listen early')
    for (let i = 0; i < bySize(20, 200); i++) {
      const listener = await listen()
      await listener.query(`notify early, 'before ${i}'`)
      await listener.query('listen early')
      await listener.query(`notify early, 'own ${i}'`)
      expect(listener.payloads).toEqual([`own ${i}`])
      await listener.query('unlisten early')
      await listener.query(`notify early, 'between ${i}'`)
      await listener.query('listen early')
      await listener.query(`notify early, 'again ${i}'`)
      expect(listener.payloads).toEqual([`own ${i}`, `again ${i}`])
    }
  })

  it('misses nothing that commits behind the answer of LISTEN', async () => {
    const writer = await postgres().connect()
    let isWriting = true
    const writing = (async () => {
      for (let n = 1; isWriting; n++) {
        await writer.query(`begin; update counter set n = ${n}; notify counter, '${n}'; commit`)
      }
    })()
    for (let i = 0; i < bySize(20, 200); i++) {
      const listener = await listen('listen counter')
      const seen = Number((await listener.query('select n from counter')).rows[0].n)
      const wanted = seen + 5
      await waitFor(() => listener.payloads.some((payload) => Number(payload) >= wanted))
      const heard = listener.payloads.map(Number)
      // each once, in order, and none of those behind what was read left out
      expect(heard).toEqual(heard.map((_, at) => heard[0]! + at))
      expect(heard[0]).toBeLessThanOrEqual(seen + 1)
      await listener.end()
    }
    isWriting = false
    await writing
    await writer.end()
  })

  it('hundreds of channels of one client, and hundreds of clients of one channel', async () => {
    const channels = Array.from({ length: 300 }, (_, i) => `many_${i}`)
    const wide = await listen()
    await wide.query(channels.map((channel) => `listen ${channel}`).join('; '))
    await postgres().query(`select pg_notify('many_' || i, i::text) from generate_series(0, 299) i`)
    await waitFor(() => wide.heard.length === 300)
    expect(wide.payloads).toEqual(channels.map((_, i) => String(i)))
    const count = bySize(100, 1000)
    const crowd: Listener[] = []
    for (let at = 0; at < count; at += 20) {
      crowd.push(...(await Promise.all(Array.from({ length: 20 }, () => listen('listen crowd')))))
    }
    for (const payload of ['one', 'two', 'three']) {
      await postgres().query('select pg_notify($1, $2)', ['crowd', payload])
    }
    await Promise.all(crowd.map((listener) => listener.until('three')))
    for (const listener of crowd) expect(listener.payloads).toEqual(['one', 'two', 'three'])
  })

  it('never comes inside an answer', async () => {
    const listener = await listen('listen a')
    const order: string[] = []
    const { connection } = listener.client as unknown as {
      connection: { on(event: string, run: () => void): void }
    }
    connection.on('dataRow', () => order.push('row'))
    connection.on('readyForQuery', () => order.push('ready'))
    connection.on('notificationResponse', () => order.push('notification'))
    const reading = listener.query('select i, pg_sleep(0.001) from generate_series(1, 300) i')
    await waitFor(() => order.includes('row'))
    await postgres().query("notify a, 'meanwhile'")
    await reading
    await listener.until('meanwhile')
    const at = order.indexOf('notification')
    expect(order.slice(0, at).filter((what) => what === 'row')).toHaveLength(300)
  })
})
