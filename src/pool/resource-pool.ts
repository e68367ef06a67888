/**
 * A pool of anything that is dear to open. Knows no PostgreSQL: `ResourceKind` says how to open, judge, check and close.
 * An idle resource is lent synchronously; else callers queue. One resource is opened at a time, on demand (D165).
 * Never lends one resource twice, never opens past `maxSize`, never blocks: between taking and bookkeeping there is no await.
 */
import type { Clock } from '../base/clock.js'
import { engineError } from '../errors/engine-error.js'
import { Capacity } from './capacity.js'
import type { Checkout } from './checkout.js'
import type { Standing } from './holder-cycles.js'
import { LentCount } from './lent-count.js'
import { Opener } from './opener.js'
import { type Entry, type Keeper, newEntry, PoolCheckout } from './pool-entry.js'
import {
  type CheckoutRequest,
  noCounters,
  type Owner,
  type PoolCounters,
  type PoolEnvironment,
  type PoolEvents,
  type PoolLimits,
  type PoolSnapshot,
  type ResourceKind,
} from './pool-types.js'
import { isCheckDue, runCheck, takeSurplus, verdictOf } from './pool-verdict.js'
import { PoolWaits } from './pool-waits.js'
import { type ResourceState, stateOf } from './resource-state.js'
import { Rooms, type RoomUser } from './room.js'
import { settle, startWait, type Waiter, type WaitQueue } from './wait-queue.js'

export class ResourcePool<T> implements Keeper<T>, RoomUser {
  readonly counters: PoolCounters = noCounters()
  readonly limits: PoolLimits
  readonly #kind: ResourceKind<T>
  readonly #events: PoolEvents
  readonly #clock: Clock
  readonly #random: () => number
  readonly #entries = new Map<T, Entry<T>>()
  readonly #idle: Entry<T>[] = []
  readonly #waits: PoolWaits<T>
  readonly #queue: WaitQueue<Checkout<T>>
  readonly #opener: Opener<T>
  readonly #lent: LentCount
  readonly #capacity: Capacity
  #isPaused = false
  #isOnline = true
  #heir: ResourcePool<T> | undefined

