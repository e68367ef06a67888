/** Balanced pools and connections over three real servers, with hosts that go away and come back. */
import type pg from 'pg'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import {
  type BalancedConnection,
  connectBalanced,
} from '../../../src/client/balanced-connection.js'
import {
  type BalancedPool,
  type BalancedPoolOptions,
  createBalancedPool,
} from '../../../src/client/balanced-pool.js'
import { Prng } from '../../../src/topology/prng.js'
import { type Spoiler, startSpoiler } from '../../support/spoiler.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'

const postgres = usePostgres({ version: 15, count: 3 })
const spoilers: Spoiler[] = []
const opened: { end(): Promise<void> }[] = []

beforeAll(async () => {
  for (const server of postgres().servers) spoilers.push(await startSpoiler(server))
  for (let server = 0; server < 3; server++) {
    await postgres().query('create table work (n int primary key)', [], server)
  }
})
afterEach(async () => {
  for (const one of opened.splice(0)) await one.end().catch(() => undefined)
  for (const spoiler of spoilers) await spoiler.refuse(false)
  for (let server = 0; server < 3; server++) await postgres().query('truncate work', [], server)
})

const ports = () => spoilers.map(({ port }) => port)
const names = () => ports().map((port) => `127.0.0.1:${port}`)
const target = (list: readonly number[] = ports()) =>
  `postgres://postgres@${list.map((port) => `127.0.0.1:${port}`).join(',')}/${postgres().database}`

function pool(options: BalancedPoolOptions = {}, list?: readonly number[]): BalancedPool {
  const made = createBalancedPool(target(list), { random: Prng.ofSeed(3n), ...options })
  made.on('error', () => undefined)
  opened.push(made)
  return made
}

async function connection(
  options: Parameters<typeof connectBalanced>[1] = {},
  list?: readonly number[],
): Promise<BalancedConnection> {
  const made = await connectBalanced(target(list), { strategy: 'round_robin', ...options })
  opened.push(made)
  return made
}

const serverPort = async (from: { query(sql: string): Promise<pg.QueryResult> }) =>
  String((await from.query('select inet_server_port() as port')).rows[0].port)

const pidOf = async (from: BalancedConnection) =>
  Number((await from.query<{ pid: number }>('select pg_backend_pid() as pid')).rows[0]?.pid)

/** Sessions of ours on all three servers. */
async function sessions(name: string): Promise<number> {
  let count = 0
  for (let server = 0; server < 3; server++) {
    const sql = 'select count(*)::int as n from pg_stat_activity where application_name = $1'
    count += Number((await postgres().query(sql, [name], server))[0]?.['n'])
  }
  return count
}

