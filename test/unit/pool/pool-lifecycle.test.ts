import { describe, expect, it } from 'vitest'
import { ResourcePool } from '../../../src/pool/resource-pool.js'
import { settled } from '../../support/fake-clock.js'
import {
  FakeEvents,
  type FakeResource,
  fakeLimits,
  type Held,
  makePool,
  take,
  watch,
} from './fake-kind.js'

describe('maintenance', () => {
  it('D162: closes what is too old, and opens to the minimum again', async () => {
    const { pool, clock, kind } = makePool({ minSize: 1, lifetimeMs: 1000 })
    pool.maintain()
    await settled()
    await clock.advance(1000)
    pool.maintain()
    await settled()
    expect(kind.opened[0]?.why).toBe('too old')
    expect(kind.live.map((resource) => resource.id)).toEqual([2])
  })

  it('spreads lifetimes by the jitter, both ways', async () => {
    for (const [random, expiresMs] of [
      [0, 900],
      [0.999999, 1100],
    ] as const) {
      const { pool, clock, kind } = makePool(
        { lifetimeMs: 1000, lifetimeJitterMs: 100 },
        () => random,
      )
      ;(await take(pool, 1))[0]?.release()
      await clock.advance(expiresMs - 1)
      pool.maintain()
      expect(kind.live).toHaveLength(1)
      await clock.advance(2)
      pool.maintain()
      expect(kind.live).toHaveLength(0)
    }
  })

  it('D163: goes from ten to the minimum after the idle time-out', async () => {
    const { pool, clock, kind } = makePool({ minSize: 2, maxSize: 10, idleTimeoutMs: 500 })
    for (const held of await take(pool, 10)) held.release()
    await clock.advance(499)
    pool.maintain()
    expect(kind.live).toHaveLength(10)
    await clock.advance(1)
    pool.maintain()
    expect(kind.live).toHaveLength(2)
  })

  it('waits longer after each failure to fill up', async () => {
    const { pool, clock, kind, events } = makePool({ minSize: 1 })
    kind.isDown = true
    for (let beat = 0; beat < 30; beat++) {
      pool.maintain()
      await clock.advance(333)
    }
    const tries = events.log.filter((line) => line.startsWith('open failed')).length
    expect(tries).toBeGreaterThan(3)
    expect(tries).toBeLessThan(8)
  })
})

describe('checks before lending', () => {
  it('D94: checks each time at interval 0, never at infinity', async () => {
    const always = makePool({ checkIntervalMs: 0 })
    ;(await always.pool.checkout()).release()
    ;(await always.pool.checkout()).release()
    expect(always.kind.checks).toBe(2)
    const never = makePool()
    ;(await never.pool.checkout()).release()
    expect(never.pool.tryCheckout()).toBeDefined()
    expect(never.kind.checks).toBe(0)
  })

  it('D156: replaces a bad one without an error for the waiter, who keeps his place', async () => {
    const { pool, clock, kind, events } = makePool({ checkIntervalMs: 1000, maxSize: 2 })
    const held = await take(pool, 2)
    for (const one of held) {
      one.resource.isGood = false
      one.release()
    }
    await clock.advance(1000)
    expect(pool.tryCheckout()).toBeUndefined()
    const first = await pool.checkout()
    expect(first.resource.id).toBeGreaterThan(2)
    expect(events.log).toContain('broken: check')
    expect(kind.opened.slice(0, 1).every((resource) => resource.isClosed)).toBe(true)
    first.release()
  })

  it('puts back what was checked for a waiter that left meanwhile', async () => {
    const { pool, clock } = makePool({ checkIntervalMs: 1000, maxSize: 1 })
    ;(await pool.checkout()).release()
    await clock.advance(1000)
    const controller = new AbortController()
    const gone = watch(pool.checkout({ signal: controller.signal }))
    controller.abort()
    await settled()
    expect(gone.error).toMatchObject({ code: 'POOL_CHECKOUT_ABORTED' })
    expect(pool.snapshot()).toMatchObject({ idle: 1, lent: 0 })
  })
})

