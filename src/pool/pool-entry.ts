/** One live resource of a pool, and the hold on it while it is lent. The hold follows the resource when a reload moves it to another pool. */
import { engineError } from '../errors/engine-error.js'
import type { Checkout } from './checkout.js'
import type { Owner, PoolLimits } from './pool-types.js'

/** Takes back what was lent. */
export interface Keeper<T> {
  checkIn(entry: Entry<T>): void
  throwAway(entry: Entry<T>, why: string): void
}

export interface Entry<T> {
  readonly resource: T
  /** The pool that it belongs to now. */
  keeper: Keeper<T>
  isLent: boolean
  /** Lent to one that holds resources of other pools too. */
  isHolder: boolean
  /** Who has it; undefined also when it was not said. */
  owner: Owner | undefined
  readonly openedAtMs: number
  readonly expiresAtMs: number
  usedAtMs: number
  checkedAtMs: number
  /** 0 while nobody asks how long resources are kept. */
  lentAtMs: number
  /** Closed when it comes back. */
  isForceClosed: boolean
}

export function newEntry<T>(
  resource: T,
  keeper: Keeper<T>,
  nowMs: number,
  limits: PoolLimits,
  random: () => number,
): Entry<T> {
  const jitterMs = (random() * 2 - 1) * limits.lifetimeJitterMs
  return {
    resource,
    keeper,
    isLent: false,
    isHolder: false,
    owner: undefined,
    openedAtMs: nowMs,
    expiresAtMs: nowMs + limits.lifetimeMs + jitterMs,
    usedAtMs: nowMs,
    checkedAtMs: nowMs,
    lentAtMs: 0,
    isForceClosed: false,
  }
}

export class PoolCheckout<T> implements Checkout<T> {
  readonly resource: T
  readonly #entry: Entry<T>
  #isOpen = true

  constructor(entry: Entry<T>) {
    this.#entry = entry
    this.resource = entry.resource
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  release(): void {
    this.#end()
    this.#entry.keeper.checkIn(this.#entry)
  }

  discard(why: string): void {
    this.#end()
    this.#entry.keeper.throwAway(this.#entry, why)
  }

  [Symbol.dispose](): void {
    if (this.#isOpen) this.release()
  }

  #end(): void {
    if (!this.#isOpen) throw engineError('POOL_CHECKOUT_ENDED')
    this.#isOpen = false
  }
}
