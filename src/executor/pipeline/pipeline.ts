/**
 * Statement pipelining on the servers of one pool: reads of different clients stand behind one another on few servers
 * that are running anyway, instead of waking one each. Chooses lanes, opens them, and watches for those that stall.
 */
import type { Clock, Timer } from '../../base/clock.js'
import { atEndOfTick } from '../../base/end-of-tick.js'
import { isEngineError } from '../../errors/engine-error.js'
import type { ResourcePool } from '../../pool/resource-pool.js'
import type { ServerCheckout } from '../../pool/shard-pools.js'
import type { ServerConnection } from '../../server/server-connection.js'
import { type BusyLane, firstFree, isQueueingFaster, WakeUp } from './choose-lane.js'
import { Lane } from './lane.js'
import type { LaneOwner, PipelineLimits, RefilledLane } from './lane-owner.js'
import type { Carrier, PipelinedClient } from './pipelined-client.js'
import { preludeFor } from './prelude.js'
import { WaitingLine } from './waiting-line.js'

/** Looks at lanes in one stall. */
const LOOKS = 4

export class Pipeline implements LaneOwner {
  readonly clock: Clock
  readonly wakeUp = new WakeUp()
  readonly #pool: ResourcePool<ServerConnection>
  readonly #limits: () => PipelineLimits
  readonly #lanes: Lane[] = []
  #joined: { flush(): void }[] = []
  #watching: Timer | undefined
  readonly #line = new WaitingLine()
  #isAsking = false
  /** As they stood when the last request came. */
  #inForce: PipelineLimits

  constructor(
    pool: ResourcePool<ServerConnection>,
    options: { readonly clock: Clock; readonly limits: () => PipelineLimits },
  ) {
    this.#pool = pool
    this.clock = options.clock
    this.#limits = options.limits
    this.#inForce = options.limits()
  }

  get limits(): PipelineLimits {
    return this.#inForce
  }

  /** Others than those of our line. */
  get waiting(): number {
    return this.#pool.waiting - (this.#isAsking ? 1 : 0)
  }

  /** Lanes with requests under way. */
  get lanes(): number {
    return this.#lanes.length
  }

  /** Carries the request from now on. */
  run(client: PipelinedClient, nowMs: number): Carrier {
    this.#inForce = this.#limits()
    const lane = this.#line.size > 0 ? undefined : this.#choose(client, nowMs)
    if (lane) {
      lane.push(client, nowMs)
      return lane
    }
    this.#line.push(client, nowMs)
    this.#ask()
    return this.#line
  }

  refill(lane: RefilledLane): void {
    if (this.#line.size === 0) return
    const nowMs = this.clock.monotonicMs()
    for (let next = this.#line.first; next; next = this.#line.first) {
      if (!lane.mayTake(next.client, nowMs)) return
      this.#pushFirst(lane, nowMs)
    }
  }

  flushSoon(lane: { flush(): void }): void {
    if (this.#joined.length === 0) atEndOfTick(this.#flush)
    this.#joined.push(lane)
  }

  watch(): void {
    this.#watching ??= this.clock.after(this.limits.stallMs / LOOKS, this.#look)
  }

  ended(lane: BusyLane): void {
    const at = this.#lanes.indexOf(lane as Lane)
    if (at < 0) return
    const last = this.#lanes.pop() as Lane
    if (last !== lane) this.#lanes[at] = last
  }

  #choose(client: PipelinedClient, nowMs: number): Lane | undefined {
    const busy = firstFree(this.#lanes, client, nowMs)
    if (busy && isQueueingFaster(busy, this.wakeUp)) return busy
    const fresh = this.#open(client, nowMs)
    if (fresh) return fresh
    // many stand behind one another: one server more is worth its opening, which nobody waits for
    if (busy) this.#pool.grow()
    return busy
  }

  #open(client: PipelinedClient, nowMs: number): Lane | undefined {
    const checkout = this.#pool.tryCheckout()
    return checkout && this.#begin(checkout, client, nowMs)
  }

  #begin(checkout: ServerCheckout, client: PipelinedClient, nowMs: number): Lane {
    const lane = new Lane(this, checkout, client.settings, nowMs)
    this.#lanes.push(lane)
    const prelude = preludeFor(checkout.resource, client.settings)
    if (prelude) lane.begin(prelude)
    return lane
  }

  /** One place in the pool's queue for the whole line, as long as who has waited longest may still wait. */
  #ask(): void {
    const { first } = this.#line
    if (this.#isAsking || !first) return
    this.#isAsking = true
    const waitedMs = this.clock.monotonicMs() - first.sinceMs
    const timeoutMs = Math.max(1, this.#pool.limits.checkoutTimeoutMs - waitedMs)
    this.#pool.checkout({ timeoutMs }).then(this.#lent, this.#refused)
  }

  #pushFirst(lane: RefilledLane, nowMs: number): void {
    const client = this.#line.shift()
    client?.carriedBy(lane)
    if (client) lane.push(client, nowMs)
  }

  readonly #lent = (checkout: ServerCheckout): void => {
    this.#isAsking = false
    const { first } = this.#line
    if (!first) return checkout.release()
    const nowMs = this.clock.monotonicMs()
    const lane = this.#begin(checkout, first.client, nowMs)
    this.#pushFirst(lane, nowMs)
    this.refill(lane)
    this.#ask()
  }

  readonly #refused = (error: unknown): void => {
    this.#isAsking = false
    if (isEngineError(error) && error.code === 'POOL_CHECKOUT_TIMEOUT') {
      const longAgo = this.clock.monotonicMs() - this.#pool.limits.checkoutTimeoutMs
      while ((this.#line.first?.sinceMs ?? Number.POSITIVE_INFINITY) <= longAgo)
        this.#line.shift()?.lost(error, false)
      return this.#ask()
    }
    // there each hears for itself what the matter is, or finds the pool that has taken over
    for (const client of this.#line.takeAll()) client.elsewhere()
  }

  readonly #flush = (): void => {
    const lanes = this.#joined
    this.#joined = []
    for (const lane of lanes) lane.flush()
  }

  /** What has come meanwhile is read first: it may have been this process that was late. */
  readonly #look = (): void => atEndOfTick(this.#judge)

  readonly #judge = (): void => {
    this.#watching = undefined
    const nowMs = this.clock.monotonicMs()
    let isNeeded = false
    for (const lane of [...this.#lanes]) isNeeded = lane.check(nowMs) || isNeeded
    if (isNeeded) this.watch()
  }
}
