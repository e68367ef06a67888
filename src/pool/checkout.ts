/** The hold on a pooled resource. It ends exactly once: given back or thrown away. */

export interface Checkout<T> {
  readonly resource: T
  /** Gives the resource back; the pool decides whether it is fit to be lent again. @throws POOL_CHECKOUT_ENDED */
  release(): void
  /** Closes the resource; `why` goes to the log and the counters. @throws POOL_CHECKOUT_ENDED */
  discard(why: string): void
  /** False once released or discarded. */
  readonly isOpen: boolean
  /** Gives back what was not ended yet, for `using`: also when the scope is left by an error. */
  [Symbol.dispose](): void
}