describe('a balanced pool', () => {
  it('J1, J2, J29: spreads statements over three hosts, and works with one', async () => {
    const balanced = pool()
    const counts: Record<string, number> = {}
    await Promise.all(
      Array.from({ length: 300 }, async () => {
        const port = await serverPort(balanced)
        counts[port] = (counts[port] ?? 0) + 1
      }),
    )
    expect(Object.keys(counts)).toHaveLength(3)
    for (const count of Object.values(counts)) expect(count).toBeGreaterThan(60)
    expect(balanced.totalCount).toBeLessThanOrEqual(10)
    const { hosts } = balanced.stats()
    expect(hosts.reduce((sum, { picks }) => sum + picks, 0)).toBe(300)
    for (const host of hosts) {
      expect(host.connectMs, 'J48').toBeGreaterThan(0)
      expect(host.responseMs, 'J48').toBeGreaterThan(0)
    }
    const single = pool({}, [ports()[0] as number])
    expect((await single.query('select $1::int as n', [5])).rows).toEqual([{ n: 5 }])
  })

  it('goes on without a dead host, whose error reaches only who was on it', async () => {
    const balanced = pool({ max: 6, strategy: 'round_robin', blocklistTimeoutMs: 60_000 })
    await Promise.all(Array.from({ length: 12 }, () => balanced.query('select pg_sleep(0.01)')))
    await spoilers[0]?.refuse(true)
    const held = await Promise.all([1, 2, 3].map(() => balanced.connect()))
    spoilers[0]?.strike('reset')
    const answers = await Promise.all(
      held.map((client) =>
        client.query('select 1').then(
          () => client.release(),
          (error: Error) => {
            client.release(error)
            return 'lost'
          },
        ),
      ),
    )
    expect(answers.filter((one) => one === 'lost')).toHaveLength(1)
    await waitFor(() => balanced.stats().hosts[0]?.open === 0)
    const after = await Promise.all(Array.from({ length: 30 }, () => serverPort(balanced)))
    expect(new Set(after)).toEqual(
      new Set(
        postgres()
          .servers.slice(1)
          .map(({ port }) => `${port}`),
      ),
    )
    const [dead] = balanced.stats().hosts
    expect((dead?.failures ?? 0) + (dead?.switches ?? 0)).toBeGreaterThan(0)
    expect(dead?.blockedMs).toBeGreaterThan(1000)
  })

  it('J45: takes hosts in and lets them go while it works', async () => {
    const [a, b, c] = ports() as [number, number, number]
    const balanced = pool({ strategy: 'round_robin' }, [a, b])
    const seen = async () =>
      new Set(await Promise.all(Array.from({ length: 12 }, () => serverPort(balanced))))
    expect((await seen()).size).toBe(2)
    await balanced.addHost(`127.0.0.1:${c}`)
    expect((await seen()).size).toBe(3)
    await balanced.removeHost(`127.0.0.1:${a}`)
    expect(await seen()).toEqual(
      new Set(
        postgres()
          .servers.slice(1)
          .map(({ port }) => `${port}`),
      ),
    )
    expect(balanced.stats().hosts[0]).toMatchObject({ isRemoved: true, open: 0 })
  })

  it('keeps to max over all hosts, first come, first served, and says when the wait is over', async () => {
    const balanced = pool({ max: 2, connectionTimeoutMillis: 100 })
    const [one, two] = [await balanced.connect(), await balanced.connect()]
    await expect(balanced.connect()).rejects.toMatchObject({ code: 'CLIENT_POOL_TIMEOUT' })
    const order: number[] = []
    const waiting = [1, 2].map((n) =>
      balanced.connect().then((client) => {
        order.push(n)
        client.release()
      }),
    )
    expect(balanced.waitingCount).toBe(2)
    one.release()
    await Promise.all(waiting)
    two.release()
    expect(order).toEqual([1, 2])
    expect(balanced.totalCount).toBeLessThanOrEqual(2)
    expect(() => two.release()).toThrow(/already been released/)
  })

  it('J12, J13: a refusal is thrown at once, and all dead is said so', async () => {
    const wrong = createBalancedPool(target().replace('postgres@', 'nobody_knows@'), {
      strategy: 'round_robin',
    })
    await expect(wrong.query('select 1')).rejects.toMatchObject({ code: 'CONNECT_REJECTED' })
    expect(wrong.stats().hosts.reduce((sum, { failures }) => sum + failures, 0)).toBe(0)
    await wrong.end()
    for (const spoiler of spoilers) await spoiler.refuse(true)
    await expect(pool().query('select 1')).rejects.toMatchObject({ code: 'CLIENT_ALL_DOWN' })
  })

  it('gives no client back in the middle of a transaction', async () => {
    const balanced = pool({ max: 1 }, [ports()[0] as number])
    const first = await balanced.connect()
    await first.query('begin')
    await first.query('insert into work values (1)')
    first.release()
    expect((await balanced.query('select count(*)::int as n from work')).rows).toEqual([{ n: 0 }])
    expect(balanced.totalCount).toBe(1)
  })

  it('closes what idles, is worn, or was given back as broken', async () => {
    const balanced = pool({ idleTimeoutMillis: 20, maxUses: 2 }, [ports()[0] as number])
    const [a, b] = [await balanced.query('select 1 as n'), await balanced.query('select 1 as n')]
    expect([a.rows, b.rows]).toEqual([[{ n: 1 }], [{ n: 1 }]])
    expect(balanced.totalCount).toBe(0)
    await balanced.query('select 1')
    expect(balanced.idleCount).toBe(1)
    await waitFor(() => balanced.totalCount === 0)
    const client = await balanced.connect()
    client.release(true)
    expect(balanced.totalCount).toBe(0)
  })

  it('J50: end waits for who is at work and leaves no session', async () => {
    const balanced = pool({ applicationName: 'balanced end' })
    const client = await balanced.connect()
    await balanced.query('select 1')
    const ended = balanced.end()
    expect((await client.query('select 2 as n')).rows).toEqual([{ n: 2 }])
    client.release()
    await ended
    await waitFor(async () => (await sessions('balanced end')) === 0)
    await expect(balanced.query('select 1')).rejects.toMatchObject({ code: 'CLIENT_CLOSED' })
  })

  it('takes callbacks as pg.Pool does', async () => {
    const balanced = pool()
    const rows = await new Promise((resolve, reject) => {
      balanced.query('select $1::text as t', ['x'], (error, result) =>
        error ? reject(error) : resolve(result?.rows),
      )
    })
    expect(rows).toEqual([{ t: 'x' }])
    const code = await new Promise((resolve) => {
      balanced.connect((_, client, release) => {
        client?.query('selec').catch((error: { code: string }) => {
          release?.()
          resolve(error.code)
        })
      })
    })
    expect(code).toBe('42601')
  })
})

