/** Many clients of balanced pools: a host that dies and comes back gets its share again, a slow one gets less, a checker that throws does no harm. */
import { afterEach, beforeAll, expect, it } from 'vitest'
import { connectBalanced } from '../../../src/client/balanced-connection.js'
import {
  type BalancedClient,
  type BalancedPool,
  type BalancedPoolOptions,
  createBalancedPool,
} from '../../../src/client/balanced-pool.js'
import { Prng } from '../../../src/topology/prng.js'
import { type Spoiler, startSpoiler } from '../../support/spoiler.js'
import { bySize } from '../../support/test-size.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'

const MANY = bySize(120, 1000)

const postgres = usePostgres({
  version: 15,
  count: 3,
  settings: { max_connections: '1050', shared_buffers: '16MB' },
})
const spoilers: Spoiler[] = []
const opened: { end(): Promise<void> }[] = []

beforeAll(async () => {
  for (const server of postgres().servers) spoilers.push(await startSpoiler(server))
})
afterEach(async () => {
  for (const one of opened.splice(0)) await one.end().catch(() => undefined)
  for (const spoiler of spoilers) {
    await spoiler.refuse(false)
    spoiler.setDelayMs(0)
  }
})

const target = () =>
  `postgres://postgres@${spoilers.map(({ port }) => `127.0.0.1:${port}`).join(',')}/${postgres().database}`

function pool(options: BalancedPoolOptions = {}): BalancedPool {
  const made = createBalancedPool(target(), { random: Prng.ofSeed(11n), ...options })
  made.on('error', () => undefined)
  opened.push(made)
  return made
}

/** Connections of each host now. */
const open = (from: BalancedPool) => from.stats().hosts.map((host) => host.open)

/** Takes so many clients, a few at a time. */
async function take(from: BalancedPool, count: number): Promise<BalancedClient[]> {
  const taken: BalancedClient[] = []
  const work = async () => {
    while (taken.length < count) {
      const at = taken.push(undefined as never) - 1
      taken[at] = await from.connect()
    }
  }
  await Promise.all(Array.from({ length: 20 }, work))
  return taken
}

it(`${MANY} connections: a host that dies and returns has its share again`, {
  timeout: 300_000,
}, async () => {
  const balanced = pool({ max: MANY, blocklistTimeoutMs: 100, idleTimeoutMillis: 0 })
  let clients = await take(balanced, MANY)
  const isThird = (count: number, all: number) => {
    expect(count).toBeGreaterThan(all * 0.2)
    expect(count).toBeLessThan(all * 0.47)
  }
  for (const count of open(balanced)) isThird(count, MANY)
  const before = open(balanced)

  await spoilers[0]!.refuse(true)
  spoilers[0]!.strike('reset')
  const answers = await Promise.all(
    clients.map((client) =>
      client.query('select 1').then(
        () => true,
        (error: Error) => {
          client.release(error)
          return false
        },
      ),
    ),
  )
  const living = clients.filter((_, i) => answers[i])
  expect(clients.length - living.length).toBe(before[0])
  await waitFor(() => balanced.stats().hosts[0]!.open === 0)
  // those that were lost find a place on the two that are left, and none fails
  clients = [...living, ...(await take(balanced, MANY - living.length))]
  expect(balanced.totalCount).toBe(MANY)
  expect(open(balanced)[0]).toBe(0)
  for (const count of open(balanced).slice(1)) expect(count).toBeGreaterThan(MANY * 0.35)

  await spoilers[0]!.refuse(false)
  // the blocklist forgets it; as clients come and go its share grows back to a third
  await waitFor(() => balanced.stats().hosts[0]!.blockedMs === 0)
  for (const client of clients) client.release(true)
  await waitFor(() => balanced.totalCount === 0)
  clients = await take(balanced, MANY)
  for (const count of open(balanced)) isThird(count, MANY)
  for (const client of clients) client.release()
})

it('J7: a slow host gets less under best response time, and its part again when it is quick', async () => {
  const balanced = pool({ max: 12, strategy: 'best_response_time' })
  const picks = () => balanced.stats().hosts.map((host) => host.picks)
  const ask = async (count: number) => {
    const before = picks()
    for (let i = 0; i < count; i++) await balanced.query('select 1')
    return picks().map((now, i) => now - (before[i] ?? 0))
  }
  await ask(30)
  spoilers[1]!.setDelayMs(40)
  const slow = await ask(200)
  // it is asked again only to see whether it is still slow
  expect(slow[1]).toBeLessThan(20)
  expect(slow[0]! + slow[2]!).toBeGreaterThan(180)
  // with equal odds a third
  spoilers[1]!.setDelayMs(0)
  for (const i of [0, 2]) spoilers[i]!.setDelayMs(40)
  await waitFor(async () => (await ask(20))[1]! >= 15, { deadlineMs: 60_000 })
})

it('J9: a checker that throws, or gives a promise, does no harm', async () => {
  const throwing = () => {
    throw new TypeError('the checker is broken')
  }
  const promising = (async () => true) as unknown as () => boolean
  for (const exceptionChecker of [throwing, promising]) {
    const balanced = pool({ max: 1, exceptionChecker })
    // the caller hears of his own error, and the one slot is free again
    for (let i = 0; i < 3; i++)
      await expect(balanced.query('select 1/0')).rejects.toMatchObject({ code: '22012' })
    const client = await balanced.connect()
    client.release(new Error('given back as broken'))
    expect((await balanced.query('select 5 as n')).rows).toEqual([{ n: 5 }])

    const connection = await connectBalanced(target(), { exceptionChecker })
    opened.push(connection)
    await expect(connection.query('select 1/0')).rejects.toMatchObject({ code: '22012' })
    expect((await connection.query('select 6 as n')).rows).toEqual([{ n: 6 }])
  }
  // the standard rules stand in for one that throws: a lost host is left
  const lost = await connectBalanced(target(), {
    exceptionChecker: throwing,
    strategy: 'round_robin',
  })
  opened.push(lost)
  const host = lost.host
  for (const spoiler of spoilers)
    if (`127.0.0.1:${spoiler.port}` === host) {
      await spoiler.refuse(true)
      spoiler.strike('reset')
    }
  await expect(lost.query('select 7')).rejects.toThrow()
  expect((await lost.query('select 8 as n')).rows).toEqual([{ n: 8 }])
  expect(lost.host).not.toBe(host)
})
