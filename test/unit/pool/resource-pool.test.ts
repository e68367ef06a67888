import { describe, expect, it } from 'vitest'
import { settled } from '../../support/fake-clock.js'
import { type Held, makePool, take, watch } from './fake-kind.js'

describe('lending', () => {
  it('D153, D159: opens on demand and lends the last one given back, synchronously', async () => {
    const { pool } = makePool()
    expect(pool.tryCheckout()).toBeUndefined()
    const [first, second] = (await take(pool, 2)) as [Held, Held]
    first.release()
    second.release()
    expect(pool.tryCheckout()?.resource).toBe(second.resource)
    expect(pool.tryCheckout()?.resource).toBe(first.resource)
  })

  it('refuses a second end of one checkout', async () => {
    const { pool } = makePool()
    const [held] = (await take(pool, 1)) as [Held]
    held.release()
    expect(() => held.release()).toThrow(/given back twice/)
    expect(() => held.discard('x')).toThrow(/given back twice/)
    expect(pool.snapshot()).toMatchObject({ idle: 1, lent: 0, total: 1 })
  })

  it('D169: gives back what a scope left behind, also after an error', async () => {
    const { pool } = makePool()
    const held = await pool.checkout()
    expect(() => {
      try {
        throw new Error('inside')
      } finally {
        held[Symbol.dispose]()
      }
    }).toThrow('inside')
    expect(pool.snapshot()).toMatchObject({ idle: 1, lent: 0 })
  })

  it('D165: never opens two at once, however many wait', async () => {
    const { pool, kind } = makePool({ maxSize: 50 })
    kind.isManual = true
    const waits = Array.from({ length: 50 }, () => watch(pool.checkout()))
    for (let i = 0; i < 50; i++) {
      expect(kind.openings).toHaveLength(1)
      kind.openings[0]?.resolve()
      await settled()
    }
    expect(waits.every((wait) => wait.value)).toBe(true)
    expect(kind.mostOpenAtOnce).toBe(1)
    expect(kind.openings).toHaveLength(0)
  })

  it('D155, D157, D168: serves ten waiters of a pool of one in the order of arrival, with that very resource', async () => {
    const { pool, kind } = makePool({ maxSize: 1 })
    let [held] = (await take(pool, 1)) as [Held]
    const order: number[] = []
    const waits = Array.from({ length: 10 }, (_, i) => {
      const wait = pool.checkout()
      void wait.then(() => order.push(i))
      return wait
    })
    for (const wait of waits) {
      held.release()
      expect(pool.tryCheckout(), 'the queue goes first').toBeUndefined()
      held = await wait
      expect(held.resource.id).toBe(1)
    }
    expect(order).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    expect(kind.opened).toHaveLength(1)
  })

  it('does not let a newcomer overtake the queue', async () => {
    const { pool } = makePool({ maxSize: 2, reservedForHolders: 1 })
    const [held] = (await take(pool, 1)) as [Held]
    const holder = await pool.checkout({ isHolder: true })
    const waiting = watch(pool.checkout())
    holder.release()
    await settled()
    expect(pool.snapshot()).toMatchObject({ idle: 1, waiting: 1 })
    expect(pool.tryCheckout()).toBeUndefined()
    expect(pool.tryCheckout(true)).toBeDefined()
    held.release()
    await settled()
    expect(waiting.value).toBeDefined()
  })
})

describe('a caller that finds nothing idle', () => {
  it('D154, D166: has one opened at once, on no beat, while the pool is not full', async () => {
    const { pool, kind } = makePool({ maxSize: 2 })
    kind.isManual = true
    const waiting = watch(pool.checkout())
    expect(kind.openings).toHaveLength(1)
    expect(pool.snapshot()).toMatchObject({ opening: 1, waiting: 1, total: 0 })
    kind.openings[0]?.resolve()
    await settled()
    expect(waiting.value).toBeDefined()
  })

  it('D154: only queues when it is full', async () => {
    const { pool, kind } = makePool({ maxSize: 1 })
    const [held] = await take(pool, 1)
    const waiting = watch(pool.checkout())
    await settled()
    expect(kind.opened).toHaveLength(1)
    expect(pool.snapshot()).toMatchObject({ opening: 0, waiting: 1 })
    held?.release()
    await settled()
    expect(waiting.value?.resource.id).toBe(1)
  })
})