describe('pause, offline and reload', () => {
  it('D171: lends nothing while paused; waiters go on at resume and the minimum is restored', async () => {
    const { pool, kind } = makePool({ minSize: 2 })
    pool.maintain()
    await settled()
    pool.pause()
    expect(kind.live).toHaveLength(0)
    const waiting = watch(pool.checkout())
    pool.maintain()
    await settled()
    expect(waiting.value).toBeUndefined()
    pool.resume()
    await settled()
    expect(waiting.value).toBeDefined()
    expect(kind.live).toHaveLength(2)
  })

  it('lends to holders of other resources while paused, so that they can end', async () => {
    const { pool, kind } = makePool()
    pool.pause()
    const holder = await pool.checkout({ isHolder: true })
    const plain = watch(pool.checkout())
    holder.release()
    await settled()
    expect(plain.value).toBeUndefined()
    expect(kind.live).toHaveLength(0)
    pool.resume()
    await settled()
    expect(plain.value).toBeDefined()
  })

  it('tells when nothing is lent any more', async () => {
    const { pool } = makePool()
    const held = await take(pool, 2)
    let isDrained = false
    const drained = pool.whenDrained().then(() => {
      isDrained = true
    })
    held[0]?.release()
    await settled()
    expect(isDrained).toBe(false)
    held[1]?.discard('done')
    await drained
    expect(isDrained).toBe(true)
  })

  it('D172: refuses callers and waiters when offline, and closes what an opening brings', async () => {
    const { pool, kind } = makePool()
    kind.isManual = true
    const waiting = watch(pool.checkout())
    pool.goOffline()
    pool.goOffline()
    await settled()
    expect(waiting.error?.message).toBe('offline')
    await expect(pool.checkout()).rejects.toThrow('offline')
    expect(kind.live).toHaveLength(0)
  })

  it('D190, D192, D195: moves idle, lent and waiting ones to the new pool', async () => {
    const { pool, kind, clock } = makePool({ maxSize: 2 })
    const held = await take(pool, 2)
    held[1]?.release()
    const idle = held[1]?.resource
    const [again] = (await take(pool, 1)) as [Held]
    expect(again.resource).toBe(idle)
    again.release()
    const third = await take(pool, 1)
    const waits = [watch(pool.checkout()), watch(pool.checkout())]
    const heir = new ResourcePool(kind, { ...fakeLimits, maxSize: 3 }, new FakeEvents(), {
      clock,
      random: () => 0.5,
    })
    pool.moveTo(heir)
    await settled()
    expect(waits[0]?.value?.resource.id).toBe(3)
    held[0]?.release()
    await settled()
    expect(waits[1]?.value?.resource).toBe(held[0]?.resource)
    third[0]?.release()
    expect(heir.snapshot()).toMatchObject({ idle: 1, lent: 2, total: 3 })
    expect(pool.snapshot()).toMatchObject({ total: 0, lent: 0, isOnline: false })
  })

  it('shrinks at a reload: what is above the new size goes when it comes back', async () => {
    const { pool, kind, clock } = makePool({ maxSize: 3 })
    const held = await take(pool, 3)
    const heir = new ResourcePool(kind, { ...fakeLimits, maxSize: 1 }, new FakeEvents(), {
      clock,
      random: () => 0.5,
    })
    pool.moveTo(heir)
    for (const one of held) one.release()
    expect(heir.snapshot()).toMatchObject({ idle: 1, total: 1 })
  })

  it('forgets an idle resource that died by itself, and opens another when it is below the minimum', async () => {
    const { pool, kind } = makePool({ minSize: 1 })
    pool.maintain()
    await settled()
    pool.forget(kind.opened[0] as FakeResource)
    await settled()
    expect(kind.live.map((resource) => resource.id)).toEqual([2])
  })
})