describe('a balanced connection', () => {
  it('J39, J40, J41, J42: changes at the end of a transaction and nowhere else', async () => {
    const one = await connection()
    const pids = new Set<number>()
    for (let n = 0; n < 20; n++) pids.add(await pidOf(one))
    expect(pids.size, 'autocommit').toBe(1)
    expect(one.stats().picks).toEqual({ start: 1, reconnect: 0, error: 0, 'transaction end': 0 })
    const counts: Record<string, number> = {}
    for (let n = 0; n < 30; n++) {
      await one.query('begin')
      const [before, after] = [await serverPort(one), await serverPort(one)]
      expect(after).toBe(before)
      await one.query(n % 2 === 0 ? 'commit' : 'rollback')
      counts[before] = (counts[before] ?? 0) + 1
    }
    expect(Object.values(counts)).toEqual([10, 10, 10])
    expect(one.stats().picks['transaction end']).toBe(30)
    expect(
      one.stats().hosts.map(({ open }) => open),
      'J3',
    ).toEqual([1, 1, 1])
  })

  it('J16, J19, J21, J28: a lost host fails the call once and is left; the caller runs it all again', async () => {
    const one = await connection({ blocklistTimeoutMs: 60_000 })
    const dead = names().indexOf(one.host as string)
    const work = async () => {
      await one.query('begin')
      await one.query('insert into work values (1)')
      await one.query('commit')
    }
    await one.query('begin')
    await one.query('insert into work values (1)')
    await spoilers[dead]?.refuse(true)
    spoilers[dead]?.strike('reset')
    await expect(one.query('commit')).rejects.toThrow()
    expect(one.stats().picks.error).toBe(1)
    await work()
    const found = await Promise.all(
      [0, 1, 2].map((server) => postgres().query('select n from work', [], server)),
    )
    expect(found.flat()).toEqual([{ n: 1 }])
    expect(found[dead]).toEqual([])
  })

  it('J16, J27: a mistake in a statement reaches the caller and changes nothing', async () => {
    const one = await connection()
    const before = await pidOf(one)
    await expect(one.query('selec')).rejects.toMatchObject({ code: '42601' })
    expect(await pidOf(one)).toBe(before)
    expect(one.stats().picks.error).toBe(0)
  })

  it('J15: calls run one after the other, with one pick', async () => {
    const one = await connection()
    await one.query('begin')
    const answers = await Promise.all([
      one.query('select 1 as n'),
      one.query('commit'),
      one.query('select 2 as n'),
    ])
    expect(answers.map(({ command }) => command)).toEqual(['SELECT', 'COMMIT', 'SELECT'])
    expect(one.stats().picks['transaction end']).toBe(1)
  })

  it('J31, J32, J34, J37: with autoReconnect it works again when the network is back', async () => {
    const one = await connection({ autoReconnect: true, blocklistTimeoutMs: 0 })
    for (const spoiler of spoilers) {
      await spoiler.refuse(true)
      spoiler.strike('reset')
    }
    await expect(one.query('select 1')).rejects.toThrow()
    expect(one.isClosed).toBe(true)
    expect(one.inTransaction, 'J33').toBe(false)
    await expect(one.query('select 1')).rejects.toMatchObject({ code: 'CLIENT_ALL_DOWN' })
    await spoilers[1]?.refuse(false)
    expect((await one.query('select 1 as n')).rows).toEqual([{ n: 1 }])
    expect(one.host).toBe(names()[1])
  })

  it('J30, J31, J35, J36: abort changes it with autoReconnect only; end is for good', async () => {
    const forever = await connection({ autoReconnect: true })
    const before = await pidOf(forever)
    forever.abort()
    expect(forever.isClosed).toBe(true)
    expect(await pidOf(forever)).not.toBe(before)
    const once = await connection()
    once.abort()
    await expect(once.query('select 1')).rejects.toMatchObject({ code: 'CLIENT_CLOSED' })
    await forever.end()
    await expect(forever.query('select 1')).rejects.toMatchObject({ code: 'CLIENT_CLOSED' })
  })

  it('J32: a ping that is not answered closes it', async () => {
    const one = await connection()
    expect(await one.ping()).toBe(true)
    for (const spoiler of spoilers) spoiler.strike('reset')
    expect(await one.ping()).toBe(false)
    expect(one.isClosed).toBe(true)
  })

  it('J32: so do abort, end, and a pick that reaches no host', async () => {
    const [aborted, ended, lost] = [await connection(), await connection(), await connection()]
    aborted.abort()
    await ended.end()
    for (const spoiler of spoilers) await spoiler.refuse(true)
    for (const spoiler of spoilers) spoiler.strike('reset')
    await expect(lost.query('select 1')).rejects.toThrow()
    expect([aborted, ended, lost].map(({ isClosed }) => isClosed)).toEqual([true, true, true])
  })

  it('J50: end closes every physical connection', async () => {
    const one = await connection({ applicationName: 'logical end' })
    for (let n = 0; n < 3; n++) {
      await one.query('begin')
      await one.query('commit')
    }
    expect(await sessions('logical end')).toBe(3)
    await one.end()
    await waitFor(async () => (await sessions('logical end')) === 0)
  })

  it('J9: a checker of its own decides', async () => {
    const one = await connection({
      exceptionChecker: (error) => (error as { code?: string }).code === '23505',
    })
    const before = one.host
    await one.query('insert into work values (7)')
    await expect(one.query('insert into work values (7)')).rejects.toMatchObject({ code: '23505' })
    expect(one.host).not.toBe(before)
    await expect(connection({ exceptionChecker: './no-such-module.mjs' })).rejects.toMatchObject({
      code: 'CLIENT_EXCEPTION_CHECKER',
      message: expect.stringContaining('InvalidLoadBalanceExceptionChecker'),
    })
  })
})
