import { describe, expect, it, vi } from 'vitest'
import { settled } from '../../support/fake-clock.js'
import { defineHost } from './define.js'
import { portOf, start } from './fake-hosts.js'

const checks = (fake: ReturnType<typeof start>['fake'], port: number) =>
  fake.queries.filter((query) => query.port === port).map(({ sql }) => sql)

const primaryAndReplica = () => [defineHost({ port: 1 }), defineHost({ port: 2, role: 'replica' })]

describe('checks of hosts', () => {
  it('D93, D95: SELECT 1 on an idle proxy, at the interval', async () => {
    const { fake, clock, pools } = start([defineHost({ port: 1, limits: { minSize: 1 } })])
    pools.start()
    await clock.advance(4900)
    expect(fake.queries).toEqual([])
    await clock.advance(65_000)
    expect(checks(fake, 1)).toEqual(['SELECT 1', 'SELECT 1', 'SELECT 1'])
  })

  it('D98: a host that takes connections and says nothing is banned; the caller gets another', async () => {
    const { user, fake, clock, pools } = start(primaryAndReplica(), {
      readWriteSplit: 'include_primary',
    })
    fake.holes.add(2)
    const reads = [portOf(user, 'any'), portOf(user, 'any')]
    await settled()
    await clock.advance(2000)
    expect(await Promise.all(reads)).toEqual([1, 1])
    const [, replica] = [...pools.all()]
    expect(replica).toMatchObject({ isHealthy: false, isBanned: true })
    // no more waiting for it
    expect(user.checkout(0, 'any')).not.toBeInstanceOf(Promise)
  })

  it('D98: without another host the caller hears of the time-out', async () => {
    const { user, fake, clock } = start([defineHost({ port: 1 })])
    fake.holes.add(1)
    const failing = portOf(user, 'primary').catch((error: unknown) => error)
    await settled()
    await clock.advance(2000)
    expect(await failing).toMatchObject({ code: 'POOL_CONNECT_TIMEOUT', sqlstate: '08001' })
  })

  it('D224: a server that stops answering fails its check: the next caller gets a good one, the host is banned', async () => {
    const limits = { checkIntervalMs: 1000, minSize: 1 }
    const { user, fake, clock, pools } = start([
      defineHost({ port: 1, limits }),
      defineHost({ port: 2, role: 'replica', limits }),
    ])
    pools.start()
    await clock.advance(1500)
    fake.silent.add(2)
    fake.holes.add(2)
    const reads = [portOf(user, 'any'), portOf(user, 'any')]
    await clock.advance(4000)
    expect(await Promise.all(reads)).toEqual([1, 1])
    const [, replica] = [...pools.all()]
    expect(replica).toMatchObject({ isHealthy: false, isBanned: true })
    expect(replica!.pool.counters.checksFailed).toBeGreaterThan(0)
    expect(replica!.health.ban?.reason).toBe('health check failed')
  })

  it('replicas that are down at the start: reads go to the primary, and to them when they come up', async () => {
    const { user, fake, clock, pools } = start(primaryAndReplica(), {
      readWriteSplit: 'exclude_primary',
      health: {
        ...{
          idleCheckIntervalMs: 30_000,
          firstCheckDelayMs: 5000,
          checkTimeoutMs: 1000,
          isDistrustful: false,
        },
        ...{ banLagMs: Number.POSITIVE_INFINITY, banLagBytes: Number.POSITIVE_INFINITY },
        banTimeoutMs: 10_000,
      },
    })
    fake.down.add(2)
    pools.start()
    expect(await portOf(user, 'any')).toBe(1)
    fake.down.delete(2)
    await clock.advance(12_000)
    expect(await portOf(user, 'any')).toBe(2)
  })
})

describe('replica lag', () => {
  const lagging = (banLagMs: number, banLagBytes: number) =>
    start(primaryAndReplica(), {
      readWriteSplit: 'exclude_primary',
      lagCheckDelayMs: 0,
      health: {
        ...{
          idleCheckIntervalMs: 30_000,
          firstCheckDelayMs: 5000,
          checkTimeoutMs: 1000,
          isDistrustful: false,
        },
        ...{ banTimeoutMs: 10_000, banLagMs, banLagBytes },
      },
    })

  it('ban_replica_lag_bytes: a replica too far behind takes no reads until it has caught up', async () => {
    const { user, fake, clock, pools } = lagging(Number.POSITIVE_INFINITY, 100)
    fake.recovering.add(2)
    fake.lsn.set(1, 1000).set(2, 950)
    pools.start()
    await clock.advance(700)
    expect(await portOf(user, 'any')).toBe(2)
    fake.lsn.set(1, 1200)
    await clock.advance(700)
    expect(await portOf(user, 'any')).toBe(1)
    expect([...pools.all()][1]!.health.ban?.reason).toBe('replica lag')
    fake.lsn.set(2, 1150)
    await clock.advance(700)
    expect(await portOf(user, 'any')).toBe(2)
  })

  it('ban_replica_lag: behind for so long, not behind a primary that has just written', async () => {
    const { user, fake, clock, pools } = lagging(3000, Number.POSITIVE_INFINITY)
    fake.recovering.add(2)
    fake.lsn.set(1, 1000).set(2, 1000)
    pools.start()
    await clock.advance(60_000)
    // an idle hour behind it, one write: not an hour of lag
    fake.lsn.set(1, 2000)
    await clock.advance(2000)
    expect(await portOf(user, 'any')).toBe(2)
    await clock.advance(2500)
    expect(await portOf(user, 'any')).toBe(1)
    fake.lsn.set(2, 2000)
    await clock.advance(700)
    expect(await portOf(user, 'any')).toBe(2)
  })
})

describe('the monitor', () => {
  it('D161: beats every 333 ms', async () => {
    const { clock, pools } = start([defineHost({ port: 1 })])
    const beat = vi.spyOn(pools, 'beat')
    pools.start()
    beat.mockClear()
    await clock.advance(1000)
    expect(beat).toHaveBeenCalledTimes(3)
  })

  it('D160: maintenance, checks and openings do not wait for each other', async () => {
    const { user, fake, clock, pools } = start(
      [defineHost({ port: 1, limits: { maxSize: 3, idleTimeoutMs: 8000 } })],
      { health: { ...slowCheck, firstCheckDelayMs: 1000 } },
    )
    pools.start()
    const two = [await user.checkout(0, 'primary'), await user.checkout(0, 'primary')]
    for (const one of two) one.release()
    // the check of one hangs, and so does the opening of another
    fake.silent.add(1)
    await clock.advance(1400)
    fake.holes.add(1)
    const [pool] = [...pools.all()]
    const held = await user.checkout(0, 'primary')
    const opening = user.checkout(0, 'primary')
    void Promise.resolve(opening).catch(() => undefined)
    await settled()
    expect(pool!.pool.snapshot()).toMatchObject({ lent: 2, opening: 1, waiting: 1 })
    // maintenance goes on: what comes back too old is replaced, what lies idle too long goes
    held.release()
    expect(pool!.pool.snapshot().waiting).toBe(0)
    ;(await opening).release()
    await clock.advance(8400)
    expect(pool!.pool.snapshot().idle).toBe(0)
  })
})

const slowCheck = {
  ...{ idleCheckIntervalMs: 30_000, checkTimeoutMs: 20_000, banTimeoutMs: 0, isDistrustful: false },
  ...{ banLagMs: Number.POSITIVE_INFINITY, banLagBytes: Number.POSITIVE_INFINITY },
}
