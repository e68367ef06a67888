/** What the page is told: rates from counters, quantiles from buckets, problems in words, who may look. */
import { describe, expect, test } from 'vitest'
import type { PoolView, ProxyView, TimesView } from '../../../src/admin/proxy-view.js'
import { TIME_BOUNDS, TimeBuckets } from '../../../src/metrics/time-buckets.js'
import { makeBoard } from '../../../src/web/board.js'
import { Problems } from '../../../src/web/problems.js'
import { quantileMs } from '../../../src/web/quantile.js'
import { Rates } from '../../../src/web/rates.js'
import { WebAccess } from '../../../src/web/web-token.js'
import { fakePool, fakeProxy } from '../admin/fake-proxy.js'

const view = (rest: Partial<ProxyView>): ProxyView => ({
  ...fakeProxy().view,
  pools: () => [],
  ...rest,
})

const busy = (transactions: number, rest: Partial<PoolView> = {}): PoolView => {
  const pool = fakePool(rest)
  return { ...pool, traffic: { ...pool.traffic, transactions, queries: transactions * 2 } }
}

const countsOf = (...timesMs: number[]): number[] => {
  const buckets = new TimeBuckets()
  for (const ms of timesMs) buckets.record(ms)
  return [...buckets.counts]
}

describe('quantiles', () => {
  test('lie in the bucket that holds them', () => {
    expect(quantileMs(countsOf(), 0.5)).toBeNull()
    const times = Array.from({ length: 100 }, (_, i) => (i < 90 ? 0.4 : 40))
    const median = quantileMs(countsOf(...times), 0.5) as number
    expect(median).toBeGreaterThan(0.25)
    expect(median).toBeLessThanOrEqual(0.5)
    const late = quantileMs(countsOf(...times), 0.99) as number
    expect(late).toBeGreaterThan(25)
    expect(late).toBeLessThanOrEqual(50)
  })

  test('above the last bound are said to be at it', () => {
    expect(quantileMs(countsOf(100_000), 0.5)).toBe((TIME_BOUNDS.at(-1) as number) * 1000)
  })
})

describe('rates', () => {
  const times = (counts: readonly number[], rest: Partial<TimesView> = {}): TimesView => ({
    ...{ worker: 0, database: 'app', user: 'alice', requestClass: 'read', shard: 0, sumMs: 0 },
    ...{ counts, ...rest },
  })

  test('are what was done since the last look, and the first look knows nothing of before', () => {
    const rates = new Rates()
    const first = rates.next(view({ nowMs: () => 1000, pools: () => [busy(500)] }))
    expect(first.all.slice(0, 2)).toEqual([0, 0])
    const second = rates.next(view({ nowMs: () => 3000, pools: () => [busy(600)] }))
    expect(second.all.slice(0, 2)).toEqual([50, 100])
    expect(Object.keys(second.shards)).toEqual(['app shard 0'])
  })

  test('a worker that was replaced counts from 0 again', () => {
    const rates = new Rates()
    rates.next(view({ nowMs: () => 0, pools: () => [busy(500)] }))
    const next = rates.next(view({ nowMs: () => 1000, pools: () => [busy(30)] }))
    expect(next.all[0]).toBe(30)
  })

  test('latency is of the requests in between, by shard; local answers are none', () => {
    const rates = new Rates()
    rates.next(view({ nowMs: () => 0, times: () => [times(countsOf(4000, 4000, 4000))] }))
    const both = [
      times(countsOf(4000, 4000, 4000, 0.4)),
      times(countsOf(300), { requestClass: 'merge', shard: -1 }),
      times(countsOf(30_000), { requestClass: 'control', shard: -1 }),
    ]
    const { shards, all } = rates.next(view({ nowMs: () => 1000, times: () => both }))
    expect(shards['app shard 0']?.[3]).toBeLessThanOrEqual(0.5)
    expect(shards['app over shards']?.[3]).toBeGreaterThan(250)
    expect(all[3]).toBeLessThanOrEqual(500)
  })
})

