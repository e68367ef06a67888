/**
 * Those who wait for a resource: first come first served within a priority, holders of other resources before the rest
 * (hard-parts §3.4). Knows no pool: it only keeps the order and ends each wait exactly once.
 */
import type { Clock, Timer } from '../base/clock.js'
import { engineError } from '../errors/engine-error.js'
import type { CheckoutRequest, Owner } from './pool-types.js'

export interface Waiter<C> {
  /** Already holds a resource of another pool. */
  readonly isHolder: boolean
  readonly owner: Owner | undefined
  readonly sinceMs: number
  readonly resolve: (checkout: C) => void
  readonly reject: (error: unknown) => void
  /** Set once the wait is over, in whichever way. */
  isSettled: boolean
  timer?: Timer
  stopListening?: () => void
  previous?: Waiter<C> | undefined
  next?: Waiter<C> | undefined
  /** The queue that it stands in; a reload moves it to another. */
  queue?: WaitQueue<C> | undefined
}

class Line<C> {
  head: Waiter<C> | undefined
  tail: Waiter<C> | undefined
  size = 0

  push(waiter: Waiter<C>): void {
    waiter.previous = this.tail
    waiter.next = undefined
    if (this.tail) this.tail.next = waiter
    else this.head = waiter
    this.tail = waiter
    this.size++
  }

  unshift(waiter: Waiter<C>): void {
    waiter.next = this.head
    waiter.previous = undefined
    if (this.head) this.head.previous = waiter
    else this.tail = waiter
    this.head = waiter
    this.size++
  }

  remove(waiter: Waiter<C>): void {
    if (waiter.previous) waiter.previous.next = waiter.next
    else this.head = waiter.next
    if (waiter.next) waiter.next.previous = waiter.previous
    else this.tail = waiter.previous
    waiter.previous = undefined
    waiter.next = undefined
    this.size--
  }
}

export class WaitQueue<C> {
  readonly #holders = new Line<C>()
  readonly #others = new Line<C>()

  get size(): number {
    return this.#holders.size + this.#others.size
  }

  get holders(): number {
    return this.#holders.size
  }

  get others(): number {
    return this.#others.size
  }

  /** When the longest of all waits began. */
  get oldestSinceMs(): number | undefined {
    const a = this.#holders.head?.sinceMs
    const b = this.#others.head?.sinceMs
    return a === undefined ? b : b === undefined ? a : Math.min(a, b)
  }

  push(waiter: Waiter<C>): void {
    waiter.queue = this
    this.#line(waiter).push(waiter)
  }

  /** Back to the place it had: the resource it was about to get turned out bad. */
  pushFront(waiter: Waiter<C>): void {
    waiter.queue = this
    this.#line(waiter).unshift(waiter)
  }

  remove(waiter: Waiter<C>): void {
    if (waiter.queue !== this) return
    waiter.queue = undefined
    this.#line(waiter).remove(waiter)
  }

  /** Takes out who is next; those that hold nothing only when `othersMayGo`. */
  shift(othersMayGo: boolean): Waiter<C> | undefined {
    const waiter = this.#holders.head ?? (othersMayGo ? this.#others.head : undefined)
    if (waiter) this.remove(waiter)
    return waiter
  }

  /** Those who already hold a resource of another pool, in order. */
  *waitingHolders(): Iterable<Waiter<C>> {
    for (let next = this.#holders.head; next; next = next.next) yield next
  }

  /** Takes out all, in order. */
  takeAll(): Waiter<C>[] {
    const all: Waiter<C>[] = []
    for (let next = this.shift(true); next; next = this.shift(true)) all.push(next)
    return all
  }

  #line(waiter: Waiter<C>): Line<C> {
    return waiter.isHolder ? this.#holders : this.#others
  }
}

/** Ends a wait: true for the first caller only, who must then resolve or reject. */
export function settle<C>(waiter: Waiter<C>): boolean {
  if (waiter.isSettled) return false
  waiter.isSettled = true
  waiter.timer?.cancel()
  waiter.stopListening?.()
  return true
}

export interface WaitOptions<C> {
  readonly clock: Clock
  readonly request: CheckoutRequest
  /** When the request has none. Number.MAX_SAFE_INTEGER or more: for ever. */
  readonly timeoutMs: number
  resolve(checkout: C): void
  reject(error: unknown): void
  /** The error of a wait that took too long. */
  timedOut(timeoutMs: number, waitedMs: number): Error
}

/** A wait that ends itself when its time is over or its signal aborts; the caller puts it into a queue. */
export function startWait<C>(options: WaitOptions<C>): Waiter<C> {
  const { clock, request, resolve, reject } = options
  const { signal, isHolder = false, owner, timeoutMs = options.timeoutMs } = request
  const sinceMs = clock.monotonicMs()
  const waiter: Waiter<C> = { isHolder, owner, sinceMs, resolve, reject, isSettled: false }
  const fail = (makeError: () => Error) => {
    if (!settle(waiter)) return
    waiter.queue?.remove(waiter)
    reject(makeError())
  }
  if (timeoutMs < Number.MAX_SAFE_INTEGER) {
    waiter.timer = clock.after(timeoutMs, () =>
      fail(() => options.timedOut(timeoutMs, clock.monotonicMs() - sinceMs)),
    )
  }
  if (signal) {
    const onAbort = () => fail(() => engineError('POOL_CHECKOUT_ABORTED'))
    signal.addEventListener('abort', onAbort, { once: true })
    waiter.stopListening = () => signal.removeEventListener('abort', onAbort)
  }
  return waiter
}
