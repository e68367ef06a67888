/** Keys of [general] that no other page sees at work, each by what clients of a running serve notice of it. */
import { execFileSync } from 'node:child_process'
import type pg from 'pg'
import { describe, expect, test } from 'vitest'
import { isMissing } from '../../support/tools.js'
import { waitFor } from '../../support/wait-for.js'
import { webAddress } from '../../support/web-page.js'
import type { RunningServe } from '../auth/rig.js'
import { failureOf, replica, useKeysRig } from './rig.js'

const { postgres, serve, gateTo, own, connectTo, ask } = useKeysRig()

const pidOf = async (client: pg.Client) =>
  (await client.query('select pg_backend_pid() as pid')).rows[0].pid as number

describe('how many servers, and how long', () => {
  test('reserve_pool_size, reserve_pool_timeout, max_user_connections: one more for who waits, and no third', async () => {
    // 1000 ms, the default, would be too late for who waits 950
    const proxy = await serve(
      [
        'default_pool_size = 1',
        'checkout_timeout = 950',
        'reserve_pool_size = 1',
        'reserve_pool_timeout = 100',
        'max_user_connections = 2',
      ],
      [{ port: own() }, { port: own(), name: 'other' }],
    )
    const holders = [await connectTo(proxy), await connectTo(proxy)]
    for (const client of holders) await client.query('begin; select 1')
    // its login would be the first to ask a server there
    expect(await failureOf(connectTo(proxy, 'other'))).toBe('53300')
    const shown = await ask(proxy, 'show databases')
    expect(shown.map((row) => Number(row['reserve_pool']))).toEqual([1, 1])
    for (const client of holders) await client.query('commit')
  })

  test('server_lifetime and server_lifetime_jitter of all databases', async () => {
    const proxy = await serve(
      ['server_lifetime = 100', 'server_lifetime_jitter = 8640000000000'],
      [
        { port: own(), name: 'short', lines: ['server_lifetime_jitter = 0'] },
        { port: own(), name: 'spread', lines: ['server_lifetime = 86400000'] },
      ],
    )
    const client = await connectTo(proxy, 'short')
    const first = await pidOf(client)
    await waitFor(async () => (await pidOf(client)) !== first)
    const open = async () =>
      (await ask(proxy, 'show servers')).filter(({ database }) => database === 'spread').length
    const many = await Promise.all(Array.from({ length: 10 }, () => connectTo(proxy, 'spread')))
    // of ten some draw a life that is over: once in a thousand they all live, and the next ten decide
    await waitFor(async () => {
      for (const one of many) await one.query('begin; select 1')
      for (const one of many) await one.query('commit')
      return (await open()) < many.length
    })
  })

  test('connect_attempts and connect_attempt_delay: a server that ends the first is asked again', async () => {
    const gate = await gateTo(0)
    const proxy = await serve(
      ['connect_attempts = 2', 'connect_attempt_delay = 400', 'idle_healthcheck_interval = 0'],
      [{ port: gate.port }],
    )
    const client = await connectTo(proxy)
    gate.become('shut')
    await waitFor(async () => (await ask(proxy, 'show servers')).length === 0)
    gate.times.length = 0
    const asked = client.query('select 1 as one')
    await waitFor(() => gate.times.length > 0)
    gate.state = 'open'
    expect((await asked).rows).toEqual([{ one: 1 }])
    expect(gate.times[1]! - gate.times[0]!).toBeGreaterThanOrEqual(395)
  })
})

