/** Clients that come and go in crowds: all are served, nobody is counted twice or forgotten, and the others go on meanwhile. */
import pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Served, startServe } from '../../support/serve.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'
import { say, WireClient, WireError } from '../../support/wire-client.js'

const CROWD = 1000
const SERVERS = 10
const LIMIT = 60
const PASSWORD = 'storm'
/** Far above what a loaded machine needs for one turn of the event loop. */
const LONGEST_PING_MS = 3000

/** One of several clients' addresses: one would run out of ports that are free for it. */
const localAddress = (n: number) => `127.0.1.${1 + (n % 20)}`

describe('clients in crowds', () => {
  const postgres = usePostgres({ version: 15 })
  let served: Served
  let console: pg.Client

  const start = async (general: readonly string[]) => {
    const { host, port } = postgres().servers[0]!
    return await startServe({
      shards: [{ host, port, database: postgres().database }],
      general: [`default_pool_size = ${SERVERS}`, 'checkout_timeout = 60000', ...general],
      password: PASSWORD,
    })
  }

  beforeAll(async () => {
    served = await start(['max_client_conn = 5000'])
    console = new pg.Client({ connectionString: served.adminUrl })
    await console.connect()
    return () => console.end()
  })

  const open = (n: number, port = served.port) =>
    WireClient.open({ port, database: 'app', password: PASSWORD, localAddress: localAddress(n) })
  /** As SHOW CLIENTS has it, without the console's own. */
  const countClients = async (): Promise<number> => {
    const { rows } = await console.query('show clients')
    return rows.filter(({ database }) => database === 'app').length
  }

  it('D2, D222: a thousand that connect at once with SCRAM are all served by ten servers', async () => {
    const pinger = await open(0)
    let isOver = false
    let longest = 0
    const pings = (async () => {
      while (!isOver) {
        const from = performance.now()
        expect(await pinger.rows("select 'ping'")).toEqual([['ping']])
        longest = Math.max(longest, performance.now() - from)
      }
    })()
    const crowd = await Promise.all(Array.from({ length: CROWD }, (_, n) => open(n)))
    expect(await countClients()).toBe(CROWD + 1)
    const answers = await Promise.all(crowd.map((client, n) => client.rows(`select 'client ${n}'`)))
    expect(answers).toEqual(crowd.map((_, n) => [[`client ${n}`]]))
    isOver = true
    await pings
    expect(longest).toBeLessThan(LONGEST_PING_MS)
    const [backends] = await postgres().query(
      `select count(*)::int as n from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`,
    )
    expect(backends?.['n']).toBeLessThanOrEqual(SERVERS)
    for (const [n, client] of crowd.entries()) {
      if (n % 2 === 0) client.socket.destroy()
      else await client.end()
    }
    await waitFor(async () => (await countClients()) === 1)
    await pinger.end()
  })

  it('D54, D222: the count is exact when clients leave at any point of their way', async () => {
    const stayed: WireClient[] = []
    const lane = async (number: number) => {
      for (let turn = 0; turn < 20; turn++) {
        const client = await open(number)
        switch ((turn + number) % 5) {
          case 0:
            client.socket.destroy()
            break
          case 1:
            await client.end()
            break
          case 2:
            client.send(say.query("select repeat('x', 1000) from generate_series(1, 5000)"))
            await client.next()
            client.socket.destroy()
            break
          case 3:
            await client.rows('begin')
            client.socket.resetAndDestroy()
            break
          default:
            if (turn % 10 < 5) await client.end()
            else stayed.push(client)
        }
      }
    }
    await Promise.all(Array.from({ length: 30 }, (_, number) => lane(number)))
    expect(stayed.length).toBeGreaterThan(30)
    await waitFor(async () => (await countClients()) === stayed.length)
    for (const client of stayed) expect(await client.rows('select 1')).toEqual([['1']])
    await Promise.all(stayed.map((client) => client.end()))
    await waitFor(async () => (await countClients()) === 0)
  })

  it('B16: of a crowd exactly max_client_conn get in, however their logins overlap', async () => {
    const limited = await start([`max_client_conn = ${LIMIT}`])
    const tries = await Promise.allSettled(
      Array.from({ length: 3 * LIMIT }, (_, n) => open(n, limited.port)),
    )
    const inside = tries.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
    const refused = tries.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []))
    expect(inside).toHaveLength(LIMIT)
    for (const error of refused) {
      expect(error).toBeInstanceOf(WireError)
      expect((error as WireError).fields).toMatchObject({
        V: 'FATAL',
        C: '53300',
        M: 'no more connections allowed (max_client_conn)',
      })
    }
    for (const client of inside) expect(await client.rows('select 1')).toEqual([['1']])
    await inside.shift()!.end()
    const next = await waitFor(() => open(0, limited.port))
    expect(await next.rows('select 1')).toEqual([['1']])
    await Promise.all([next, ...inside].map((client) => client.end()))
  })
})
