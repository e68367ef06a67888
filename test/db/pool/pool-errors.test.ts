/** Each error of the pool by its real cause, as a client of `serve` meets it. */
import { createServer, type Server } from 'node:net'
import type pg from 'pg'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { type Served, type ShardAddress, startServe } from '../../support/serve.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'
import { askConsole } from '../../support/workers.js'

const postgres = usePostgres()
const holes: Server[] = []
const clients: pg.Client[] = []

afterEach(async () => {
  for (const client of clients.splice(0)) await client.end().catch(() => undefined)
})
afterAll(() => {
  for (const hole of holes) hole.close()
})

const own = (): ShardAddress => {
  const [at] = postgres().servers
  if (!at) throw new Error('no server')
  return { host: at.host, port: at.port, database: postgres().database }
}

/** Takes connections and says nothing. */
async function blackHole(): Promise<ShardAddress> {
  const hole = createServer((socket) => socket.on('error', () => undefined))
  holes.push(hole)
  await new Promise<void>((resolve) => hole.listen(0, '127.0.0.1', resolve))
  const { port } = hole.address() as { port: number }
  return { host: '127.0.0.1', port, database: postgres().database }
}

const serve = (shards: ShardAddress[], ...general: string[]): Promise<Served> =>
  startServe({ shards, general: ['min_pool_size = 0', ...general] })

async function connect(served: Served): Promise<pg.Client> {
  const client = await served.connect()
  client.on('error', () => undefined)
  clients.push(client)
  return client
}

const failureOf = (work: Promise<unknown>): Promise<{ code: string; message: string }> =>
  work.then(
    () => {
      throw new Error('it did not fail')
    },
    ({ code, message }) => ({ code, message }),
  )

describe('pool errors', () => {
  test('D211: CheckoutTimeout names the pool, its use and the limit', async () => {
    const served = await serve([own()], 'default_pool_size = 1', 'checkout_timeout = 200')
    const holder = await connect(served)
    await holder.query('BEGIN')
    await holder.query('SELECT 1')
    const second = await connect(served)
    const failure = await failureOf(second.query('SELECT 1'))
    expect(failure.code).toBe('53300')
    expect(failure.message).toMatch(/timed out after 200 ms waiting for a server connection to /)
    expect(failure.message).toContain('1 of 1 in use')
    await holder.query('COMMIT')
    expect((await second.query('SELECT 7 AS x')).rows).toEqual([{ x: 7 }])
  })

  test('D211, D213: ConnectTimeout when a host takes connections and says nothing', async () => {
    const served = await serve([await blackHole()], 'connect_timeout = 300')
    const failure = await failureOf(connect(served))
    expect(failure.code).toBe('08001')
    expect(failure.message).toMatch(
      /^could not connect to shard 0 of database "\w+" at [\w.]+:\d+ within 300 ms$/,
    )
  })

  test('DISABLE refuses new clients, ENABLE lets them in; who is there stays', async () => {
    const served = await serve([own()])
    const client = await connect(served)
    await client.query('SELECT 1')
    const gone = await askConsole(served, 'DISABLE app').then(() => failureOf(served.connect()))
    expect(gone).toEqual({ code: '57P03', message: 'database "app" is disabled' })
    await askConsole(served, 'ENABLE app')
    expect((await client.query('SELECT 1 AS x')).rows).toEqual([{ x: 1 }])
  })

  test('D211: HealthcheckError is said in the log, with the host', async () => {
    const [at] = postgres().servers
    // One server: a look takes whichever has been idle for longest, and reading the catalogue may have opened a second.
    const one = ['default_pool_size = 1', 'healthcheck_timeout = 300', 'healthcheck_interval = 0']
    const served = await serve([own()], ...one)
    const client = await connect(served)
    const [server] = (await client.query('SELECT pg_backend_pid() AS pid')).rows
    process.kill(server.pid, 'SIGSTOP')
    try {
      const said = new RegExp(`health check of .*:${at?.port} failed`)
      // A look finds nothing to check while the one server is lent.
      await waitFor(async () => {
        await askConsole(served, 'HEALTHCHECK')
        return said.test(served.program.stdout + served.program.stderr)
      })
    } finally {
      process.kill(server.pid, 'SIGCONT')
    }
  })

  test('D216: a server that comes back out of step is thrown away and counted, and a new one serves', async () => {
    const served = await serve([own()], 'default_pool_size = 1', 'connection_recovery = "drop"')
    const client = await connect(served)
    const [before] = (await client.query('SELECT pg_backend_pid() AS pid')).rows
    // it goes in the middle of an answer
    client
      .query('SELECT repeat($1, 1000000) FROM generate_series(1, 100)', ['x'])
      .catch(() => undefined)
    await waitFor(async () => {
      const [row] = await askConsole(served, 'SHOW POOLS')
      return Number(row?.['sv_active']) > 0
    })
    ;(
      client as unknown as { connection: { stream: { destroy(): void } } }
    ).connection.stream.destroy()
    const next = await connect(served)
    const [after] = (await next.query('SELECT pg_backend_pid() AS pid')).rows
    expect(after.pid).not.toBe(before.pid)
    const [pool] = await askConsole(served, 'SHOW POOLS')
    expect(Number(pool?.['out_of_sync']) + Number(pool?.['force_closed'])).toBeGreaterThan(0)
  })

  test('client_connection_recovery = "drop" ends a client that got no server', async () => {
    const one = ['default_pool_size = 1', 'checkout_timeout = 200']
    const served = await serve([own()], ...one, 'client_connection_recovery = "drop"')
    const holder = await connect(served)
    await holder.query('BEGIN')
    await holder.query('SELECT 1')
    const second = await connect(served)
    const ended = new Promise<void>((resolve) => second.on('end', resolve))
    expect((await failureOf(second.query('SELECT 1'))).code).toBe('53300')
    await ended
  })
})
