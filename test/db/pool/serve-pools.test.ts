/** Pools of a running serve, small enough to be empty: who waits, in which order, why, and what ends a wait. */
import { createServer, type Server, type Socket } from 'node:net'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Served, startServe } from '../../support/serve.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'

const CHECKOUT_MS = 1500

const adminRows = async (served: Served, sql: string) => {
  const admin = new pg.Client({ connectionString: served.adminUrl })
  await admin.connect()
  try {
    return (await admin.query(sql)).rows as Record<string, unknown>[]
  } finally {
    await admin.end()
  }
}

const failureOf = (promise: Promise<unknown>) =>
  promise.then(
    () => undefined,
    (error: unknown) => error as { code: string; message: string; hint?: string },
  )

describe('a pool of one', () => {
  const postgres = usePostgres({ version: 15 })
  let hole: Server
  const swallowed: Socket[] = []
  let served: Served

  beforeAll(async () => {
    // takes every connection and never says a word
    hole = createServer((socket) => {
      swallowed.push(socket)
      socket.on('error', () => undefined)
    })
    const port = await new Promise<number>((resolve) => {
      hole.listen(0, '127.0.0.1', () => resolve((hole.address() as { port: number }).port))
    })
    const { host, port: own } = postgres().servers[0]!
    const { database } = postgres()
    served = await startServe({
      shards: [
        { host, port: own, database, shard: 0 },
        { host: '127.0.0.1', port, database, shard: 0, role: 'replica' },
      ],
      general: [
        'default_pool_size = 1',
        `checkout_timeout = ${CHECKOUT_MS}`,
        'connect_timeout = 400',
        'query_timeout = 4000',
        'load_balancing_strategy = "round_robin"',
      ],
    })
  })
  afterAll(async () => {
    for (const socket of swallowed) socket.destroy()
    await new Promise((resolve) => hole.close(resolve))
  })

  it('D98, D224: a replica that takes connections and never answers is banned; reads go elsewhere', async () => {
    const client = await served.connect()
    for (let i = 0; i < 3; i++)
      expect((await client.query('select 1 as n')).rows).toEqual([{ n: 1 }])
    const pools = await adminRows(served, 'show pools')
    expect(pools.find(({ role }) => role === 'replica')).toMatchObject({
      banned: true,
      healthy: false,
    })
    expect(pools.find(({ role }) => role === 'primary')).toMatchObject({ banned: false })
    const from = performance.now()
    await client.query('select 1')
    expect(performance.now() - from).toBeLessThan(390)
    await client.end()
  })

  it('D152, D158, D212: who waits longer than checkout_timeout gets 53300 and no server later', async () => {
    const [holder, waiter] = [await served.connect(), await served.connect()]
    await holder.query('begin')
    await holder.query('select 1')
    const from = performance.now()
    expect(await failureOf(waiter.query('insert into nowhere values (1)'))).toMatchObject({
      code: '53300',
    })
    expect(performance.now() - from).toBeGreaterThanOrEqual(CHECKOUT_MS - 5)
    await holder.query('commit')
    const [pool] = (await adminRows(served, 'show pools')).filter(({ role }) => role === 'primary')
    expect(pool).toMatchObject({ sv_active: '0', sv_idle: '1', cl_waiting: '0' })
    expect((await waiter.query('select 2 as n')).rows).toEqual([{ n: 2 }])
    await holder.end()
    await waiter.end()
  })

  it('D225: query_timeout is an error of its own; the session goes on, outside its transaction too', async () => {
    const client = await served.connect()
    await client.query("set application_name = 'kept'")
    expect(await failureOf(client.query('select pg_sleep(30)'))).toMatchObject({
      code: '57014',
      message: 'canceling statement due to query_timeout of 4000 ms',
    })
    expect((await client.query('show application_name')).rows).toEqual([
      { application_name: 'kept' },
    ])
    await client.end()
  })
})

describe('transactions over shards with pools of one', () => {
  const postgres = usePostgres({ version: 15 })
  let served: Served

  beforeAll(async () => {
    const { host, port } = postgres().servers[0]!
    const databases = [postgres().database, await postgres().createDatabase()]
    for (const database of databases) {
      const client = await postgres().connect(0, database)
      await client.query('create table item (k bigint primary key)')
      await client.end()
    }
    served = await startServe({
      shards: databases.map((database) => ({ host, port, database })),
      general: ['default_pool_size = 1', 'checkout_timeout = 8000'],
      tables: '[[sharded_tables]]\ndatabase = "app"\nname = "item"\ncolumn = "k"',
    })
  })

  it('that wait for each other: the youngest gets 40001 at once, the other goes on (hard-parts §3.4)', async () => {
    const [old, young] = [await served.connect(), await served.connect()]
    const read = (client: pg.Client, shard: number) =>
      client.query(`/* pgshard_shard: ${shard} */ select count(*) from item`)
    await old.query('begin')
    await read(old, 0)
    await young.query('begin')
    await read(young, 1)
    const from = performance.now()
    const going = read(old, 1)
    await waitFor(async () => {
      const rows = await adminRows(served, 'show clients')
      return rows.some(({ state }) => state === 'waiting')
    })
    expect(await failureOf(read(young, 0))).toMatchObject({
      code: '40001',
      hint: expect.stringContaining('run it again'),
    })
    await young.query('rollback')
    expect((await going).rowCount).toBe(1)
    expect(performance.now() - from).toBeLessThan(7000)
    await old.query('commit')
    await old.end()
    await young.end()
  })

  it('D157: ten wait in the order in which they came, and SHOW CLIENTS says for what', async () => {
    const holder = await served.connect()
    const admin = new pg.Client({ connectionString: served.adminUrl })
    await admin.connect()
    const waiting = async () =>
      (await admin.query('show clients')).rows.filter(({ state }) => state === 'waiting')
    await holder.query('begin')
    await holder.query('select k from item where k = 1')
    const order: number[] = []
    const clients = await Promise.all(Array.from({ length: 10 }, () => served.connect()))
    const waits: Promise<unknown>[] = []
    for (const [n, client] of clients.entries()) {
      const write = client.query('delete from item where k = 1')
      waits.push(write.then(() => order.push(n)))
      await waitFor(async () => (await waiting()).length === n + 1)
    }
    expect((await waiting())[0].waits_for).toMatch(/^all 1 servers of 127\.0\.0\.1:\d+ are in use$/)
    await holder.query('commit')
    await Promise.all(waits)
    expect(order).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    await Promise.all([holder, admin, ...clients].map((client) => client.end()))
  })
})
