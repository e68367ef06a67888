/** What a pool is told and what it tells: plain shapes, no behaviour. */
import type { Clock } from '../base/clock.js'
import type { Rooms } from './room.js'

/** Whether a resource that comes back may be lent again. */
export type Condition = 'fit' | 'failed' | 'unfit'

export interface ResourceKind<T> {
  open(signal: AbortSignal): Promise<T>
  /** Never throws. */
  close(resource: T, why: string): void
  condition(resource: T): Condition
  /** True when the resource is good; bounded in time by itself; never rejects. */
  check(resource: T): Promise<boolean>
}

export interface PoolLimits {
  readonly minSize: number
  readonly maxSize: number
  /** Slots that only holders of other resources may take (hard-parts §3.4). */
  readonly reservedForHolders: number
  /** More than `maxSize` by so many while a caller has waited for `reserveAfterMs`. */
  readonly reserveSize: number
  readonly reserveAfterMs: number
  readonly checkoutTimeoutMs: number
  readonly lifetimeMs: number
  readonly lifetimeJitterMs: number
  readonly idleTimeoutMs: number
  /** A resource not checked for this long is checked before it is lent. */
  readonly checkIntervalMs: number
}

export interface PoolEvents {
  onOpenFailed(error: unknown): void
  onOpened(): void
  /** A caller got his resource after waiting for it, or gave up. */
  onWaited(waitedMs: number): void
  /** A resource came back after this time; absent: nobody wants to know, and no clock is read. */
  onReturned?(heldMs: number): void
  /** A resource was found broken, at check-in or by a check. */
  onBroken(why: 'failed' | 'check'): void
  timedOut(facts: { timeoutMs: number; lent: number; maxSize: number; waiting: number }): Error
  offline(): Error
}

export interface PoolEnvironment {
  readonly clock: Clock
  /** 0 ≤ x < 1. */
  readonly random: () => number
  /** Limits that it shares with other pools. */
  readonly rooms?: Rooms
}

/** Whoever may hold resources of several pools at once. */
export interface Owner {
  /** The youngest has the highest. */
  readonly order: number
  /** There while it has used nothing of what it holds: gives all of it back, because one who cannot do so waits. */
  readonly giveBack?: (() => void) | undefined
}

export interface PoolCounters {
  opened: number
  openFailed: number
  closed: number
  checkouts: number
  /** Milliseconds that callers have waited, all together. */
  waitMs: number
  timedOut: number
  outOfSync: number
  forceClosed: number
  failed: number
  checks: number
  checksFailed: number
}

export interface PoolSnapshot {
  readonly idle: number
  /** Lent, or being checked on the way to a caller. */
  readonly lent: number
  readonly opening: number
  readonly total: number
  readonly waiting: number
  readonly maxWaitMs: number
  readonly isPaused: boolean
  readonly isOnline: boolean
}

export interface CheckoutRequest {
  readonly signal?: AbortSignal
  readonly isHolder?: boolean
  readonly owner?: Owner
  readonly timeoutMs?: number
}

export const noCounters = (): PoolCounters => ({
  opened: 0,
  openFailed: 0,
  closed: 0,
  checkouts: 0,
  waitMs: 0,
  timedOut: 0,
  outOfSync: 0,
  forceClosed: 0,
  failed: 0,
  checks: 0,
  checksFailed: 0,
})
