/** One balanced connection over three servers that stay: its connections, its errors, what it tells when closed. */
import { afterEach, describe, expect, it } from 'vitest'
import {
  type BalancedConnection,
  connectBalanced,
} from '../../../src/client/balanced-connection.js'
import { Prng } from '../../../src/topology/prng.js'
import { usePostgres } from '../../support/use-postgres.js'

const postgres = usePostgres({ version: 15, count: 3 })
const opened: BalancedConnection[] = []
afterEach(async () => {
  for (const one of opened.splice(0)) await one.end().catch(() => undefined)
})

const names = () => postgres().servers.map(({ host, port }) => `${host}:${port}`)
const target = () => `postgres://postgres@${names().join(',')}/${postgres().database}`

async function connection(
  options: Parameters<typeof connectBalanced>[1] = {},
): Promise<BalancedConnection> {
  const made = await connectBalanced(target(), { strategy: 'round_robin', ...options })
  opened.push(made)
  return made
}

const pidOf = async (from: BalancedConnection) =>
  Number((await from.query<{ pid: number }>('select pg_backend_pid() as pid')).rows[0]?.pid)

describe('a balanced connection', () => {
  it('J2, J3, J6, J14: by chance when nothing is said; hosts keep their connections and their places over switches', async () => {
    const one = await connectBalanced(target(), {
      applicationName: 'kept',
      random: Prng.ofSeed(5n),
    })
    opened.push(one)
    expect(one.stats().picks).toMatchObject({ start: 1, 'transaction end': 0 })
    const pids = new Map<string, Set<number>>()
    const order: string[] = []
    for (let n = 0; n < 12; n++) {
      order.push(one.host!)
      const of = pids.get(one.host!) ?? new Set()
      pids.set(one.host!, of.add(await pidOf(one)))
      await one.query('begin')
      await one.query('commit')
    }
    expect([...pids.keys()].sort()).toEqual(names().sort())
    // chance picks the same host twice now and then, taking turns never does
    expect(order.some((host, n) => host === order[n - 1])).toBe(true)
    // one connection a host, however often it was picked, and one host a connection
    for (const of of pids.values()) expect(of.size).toBe(1)
    expect(one.stats().hosts.map(({ host }) => host)).toEqual(names())
    expect(one.stats().hosts.map(({ open }) => open)).toEqual([1, 1, 1])
  })

  it("J17, J18: an error reaches the caller as it is: the server's, or the program's own", async () => {
    const one = await connection()
    const failed = await one.query('select 1/0').catch((error: unknown) => error)
    expect(failed).toBeInstanceOf(Error)
    expect(failed).toMatchObject({ code: '22012', severity: 'ERROR', message: 'division by zero' })
    const own = new TypeError('no such thing')
    const value = {
      toPostgres: () => {
        throw own
      },
    }
    await expect(one.query('select $1::int', [value])).rejects.toBe(own)
    expect(one.stats().picks.error).toBe(0)
  })

  it('J20: the same error object switches once', async () => {
    const same = Object.assign(new Error('gone'), { code: '08006' })
    const one = await connection({ blocklistTimeoutMs: 0 })
    const value = {
      toPostgres: () => {
        throw same
      },
    }
    for (let n = 0; n < 3; n++)
      await expect(one.query('select $1::int', [value])).rejects.toBe(same)
    expect(one.stats().picks.error).toBe(1)
  })

  it('J32, J33: what may be asked of a closed connection is answered', async () => {
    const one = await connection()
    const host = one.host
    one.abort()
    expect([one.isClosed, one.inTransaction, one.host]).toEqual([true, false, host])
    expect(one.stats().hosts).toHaveLength(3)
    expect(await one.ping()).toBe(false)
    await expect(one.query('select 1')).rejects.toMatchObject({ code: 'CLIENT_CLOSED' })
  })

  it('J43, J48: it says why it switched, and how long connecting took', async () => {
    const one = await connection()
    for (let n = 0; n < 3; n++) {
      await one.query('begin')
      await one.query('commit')
      await one.query('select 1')
    }
    expect(one.stats().picks).toEqual({ start: 1, reconnect: 0, error: 0, 'transaction end': 3 })
    for (const { connectMs } of one.stats().hosts) expect(connectMs).toBeGreaterThan(0)
  })
})
