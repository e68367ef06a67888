/** The queue of a pool with its books: how long callers waited, how many gave up. */
import type { Clock } from '../base/clock.js'
import type { Checkout } from './checkout.js'
import type { PoolCounters, PoolEvents } from './pool-types.js'
import { settle, type Waiter, WaitQueue } from './wait-queue.js'

export class PoolWaits<T> {
  readonly queue = new WaitQueue<Checkout<T>>()
  readonly #clock: Clock
  readonly #events: PoolEvents
  readonly #counters: PoolCounters

  constructor(clock: Clock, events: PoolEvents, counters: PoolCounters) {
    this.#clock = clock
    this.#events = events
    this.#counters = counters
  }

  /** Milliseconds of the longest wait. */
  get longestMs(): number {
    const since = this.queue.oldestSinceMs
    return since === undefined ? 0 : this.#clock.monotonicMs() - since
  }

  /** The error of a wait that took too long. */
  timedOut(timeoutMs: number, waitedMs: number, pool: { lent: number; maxSize: number }): Error {
    this.#counters.timedOut++
    this.#waited(waitedMs)
    return this.#events.timedOut({ timeoutMs, ...pool, waiting: this.queue.size })
  }

  finish(waiter: Waiter<Checkout<T>>, checkout: Checkout<T>): void {
    settle(waiter)
    this.#waited(this.#clock.monotonicMs() - waiter.sinceMs)
    waiter.resolve(checkout)
  }

  /** Ends all waits. */
  rejectAll(error: unknown): void {
    const now = this.#clock.monotonicMs()
    for (const waiter of this.queue.takeAll()) {
      if (!settle(waiter)) continue
      this.#waited(now - waiter.sinceMs)
      waiter.reject(error)
    }
  }

  #waited(waitedMs: number): void {
    this.#counters.waitMs += waitedMs
    this.#events.onWaited(waitedMs)
  }
}