  constructor(
    kind: ResourceKind<T>,
    limits: PoolLimits,
    events: PoolEvents,
    environment: PoolEnvironment,
  ) {
    this.#kind = kind
    this.limits = limits
    this.#events = events
    this.#clock = environment.clock
    this.#random = environment.random
    this.#lent = new LentCount(environment.clock, events.onReturned)
    const { clock, rooms = new Rooms([]) } = environment
    this.#waits = new PoolWaits(clock, events, this.counters)
    this.#queue = this.#waits.queue
    this.#capacity = new Capacity({ limits, clock, rooms, queue: this.#queue })
    rooms.join(this)
    this.#opener = new Opener({
      clock: environment.clock,
      open: (signal) => kind.open(signal),
      onOpened: (resource) => this.#last().#adopt(resource),
      onFailed: (error) => this.#openFailed(error),
    })
  }

  get lent(): number {
    return this.#lent.total
  }

  /** Callers in the queue. */
  get waiting(): number {
    return this.#queue.size
  }

  snapshot(): PoolSnapshot {
    return {
      idle: this.#idle.length,
      lent: this.#lent.total,
      opening: this.#opener.isOpening ? 1 : 0,
      total: this.#entries.size,
      waiting: this.#queue.size,
      maxWaitMs: this.#waits.longestMs,
      isPaused: this.#isPaused,
      isOnline: this.#isOnline,
    }
  }

  /** Every live resource with what the pool knows of it. */
  *resources(): Iterable<ResourceState<T>> {
    const now = this.#clock.monotonicMs()
    for (const entry of this.#entries.values()) yield stateOf(entry, now)
  }

  owns(resource: T): boolean {
    return this.#entries.has(resource)
  }

  /** The last resource given back, when it may be lent at once: no queue ahead, no check due. */
  tryCheckout(isHolder = false, owner?: Owner): Checkout<T> | undefined {
    if (!this.#isOnline || !this.#mayGo(isHolder)) return undefined
    if (this.#queue.holders > 0 || (!isHolder && this.#queue.others > 0)) return undefined
    const entry = this.#idle.at(-1)
    if (!entry) return undefined
    if (isCheckDue(entry, this.limits, this.#clock)) return undefined
    this.#idle.pop()
    this.#lent.take(entry, isHolder, owner)
    return this.#lend(entry)
  }

  /**
   * Waits for its turn; use `tryCheckout` first.
   * @throws what `events.timedOut` and `events.offline` make, the error of opening when nothing is left to wait for, POOL_CHECKOUT_ABORTED
   */
  checkout(request: CheckoutRequest = {}): Promise<Checkout<T>> {
    return new Promise((resolve, reject) => {
      if (!this.#isOnline) return reject(this.#events.offline())
      if (request.signal?.aborted) return reject(engineError('POOL_CHECKOUT_ABORTED'))
      const waiter = startWait<Checkout<T>>({
        ...{ clock: this.#clock, request, resolve, reject },
        timeoutMs: this.limits.checkoutTimeoutMs,
        timedOut: (timeoutMs, waitedMs) => this.#last().#timedOut(timeoutMs, waitedMs),
      })
      this.#queue.push(waiter)
      this.#serve()
    })
  }

  /** Closes what is idle; until `resume` lends only to holders of other resources (they could not give those back). Other callers stay in the queue, and their time-outs run on. */
  pause(): void {
    this.#isPaused = true
    this.closeIdle('the pool is paused')
  }

  resume(): void {
    this.#isPaused = false
    this.#serve()
  }

  /** Resolves when nothing is lent. */
  whenDrained(): Promise<void> {
    return this.#lent.whenNone()
  }

  /** For ever: refuses callers, closes what is idle, and what is lent when it comes back. May be called twice. */
  goOffline(): void {
    if (!this.#isOnline) return
    this.#isOnline = false
    this.#opener.abort()
    this.#capacity.rooms.leave(this)
    this.closeIdle('the pool is closed')
    this.rejectWaiters(this.#events.offline())
  }

  /** Closes what is idle now, and what is lent when it comes back (RECONNECT). */
  recycle(why: string): void {
    for (const entry of this.#entries.values()) if (entry.isLent) entry.isForceClosed = true
    this.closeIdle(why)
    this.#serve()
  }

  /** Closes what is idle; lent resources are judged when they come back. */
  closeIdle(why: string): void {
    for (const entry of this.#idle.splice(0)) this.#drop(entry, why)
  }

  /** The resource died by itself: an idle one leaves the pool, a lent one is judged when it comes back. */
  forget(resource: T): void {
    const pool = this.#last()
    const entry = pool.#entries.get(resource)
    if (!entry || entry.isLent) return
    pool.#idle.splice(pool.#idle.indexOf(entry), 1)
    pool.#drop(entry, 'closed by the server')
    pool.#serve()
  }

  /** Gives all resources and waiting callers to `heir` and goes offline; what is lent returns to `heir` (D190–D195). */
  moveTo(heir: ResourcePool<T>): void {
    for (const entry of this.#entries.values()) {
      entry.keeper = heir
      heir.#entries.set(entry.resource, entry)
    }
    heir.#idle.push(...this.#idle.splice(0))
    this.#lent.moveTo(heir.#lent)
    this.#entries.clear()
    for (const waiter of this.#queue.takeAll()) heir.#queue.push(waiter)
    this.#heir = heir
    this.#isOnline = false
    this.#capacity.rooms.leave(this)
    heir.#isPaused = heir.#isPaused || this.#isPaused
    heir.maintain()
  }

  /** One beat (D161): old and surplus idle resources go, missing ones are opened. */
  maintain(): void {
    if (!this.#isOnline) return
    const now = this.#clock.monotonicMs()
    for (const { entry, why } of takeSurplus(this.#idle, now, this.#entries.size, this.limits))
      this.#drop(entry, why)
    this.#serve()
  }

  /** Checks the resource that was idle longest; undefined when none is idle. */
  async checkIdle(): Promise<boolean | undefined> {
    const entry = this.#idle.shift()
    if (!entry) return undefined
    this.#lent.take(entry, true)
    const isGood = await runCheck(entry, this.#kind, this.counters, this.#clock)
    const pool = entry.keeper as ResourcePool<T>
    pool.#afterCheck(entry, isGood)
    pool.#serve()
    return isGood
  }

  /** Used by limits that several pools share. */
  giveUpIdle(): boolean {
    const entry = this.#idle.shift()
    if (entry) this.#drop(entry, 'another pool needs the room')
    return entry !== undefined
  }

  roomFreed(): void {
    this.#serve()
  }

  /** Who has resources of it and who waits for one while it holds others (hard-parts §3.4). */
  get standing(): Standing {
    const mayOpen = this.#entries.size < this.#capacity.openable || this.#opener.isOpening
    const entries = [...this.#entries.values()]
    return {
      waiting: [...this.#queue.waitingHolders()],
      owners: entries.map((entry) => entry.owner),
      hasFree: mayOpen || entries.some((entry) => !entry.isLent),
    }
  }

  /** Used by checkouts. */
  checkIn(entry: Entry<T>): void {
    this.#lent.untake(entry)
    const nowMs = this.#clock.monotonicMs()
    const isOpen = this.#isOnline && !this.#isPaused
    const isOverfull = this.#entries.size > this.#capacity.most
    const condition = this.#kind.condition(entry.resource)
    const verdict = verdictOf(entry, condition, { isOpen, isOverfull, nowMs })
    if (verdict) {
      if (verdict.counts) this.counters[verdict.counts]++
      this.#drop(entry, verdict.why)
      if (verdict.counts === 'failed') this.#events.onBroken('failed')
    } else {
      entry.usedAtMs = nowMs
      this.#putBack(entry)
    }
    this.#serve()
  }

  /** Used by checkouts. */
  throwAway(entry: Entry<T>, why: string): void {
    this.#lent.untake(entry)
    if (this.#kind.condition(entry.resource) === 'failed') {
      this.counters.failed++
      this.#events.onBroken('failed')
    } else this.counters.forceClosed++
    this.#drop(entry, why)
    this.#serve()
  }

  #mayGo(isHolder: boolean): boolean {
    if (isHolder) return true
    return !this.#isPaused && this.#lent.toOthers < this.#capacity.lendable(this.#entries.size)
  }

  #timedOut(timeoutMs: number, waitedMs: number): Error {
    const { maxSize } = this.limits
    return this.#waits.timedOut(timeoutMs, waitedMs, { lent: this.#lent.total, maxSize })
  }

  #lend(entry: Entry<T>): Checkout<T> {
    this.counters.checkouts++
    return new PoolCheckout(entry)
  }

  /** Hands idle resources to those who wait, then sees whether more are needed. */
  #serve(): void {
    if (!this.#isOnline) return
    while (this.#idle.length > 0) {
      const waiter = this.#queue.shift(this.#mayGo(false))
      if (!waiter) break
      this.#hand(this.#idle.pop() as Entry<T>, waiter)
    }
    this.#openIfNeeded()
  }

  /** D168: who waits goes before the idle list. */
  #putBack(entry: Entry<T>): void {
    const waiter = this.#isOnline ? this.#queue.shift(this.#mayGo(false)) : undefined
    if (waiter) this.#hand(entry, waiter)
    else if (this.#isPaused) this.#drop(entry, 'the pool is paused')
    else if (this.#capacity.rooms.isWantedBesides(this))
      this.#drop(entry, 'another pool needs the room')
    else this.#idle.push(entry)
  }

  #hand(entry: Entry<T>, waiter: Waiter<Checkout<T>>): void {
    this.#lent.take(entry, waiter.isHolder, waiter.owner)
    if (isCheckDue(entry, this.limits, this.#clock)) void this.#checkAndHand(entry, waiter)
    else this.#waits.finish(waiter, this.#lend(entry))
  }

  async #checkAndHand(entry: Entry<T>, waiter: Waiter<Checkout<T>>): Promise<void> {
    const isGood = await runCheck(entry, this.#kind, this.counters, this.#clock)
    const pool = entry.keeper as ResourcePool<T>
    if (isGood && !waiter.isSettled && pool.#canLend(entry, waiter.isHolder))
      return pool.#waits.finish(waiter, pool.#lend(entry))
    if (!waiter.isSettled) pool.#requeue(waiter)
    pool.#afterCheck(entry, isGood)
    pool.#serve()
  }

  #canLend(entry: Entry<T>, isHolder: boolean): boolean {
    return this.#isOnline && (isHolder || !this.#isPaused) && !entry.isForceClosed
  }

  #requeue(waiter: Waiter<Checkout<T>>): void {
    if (this.#isOnline) this.#queue.pushFront(waiter)
    else if (settle(waiter)) waiter.reject(this.#events.offline())
  }

  #afterCheck(entry: Entry<T>, isGood: boolean): void {
    this.#lent.untake(entry)
    if (!isGood) {
      this.#drop(entry, 'failed its check')
      this.#events.onBroken('check')
    } else if (this.#canLend(entry, true)) this.#putBack(entry)
    else this.#drop(entry, 'to be replaced')
  }

  #drop(entry: Entry<T>, why: string): void {
    this.#entries.delete(entry.resource)
    this.counters.closed++
    this.#kind.close(entry.resource, why)
    this.#capacity.rooms.free()
  }

  /** Opens one more if there may be more, although nobody waits. */
  grow(): void {
    this.#openIfNeeded(this.limits.maxSize)
  }

  #openIfNeeded(minSize = this.limits.minSize): void {
    if (this.#opener.isOpening || !this.#isOnline) return
    const total = this.#entries.size
    if (total >= this.#capacity.openable) return
    const isWanted = this.#queue.holders > 0 || (this.#queue.others > 0 && this.#mayGo(false))
    // With nothing alive a caller's try is made at once; else, after a failure, on a later beat.
    const mayTry = this.#opener.mayTry || (isWanted && total === 0)
    const isBelowMinimum = !this.#isPaused && total < minSize
    if (!mayTry || (!isWanted && !isBelowMinimum)) return
    if (this.#capacity.rooms.take(this, isWanted)) this.#opener.start()
  }

  /** The pool that stands for this one after reloads. */
  #last(): ResourcePool<T> {
    return this.#heir ? this.#heir.#last() : this
  }

  #adopt(resource: T): void {
    this.counters.opened++
    if (!this.#isOnline || this.#entries.size >= this.#capacity.most) {
      this.counters.closed++
      this.#kind.close(resource, 'not needed any more')
      return this.#capacity.rooms.free()
    }
    const now = this.#clock.monotonicMs()
    const entry = newEntry(resource, this, now, this.limits, this.#random)
    this.#entries.set(resource, entry)
    this.#events.onOpened()
    this.#putBack(entry)
    this.#serve()
  }

  #openFailed(error: unknown): void {
    this.#capacity.rooms.free()
    if (this.#heir) {
      this.#heir.#serve()
      return
    }
    this.counters.openFailed++
    if (!this.#isOnline) return
    this.#events.onOpenFailed(error)
    // While something is alive it may come back and serve who waits; else waiting is in vain.
    if (this.#entries.size > 0) return
    this.rejectWaiters(error)
  }

  /** Ends all waits. */
  rejectWaiters(error: unknown): void {
    this.#waits.rejectAll(error)
  }
}
