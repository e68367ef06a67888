/**
 * Statement pipelining on the servers of one pool: reads of different clients stand behind one another on few servers
 * that are running anyway, instead of waking one each. Chooses lanes, opens them, and watches for those that stall.
 */
import type { Clock, Timer } from '../../base/clock.js'
import { atEndOfTick } from '../../base/end-of-tick.js'
import type { ResourcePool } from '../../pool/resource-pool.js'
import type { ServerConnection } from '../../server/server-connection.js'
import { type BusyLane, firstFree, isQueueingFaster, WakeUp } from './choose-lane.js'
import { Lane } from './lane.js'
import type { LaneOwner, PipelineLimits } from './lane-owner.js'
import type { PipelinedClient } from './pipelined-client.js'
import { preludeFor } from './prelude.js'

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

  constructor(
    pool: ResourcePool<ServerConnection>,
    options: { readonly clock: Clock; readonly limits: () => PipelineLimits },
  ) {
    this.#pool = pool
    this.clock = options.clock
    this.#limits = options.limits
  }

  get limits(): PipelineLimits {
    return this.#limits()
  }

  get waiting(): number {
    return this.#pool.waiting
  }

  /** Lanes with requests under way. */
  get lanes(): number {
    return this.#lanes.length
  }

  /** The lane that carries the request from now on; undefined: it must get a server of its own. */
  run(client: PipelinedClient, nowMs: number): Lane | undefined {
    const lane = this.#choose(client, nowMs)
    lane?.push(client, nowMs)
    return lane
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
    if (!checkout) return undefined
    const lane = new Lane(this, checkout, client.settings, nowMs)
    this.#lanes.push(lane)
    const prelude = preludeFor(checkout.resource, client.settings)
    if (prelude) lane.begin(prelude)
    return lane
  }

  readonly #flush = (): void => {
    const lanes = this.#joined
    this.#joined = []
    for (const lane of lanes) lane.flush()
  }

  readonly #look = (): void => {
    this.#watching = undefined
    const nowMs = this.clock.monotonicMs()
    let isNeeded = false
    for (const lane of [...this.#lanes]) isNeeded = lane.check(nowMs) || isNeeded
    if (isNeeded) this.watch()
  }
}
