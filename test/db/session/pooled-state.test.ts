/** What the console and the servers see of a session in transaction mode. */
import pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Served, startServe } from '../../support/serve.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'
import { fieldsOf, say, WireClient } from '../../support/wire-client.js'

describe('a session in transaction mode', () => {
  const postgres = usePostgres({ version: 15 })
  let served: Served
  let console: pg.Client

  beforeAll(async () => {
    const { host, port } = postgres().servers[0]!
    served = await startServe({
      shards: [{ host, port, database: postgres().database }],
      general: ['default_pool_size = 2', 'min_pool_size = 0', 'checkout_timeout = 60000'],
    })
    console = new pg.Client({ connectionString: served.adminUrl })
    await console.connect()
    return () => console.end()
  })

  /** Servers that clients hold. */
  const lent = async (): Promise<number> => {
    const { rows } = await console.query('show pools')
    return Number(rows[0].sv_active) + Number(rows[0].sv_idle_xact)
  }
  const states = async (of: 'clients' | 'servers'): Promise<string[]> => {
    const { rows } = await console.query(`show ${of}`)
    return rows
      .filter(({ database }) => database !== 'pgshard')
      .map(({ state }) => state)
      .sort()
  }

  it('D49: takes no server for BEGIN, nor for a transaction in which nothing came', async () => {
    const client = await WireClient.open(served)
    await client.rows('begin')
    await waitFor(async () => (await lent()) === 0)
    await client.rows('select 1')
    expect(await lent()).toBe(1)
    await client.rows('commit')
    await waitFor(async () => (await lent()) === 0)
    // none is free, and still it is answered
    const holders = await Promise.all([WireClient.open(served), WireClient.open(served)])
    for (const holder of holders) {
      await holder.rows('begin')
      await holder.rows('select 1')
    }
    for (let i = 0; i < 3; i++) {
      const [begin = []] = await client.ask(say.query('begin'))
      expect(begin.map(({ tag }) => tag).join('')).toBe('CZ')
      expect(begin.at(-1)?.body.toString()).toBe('T')
      const [commit = []] = await client.ask(say.query('commit'))
      expect(commit[0]?.body.toString()).toBe('COMMIT\0')
    }
    for (const one of [client, ...holders]) await one.end()
  })

  it('D23: is shown idle, waiting, active and idle in transaction as it is', async () => {
    const clients = await Promise.all(Array.from({ length: 3 }, () => WireClient.open(served)))
    const [first, second, third] = clients as [WireClient, WireClient, WireClient]
    await waitFor(async () => (await states('clients')).join() === 'idle,idle,idle')
    await first.rows('begin')
    await first.rows('select 1')
    const asleep = second.rows('select pg_sleep(60)').catch((error) => error.fields['C'])
    await waitFor(async () => (await states('clients')).includes('active'))
    const waits = third.rows('select 3')
    await waitFor(async () => (await states('clients')).includes('waiting'))
    expect(await states('clients')).toEqual(['active', 'idle in transaction', 'waiting'])
    expect((await states('servers')).every((state) => state !== 'idle')).toBe(true)
    await first.rows('commit')
    expect(await waits).toEqual([['3']])
    await second.cancel(served.port)
    expect(await asleep).toBe('57014')
    await waitFor(async () => (await states('servers')).every((state) => state === 'idle'))
    for (const client of clients) await client.end()
    await waitFor(async () => (await states('clients')).length === 0)
  })

  it('D48: ends each transaction, however it ends, in the state that it began in', async () => {
    const client = await WireClient.open(served)
    const base = [
      'idle',
      await client.rows('show work_mem'),
      await client.rows('show transaction_isolation'),
    ]
    for (const [end, tag] of [
      ['commit', 'COMMIT'],
      ['rollback', 'ROLLBACK'],
    ] as const) {
      for (const fails of [false, true]) {
        await client.rows('begin isolation level repeatable read read only')
        await client.rows("set local work_mem to '9MB'")
        await client.rows('savepoint one')
        if (fails) {
          const [answer = []] = await client.ask(say.query('select 1 / 0'))
          expect(fieldsOf(answer[0]!)['C']).toBe('22012')
          expect(answer.at(-1)?.body.toString()).toBe('E')
        }
        const [answer = []] = await client.ask(say.query(end))
        expect(answer[0]?.body.toString()).toBe(`${fails ? 'ROLLBACK' : tag}\0`)
        expect(answer.at(-1)?.body.toString()).toBe('I')
        expect([
          ...(await states('clients')),
          await client.rows('show work_mem'),
          await client.rows('show transaction_isolation'),
        ]).toEqual(base)
      }
    }
    await client.end()
  })

  it('D47: goes back to the names that it came with, letter for letter', async () => {
    const parameters = { options: '-c search_path=s2,"A\\ b",public' }
    const { port } = postgres().servers[0]!
    const heard = async (client: WireClient) => {
      const seen: unknown[] = []
      const show = async () => seen.push(await client.rows('show search_path'))
      await show()
      for (const back of ['reset search_path', 'set search_path to default', 'reset all']) {
        await client.rows('set search_path to other')
        await client.rows(back)
        await show()
      }
      await client.rows('begin')
      await client.rows('set search_path to other')
      await client.rows('set local search_path to default')
      await show()
      await client.rows('commit')
      await show()
      await client.end()
      return seen
    }
    const direct = await WireClient.open({ port, database: postgres().database, parameters })
    const through = await WireClient.open({ ...served, database: 'app', parameters })
    expect(await heard(through)).toEqual(await heard(direct))
  })

  it('B12: gives its server to the next when its transaction ends, and not before', async () => {
    const [one, two] = [await WireClient.open(served), await WireClient.open(served)]
    const holder = await WireClient.open(served)
    await holder.rows('begin')
    await holder.rows('select 1')
    const pidOf = (client: WireClient) => client.rows('select pg_backend_pid()')
    const pid = await pidOf(one)
    expect(await pidOf(two)).toEqual(pid)
    await one.rows('begin')
    expect(await pidOf(one)).toEqual(pid)
    let isServed = false
    const next = pidOf(two).then((rows) => {
      isServed = true
      return rows
    })
    await waitFor(async () => (await states('clients')).includes('waiting'))
    expect(isServed).toBe(false)
    await one.rows('commit')
    expect(await next).toEqual(pid)
    for (const client of [one, two, holder]) await client.end()
  })

  it('D12: counts more than 22 figures, of which those that moved have moved', async () => {
    const client = await WireClient.open(served)
    await client.rows('select 1')
    const read = async (): Promise<Record<string, string>> =>
      (await console.query('show stats')).rows[0]
    const before = await read()
    const names = Object.keys(before).filter((name) => /^(total|avg|wait|connect)_/.test(name))
    expect(names.length).toBeGreaterThan(22)
    for (const name of names) expect(Number(before[name]), name).toBeGreaterThanOrEqual(0)
    for (let i = 0; i < 10; i++) await client.rows('select 1')
    const after = await read()
    const grown = (name: string) => Number(after[name]) - Number(before[name])
    expect(grown('total_query_count')).toBe(10)
    expect(grown('total_xact_count')).toBe(10)
    for (const name of ['total_received', 'total_sent']) expect(grown(name)).toBeGreaterThan(100)
    await client.end()
  })
})
