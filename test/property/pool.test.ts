/**
 * The pool against a model: whatever happens in whatever order, in use + idle + opening never passes the maximum, each
 * resource has one user at a time, each wait ends once, and those served come in order of arrival within their priority.
 */
import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import type { Checkout } from '../../src/pool/checkout.js'
import { settled } from '../support/fake-clock.js'
import { type FakeResource, makePool } from '../unit/pool/fake-kind.js'

interface Wait {
  index: number
  isHolder: boolean
  controller: AbortController
  ends: string[]
}

const action = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant('checkout' as const), isHolder: fc.boolean() }),
  },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('release' as const), at: fc.nat(20) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('discard' as const), at: fc.nat(20) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('break' as const), at: fc.nat(20) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('abort' as const), at: fc.nat(20) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('open' as const), works: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('advance' as const), ms: fc.nat(600) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constantFrom(
        'pause' as const,
        'resume' as const,
        'maintain' as const,
        'recycle' as const,
      ),
    }),
  },
)
type Action = typeof action extends fc.Arbitrary<infer A> ? A : never

class Run {
  readonly made = makePool({
    minSize: 1,
    maxSize: 3,
    reservedForHolders: 1,
    checkoutTimeoutMs: 1000,
    lifetimeMs: 3000,
    idleTimeoutMs: 800,
  })
  readonly held: Checkout<FakeResource>[] = []
  readonly waits: Wait[] = []
  /** Waits that were served, in order. */
  readonly served: Wait[] = []
  isPaused = false

  async step(act: Action): Promise<void> {
    const { pool, kind, clock } = this.made
    if (act.kind === 'checkout') this.checkout(act.isHolder)
    else if ('at' in act) this.touch(act.kind, act.at)
    else if (act.kind === 'advance') await clock.advance(act.ms)
    else if (act.kind === 'open') {
      kind.isDown = !act.works
      kind.openings[0]?.resolve()
    } else {
      this.isPaused = act.kind === 'pause' || (this.isPaused && act.kind !== 'resume')
      if (act.kind === 'recycle') pool.recycle('test')
      else pool[act.kind]()
    }
    await settled()
    this.check()
  }

  touch(what: 'release' | 'discard' | 'break' | 'abort', at: number): void {
    if (what === 'abort') this.waits[at % Math.max(this.waits.length, 1)]?.controller.abort()
    const held = this.held[at % Math.max(this.held.length, 1)]
    if (!held || what === 'abort') return
    if (what === 'break') {
      held.resource.condition = at % 2 ? 'failed' : 'unfit'
      return
    }
    this.held.splice(this.held.indexOf(held), 1)
    if (what === 'release') held.release()
    else held.discard('test')
    expect(() => held.release()).toThrow()
  }

  checkout(isHolder: boolean): void {
    const { pool } = this.made
    const waitingAhead = pool.snapshot().waiting
    const at = pool.tryCheckout(isHolder)
    if (at) {
      expect(isHolder || !this.isPaused).toBe(true)
      // A plain caller never overtakes; a holder overtakes only those that hold nothing.
      if (!isHolder) expect(waitingAhead).toBe(0)
      this.hold(at)
      return
    }
    const wait: Wait = {
      index: this.waits.length,
      isHolder,
      controller: new AbortController(),
      ends: [],
    }
    this.waits.push(wait)
    pool.checkout({ isHolder, signal: wait.controller.signal }).then(
      (checkout) => {
        wait.ends.push('served')
        this.served.push(wait)
        this.hold(checkout)
      },
      (error: Error) => wait.ends.push(error.message),
    )
  }

  hold(checkout: Checkout<FakeResource>): void {
    expect(checkout.resource.isClosed).toBe(false)
    expect(this.held.some((other) => other.resource === checkout.resource)).toBe(false)
    this.held.push(checkout)
  }

  check(): void {
    const { pool, kind } = this.made
    const now = pool.snapshot()
    expect(now.lent + now.idle + now.opening).toBeLessThanOrEqual(3)
    expect(now.lent).toBe(this.held.length)
    expect(now.total).toBe(now.lent + now.idle)
    expect(now.total).toBe(kind.live.length)
    expect(kind.mostOpenAtOnce).toBeLessThanOrEqual(1)
    expect(now.waiting).toBe(this.waits.filter((wait) => wait.ends.length === 0).length)
    for (const wait of this.waits) {
      expect(wait.ends.length).toBeLessThanOrEqual(1)
      if (wait.controller.signal.aborted && wait.ends.length > 0) {
        expect(wait.ends[0] === 'served').toBe(this.served.includes(wait))
      }
    }
    for (const isHolder of [true, false]) {
      const order = this.served.filter((w) => w.isHolder === isHolder).map((w) => w.index)
      expect(order).toEqual([...order].sort((a, b) => a - b))
    }
    // Nobody waits beside an idle resource that he may have.
    if (!this.isPaused && now.idle > 0) {
      const open = this.waits.filter((wait) => wait.ends.length === 0)
      expect(open.some((wait) => wait.isHolder)).toBe(false)
    }
  }
}

it('holds its promises under any order of events', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(action, { maxLength: 80, size: 'max' }), async (actions) => {
      const run = new Run()
      run.made.kind.isManual = true
      for (const act of actions) await run.step(act)
      // The end: everything that was lent comes back, every wait ends.
      run.made.pool.resume()
      run.isPaused = false
      run.made.kind.isManual = false
      for (const held of run.held.splice(0)) held.release()
      run.made.pool.goOffline()
      await settled()
      for (const held of run.held.splice(0)) held.release()
      expect(run.waits.every((wait) => wait.ends.length === 1)).toBe(true)
      expect(run.made.kind.live).toHaveLength(0)
      expect(run.made.clock.pendingTimers).toBe(0)
    }),
    { numRuns: 300, seed: 42 },
  )
})