describe('hosts', () => {
  const reads = 'read_write_split = "exclude_primary"'

  const banOf = async (proxy: RunningServe) =>
    (await ask(proxy, 'show bans')).find(({ role }) => role === 'replica')

  test('ban_timeout: a replica that failed is asked again after it', async () => {
    const gate = await gateTo(1)
    gate.state = 'shut'
    const proxy = await serve([reads, 'ban_timeout = 300'], [{ port: own() }, replica(gate.port)])
    const client = await connectTo(proxy)
    await client.query('select 1').catch(() => undefined)
    await waitFor(async () => (await banOf(proxy)) !== undefined)
    gate.state = 'open'
    await waitFor(async () => (await banOf(proxy)) === undefined)
  })

  test('require_healthcheck_on_discovery: a silent host takes no reads', async () => {
    const gate = await gateTo(1)
    gate.state = 'silent'
    const proxy = await serve(
      [reads, 'require_healthcheck_on_discovery = true', 'connect_timeout = 60000'],
      [{ port: own() }, replica(gate.port)],
    )
    expect(await banOf(proxy)).toMatchObject({ ban_reason: 'not checked yet' })
    const client = await connectTo(proxy)
    const port = async () =>
      (await client.query('select inet_server_port() as port')).rows[0].port as number
    expect(await port()).toBe(own())
    gate.become('open')
    await waitFor(async () => (await port()) === postgres().servers[1]!.port)
  })

  test('databases.lb_weight, resharding_only, user: who takes reads, and as whom', async () => {
    const [, second] = postgres().servers
    const others = [await postgres().createDatabase(), await postgres().createDatabase()]
    await postgres().query('drop role if exists of_entry')
    await postgres()
      .query('create role of_entry login', [], 1)
      .catch(() => undefined)
    const proxy = await serve(
      [reads, 'load_balancing_strategy = "weighted_round_robin"'],
      [
        { port: own() },
        replica(second!.port, 'lb_weight = 3', 'user = "of_entry"'),
        { ...replica(second!.port, 'lb_weight = 0'), database: others[0]! },
        { ...replica(second!.port, 'resharding_only = true'), database: others[1]! },
      ],
    )
    const client = await connectTo(proxy)
    for (let i = 0; i < 8; i++)
      expect(
        (await client.query('select current_database() as place, current_user as who')).rows,
      ).toEqual([{ place: postgres().database, who: 'of_entry' }])
  })
})

test.skipIf(isMissing('ss'))('listen_backlog, tcp.time: what the kernel was told', async () => {
  const proxy = await serve(['listen_backlog = 7'], [{ port: own() }], '[tcp]\ntime = 100000')
  const client = await connectTo(proxy)
  await client.query('select 1')
  const ss = (...args: string[]) =>
    execFileSync('ss', [...args, `( sport = :${proxy.port} )`], { encoding: 'utf8' })
  expect(ss('-tlnH').trim().split(/\s+/)[2]).toBe('7')
  // about 1min40sec, the system's own is two hours; while data is under way another timer runs
  await waitFor(() =>
    /timer:\(keepalive,(1min\d+sec|\d+sec),/.test(ss('-tnoH', 'state', 'established')),
  )
})

test('query_cache_limit: so many plans are kept, and no more than as many before them', async () => {
  const proxy = await serve(['query_cache_limit = 3'], [{ port: own() }])
  const client = await connectTo(proxy)
  for (let n = 0; n < 20; n++) await client.query(`select ${'1 + '.repeat(n)}1 as one`)
  const kept = (await ask(proxy, 'show query_cache')).length
  expect(kept).toBeGreaterThan(0)
  expect(kept).toBeLessThanOrEqual(6)
})

test('web_host, web_port, web_token: where the page is, and for whom', async () => {
  const token = 'a-token-of-this-test'
  const proxy = await serve(
    ['web_port = 0', 'web_host = "127.0.0.3"', `web_token = "${token}"`],
    [{ port: own() }],
  )
  const url = await webAddress(proxy.program)
  expect(url).toMatch(/^http:\/\/127\.0\.0\.3:\d+\/?$/)
  const status = async (given: string) =>
    (await fetch(new URL('/api/now', url), { headers: { authorization: `Bearer ${given}` } }))
      .status
  expect([await status(token), await status('another-token-of-it')]).toEqual([200, 401])
})
