import { describe, expect, it } from 'vitest'
import type { PoolLimits } from '../../../src/pool/pool-types.js'
import { ResourcePool } from '../../../src/pool/resource-pool.js'
import { Room, Rooms } from '../../../src/pool/room.js'
import { FakeClock, settled } from '../../support/fake-clock.js'
import { FakeEvents, FakeKind, fakeLimits, makePool, take, watch } from './fake-kind.js'

describe('the reserve', () => {
  const limits = { maxSize: 2, reserveSize: 1, reserveAfterMs: 1000 }

  it('is opened for a caller that has waited long, not before', async () => {
    const { pool, clock, kind } = makePool(limits)
    const held = await take(pool, 2)
    const waiting = watch(pool.checkout())
    await clock.advance(900)
    pool.maintain()
    await settled()
    expect(kind.live).toHaveLength(2)
    await clock.advance(100)
    pool.maintain()
    await settled()
    expect(waiting.value?.resource.id).toBe(3)
    expect(pool.snapshot()).toMatchObject({ total: 3, lent: 3 })
    for (const one of held) one.release()
  })

  it('is used while callers wait, and goes as soon as it lies idle', async () => {
    const { pool, clock, kind } = makePool(limits)
    const held = await take(pool, 2)
    const waiting = pool.checkout()
    await clock.advance(1000)
    pool.maintain()
    const third = await waiting
    const next = watch(pool.checkout())
    third.release()
    await settled()
    expect(next.value?.resource.id).toBe(third.resource.id)
    next.value?.release()
    for (const one of held) one.release()
    pool.maintain()
    expect(kind.live).toHaveLength(2)
    expect(pool.counters.forceClosed).toBe(0)
  })
})

/** Pools under one limit. */
function sharing(limit: number, count: number, limits: Partial<PoolLimits> = {}) {
  const clock = new FakeClock()
  const room = new Room(limit)
  const pools = Array.from({ length: count }, () => {
    const kind = new FakeKind()
    const environment = { clock, random: () => 0.5, rooms: new Rooms([room]) }
    const all = { ...fakeLimits, ...limits }
    return { kind, pool: new ResourcePool(kind, all, new FakeEvents(), environment) }
  })
  const live = () => pools.reduce((sum, { kind }) => sum + kind.live.length, 0)
  return { clock, room, pools, live }
}

describe('max_db_connections, max_user_connections', () => {
  it('pools never have more together; who waits gets what another keeps idle', async () => {
    const { pools, room, live } = sharing(3, 2)
    const [a, b] = pools
    const held = await take(a!.pool, 3)
    const waiting = watch(b!.pool.checkout())
    await settled()
    expect(live()).toBe(3)
    expect(waiting.value).toBeUndefined()
    // what comes back is not kept idle, because another pool needs the room
    held[0]!.release()
    await settled()
    expect(waiting.value).toBeDefined()
    expect(live()).toBe(3)
    held[1]!.release()
    expect(a!.pool.snapshot()).toMatchObject({ idle: 1, lent: 1 })
    const second = watch(b!.pool.checkout())
    await settled()
    expect(second.value).toBeDefined()
    expect(a!.pool.snapshot()).toMatchObject({ idle: 0, lent: 1 })
    expect(room.taken).toBe(3)
  })

  it('places come back when openings fail, resources die and pools close', async () => {
    const { pools, room } = sharing(2, 2)
    const [a, b] = pools
    a!.kind.isDown = true
    await expect(a!.pool.checkout()).rejects.toThrow('refused')
    expect(room.taken).toBe(0)
    const held = await take(b!.pool, 2)
    held[0]!.discard('test')
    expect(room.taken).toBe(1)
    held[1]!.release()
    b!.pool.goOffline()
    expect(room.taken).toBe(0)
  })

  it('is first come first served between pools; who gave up lets it pass', async () => {
    const { pools, clock } = sharing(1, 3, { checkoutTimeoutMs: 100 })
    const [a, b, c] = pools
    const [held] = await take(a!.pool, 1)
    const first = watch(b!.pool.checkout())
    await clock.advance(60)
    const second = watch(c!.pool.checkout())
    await clock.advance(60)
    expect(first.error).toBeDefined()
    held!.release()
    await settled()
    expect(second.value).toBeDefined()
  })

  it('a minimum takes no place from anybody', async () => {
    const { pools } = sharing(1, 2, { minSize: 1 })
    const [a, b] = pools
    const [held] = await take(a!.pool, 1)
    held!.release()
    b!.pool.maintain()
    await settled()
    expect(a!.kind.live).toHaveLength(1)
    expect(b!.kind.live).toHaveLength(0)
  })

  it('a moved pool keeps its places', async () => {
    const { pools, room, clock } = sharing(2, 1)
    const held = await take(pools[0]!.pool, 2)
    const environment = { clock, random: () => 0.5, rooms: new Rooms([room]) }
    const heir = new ResourcePool(pools[0]!.kind, fakeLimits, new FakeEvents(), environment)
    pools[0]!.pool.moveTo(heir)
    for (const one of held) one.release()
    expect(room.taken).toBe(2)
    heir.goOffline()
    expect(room.taken).toBe(0)
  })
})