describe('time-outs and aborts', () => {
  it('D152, D158: times a waiter out and never gives it a resource later', async () => {
    const { pool, clock } = makePool({ maxSize: 1, checkoutTimeoutMs: 100 })
    const [held] = (await take(pool, 1)) as [Held]
    const late = watch(pool.checkout())
    await clock.advance(99)
    expect(late.error).toBeUndefined()
    await clock.advance(1)
    expect(late.error?.message).toBe('checkout timeout')
    held.release()
    await settled()
    expect(late.value).toBeUndefined()
    expect(pool.snapshot()).toMatchObject({ idle: 1, lent: 0, waiting: 0 })
    expect(pool.counters.waitMs).toBe(100)
  })

  it('takes an aborted waiter out of the middle of the queue', async () => {
    const { pool, clock } = makePool({ maxSize: 1 })
    const [held] = (await take(pool, 1)) as [Held]
    const controller = new AbortController()
    const first = watch(pool.checkout())
    const second = watch(pool.checkout({ signal: controller.signal }))
    const third = watch(pool.checkout())
    controller.abort()
    await settled()
    expect(second.error).toMatchObject({ code: 'POOL_CHECKOUT_ABORTED', sqlstate: '57014' })
    held.release()
    await settled()
    first.value?.release()
    await settled()
    expect(third.value).toBeDefined()
    expect(second.value).toBeUndefined()
    expect(clock.pendingTimers).toBe(0)
  })

  it('fails all waiters at once when nothing is alive to wait for', async () => {
    const { pool, kind, clock } = makePool({ maxSize: 2 })
    kind.isDown = true
    const waits = [watch(pool.checkout()), watch(pool.checkout())]
    await settled()
    expect(waits.map((wait) => wait.error?.message)).toEqual(['refused', 'refused'])
    expect(clock.pendingTimers).toBe(0)
    kind.isDown = false
    expect((await pool.checkout()).resource.id).toBe(1)
  })

  it('keeps waiters while a lent resource may come back, and tries again on a later beat', async () => {
    const { pool, kind, clock } = makePool({ maxSize: 2 })
    const [held] = (await take(pool, 1)) as [Held]
    kind.isDown = true
    const waiting = watch(pool.checkout())
    await settled()
    expect(waiting.error).toBeUndefined()
    kind.isDown = false
    pool.maintain()
    expect(kind.opened).toHaveLength(1)
    await clock.advance(333)
    pool.maintain()
    await settled()
    expect(waiting.value?.resource.id).toBe(2)
    held.release()
  })
})

describe('holders of other resources', () => {
  it('keeps one slot for them and lets them go first', async () => {
    const { pool } = makePool({ maxSize: 3, reservedForHolders: 1 })
    const ordinary = await take(pool, 2)
    const plain = watch(pool.checkout())
    await settled()
    expect(plain.value).toBeUndefined()
    const holder = await pool.checkout({ isHolder: true })
    const plainLater = watch(pool.checkout())
    const holderLater = watch(pool.checkout({ isHolder: true }))
    ordinary[0]?.release()
    await settled()
    expect(holderLater.value).toBeDefined()
    expect(plain.value).toBeUndefined()
    holder.release()
    await settled()
    expect(plain.value).toBeDefined()
    expect(plainLater.value).toBeUndefined()
  })
})

describe('check-in, in the order of D167', () => {
  const inside = async (limits = {}) => {
    const made = makePool({ maxSize: 1, minSize: 0, lifetimeMs: 1000, ...limits })
    const [held] = (await take(made.pool, 1)) as [Held]
    return { ...made, held, resource: held.resource }
  }

  it('D167: 1. a failed one is closed and the pool told, before all else', async () => {
    const { pool, held, resource, events, clock } = await inside()
    resource.condition = 'failed'
    await clock.advance(2000)
    pool.pause()
    held.release()
    expect(resource.why).toBe('failed')
    expect(events.log).toContain('broken: failed')
  })

  it('D167: 2. an offline or paused pool drops it', async () => {
    const { pool, held, resource, clock } = await inside()
    await clock.advance(2000)
    resource.condition = 'unfit'
    pool.pause()
    held.release()
    expect(resource.why).toBe('the pool is not open')
    const other = await inside()
    other.pool.goOffline()
    other.held.release()
    expect(other.resource.why).toBe('the pool is not open')
  })

  it('D167: 3. too old', async () => {
    const { pool, held, resource, clock } = await inside()
    resource.condition = 'unfit'
    pool.recycle('reconnect')
    await clock.advance(1000)
    held.release()
    expect(resource.why).toBe('too old')
  })

  it('D167: 4. to be force-closed', async () => {
    const { pool, held, resource } = await inside()
    resource.condition = 'unfit'
    pool.recycle('reconnect')
    held.release()
    expect(resource.why).toBe('to be replaced')
    expect(pool.counters).toMatchObject({ forceClosed: 1, outOfSync: 0 })
  })

  it('D167: 5. out of step', async () => {
    const { pool, held, resource } = await inside()
    resource.condition = 'unfit'
    held.release()
    expect(resource.why).toBe('out of sync')
    expect(pool.counters.outOfSync).toBe(1)
  })

  it('D167: 6. put back; a waiter gets a new one in place of one that was closed', async () => {
    const { pool, held, resource } = await inside()
    const waiting = watch(pool.checkout())
    resource.condition = 'unfit'
    held.release()
    await settled()
    expect(waiting.value?.resource.id).toBe(2)
    waiting.value?.release()
    expect(pool.snapshot()).toMatchObject({ idle: 1, lent: 0, total: 1 })
  })
})