describe('problems', () => {
  const look = (pools: PoolView[], rest: Partial<ProxyView> = {}) =>
    new Problems().look(view({ nowMs: () => 5000, pools: () => pools, ...rest }))
  const said = (pools: PoolView[], rest: Partial<ProxyView> = {}) =>
    look(pools, rest).map(({ level, what, detail }) => `${level}: ${what}: ${detail}`)

  test('none when all is well', () => {
    expect(said([fakePool({ maxWaitMs: 0, clientsWaiting: 0 })])).toEqual([])
  })

  test('a shard whose only host does not answer cannot be reached; with a replica it takes no writes', () => {
    const dead = fakePool({ isHealthy: false, clientsWaiting: 0 })
    expect(said([dead])).toEqual([
      'bad: Shard 0 of "app" cannot be reached: its primary 10.0.0.1:5432 does not answer',
    ])
    const replica = fakePool({ role: 'replica', address: '10.0.0.2', clientsWaiting: 0 })
    expect(said([dead, replica])).toEqual([
      'bad: Shard 0 of "app" takes no writes: its primary 10.0.0.1:5432 cannot be reached',
    ])
    const banned = { ...replica, isBanned: true, banReason: 'refused', isHealthy: false }
    expect(said([{ ...dead, isHealthy: true }, banned])).toEqual([
      'warn: replica 10.0.0.2:5432 of shard 0 of "app" cannot be reached: reads go to the other hosts (refused)',
    ])
  })

  test('clients that wait, bans by hand, PAUSE, workers that are silent, old prepared transactions', () => {
    expect(said([fakePool()])).toEqual([
      'warn: Clients of alice wait for servers of shard 0 of "app": 1 client, the longest for 1.2 s; 2 of 10 servers are in use',
    ])
    const quiet = { clientsWaiting: 0 }
    const byHand = fakePool({ ...quiet, isBanned: true, banReason: 'manual ban' })
    expect(said([byHand])[0]).toContain('is banned by hand')
    expect(said([fakePool({ ...quiet, isPaused: true })])[0]).toContain('PAUSE holds shard 0')
    const silent = { ...fakeWorker, state: 'silent' }
    expect(said([], { workers: () => [silent] })[0]).toContain('Worker 3 does not answer')
    const old = { database: 'app', user: 'alice', name: 'x', reason: '', shard: 1, ageMs: 90_000 }
    const transactions = () => [{ ...old, state: 'prepared' as const }]
    expect(said([], { transactions })[0]).toContain('A prepared transaction waits for its end')
  })

  test('each keeps the moment at which it was first seen', () => {
    const problems = new Problems()
    const at = (nowMs: number, isHealthy: boolean) =>
      problems.look(
        view({ nowMs: () => nowMs, pools: () => [fakePool({ isHealthy, clientsWaiting: 0 })] }),
      )
    expect(at(1000, false)[0]?.sinceMs).toBe(1000)
    expect(at(2000, false)[0]?.sinceMs).toBe(1000)
    expect(at(3000, true)).toEqual([])
    expect(at(4000, false)[0]?.sinceMs).toBe(4000)
  })
})

const fakeWorker = {
  ...{ worker: 3, processId: 99, state: 'ready', uptimeMs: 1, replaced: 0, clients: 1 },
  ...{ maxClients: 100, maxServers: 100, cancels: 0, cancelsForwarded: 0, cpuMs: 0 },
  ...{ memoryBytes: 0, isSuspended: false },
}

test('pools of several workers are one row; shares are of the queries of a database', () => {
  const pools = [fakePool(), fakePool({ worker: 1 }), fakePool({ shard: 1, clientsWaiting: 0 })]
  const shards = { 'app shard 0': [1, 30, null, null], 'app shard 1': [1, 10, null, null] } as const
  const board = makeBoard(view({ pools: () => pools }), [], shards)
  expect(board.pools).toHaveLength(2)
  expect(board.pools[0]).toMatchObject({ shard: 0, waiting: 2, maxSize: 20, idle: 6 })
  expect(board.hosts.map(({ share }) => share)).toEqual([0.75, 0.25])
})

describe('access', () => {
  const access = new WebAccess('0123456789abcdef')
  const cookie = access.cookie(80).split(';')[0]

  test('by the token, or by the cookie of this start on this port', () => {
    expect(access.isToken('0123456789abcdef')).toBe(true)
    expect(access.isToken('0123456789abcdeg')).toBe(false)
    expect(access.isToken('')).toBe(false)
    expect(access.isToken(undefined)).toBe(false)
    expect(access.isKnown({ cookie: `other=1; ${cookie}` }, 80)).toBe(true)
    expect(access.isKnown({ cookie }, 81)).toBe(false)
    expect(access.isKnown({ cookie: 'pgshard_80=0123456789abcdef' }, 80)).toBe(false)
    expect(new WebAccess('0123456789abcdef').isKnown({ cookie }, 80)).toBe(false)
    expect(access.isKnown({ authorization: 'Bearer 0123456789abcdef' }, 80)).toBe(true)
    expect(access.isKnown({ authorization: 'Bearer x' }, 80)).toBe(false)
    expect(access.isKnown({}, 80)).toBe(false)
  })
})
