/** What becomes of a resource that came back, or lies idle: the rules alone, nothing is closed here. */
import type { Clock } from '../base/clock.js'
import type { Entry } from './pool-entry.js'
import type { Condition, PoolLimits } from './pool-types.js'

export interface Verdict {
  /** Why it is closed. */
  readonly why: string
  readonly counts?: 'failed' | 'forceClosed' | 'outOfSync'
}

/** The tree of D167, in its order; undefined: it may be lent again. */
export function verdictOf<T>(
  entry: Entry<T>,
  condition: Condition,
  pool: { readonly isOpen: boolean; readonly isOverfull: boolean; readonly nowMs: number },
): Verdict | undefined {
  if (condition === 'failed') return { why: 'failed', counts: 'failed' }
  if (!pool.isOpen) return { why: 'the pool is not open' }
  if (pool.nowMs >= entry.expiresAtMs) return { why: 'too old' }
  if (entry.isForceClosed || pool.isOverfull) {
    return { why: 'to be replaced', counts: 'forceClosed' }
  }
  return condition === 'unfit' ? { why: 'out of sync', counts: 'outOfSync' } : undefined
}

/** Why an idle resource of `total` goes at a beat. */
export function idleVerdict<T>(
  entry: Entry<T>,
  nowMs: number,
  total: number,
  limits: PoolLimits,
): string | undefined {
  if (nowMs >= entry.expiresAtMs) return 'too old'
  const isLongIdle = nowMs - entry.usedAtMs >= limits.idleTimeoutMs
  const isSurplus = total > limits.maxSize || (total > limits.minSize && isLongIdle)
  return isSurplus ? 'not needed' : undefined
}

/** True when a resource must be checked before it is lent. */
export function isCheckDue<T>(entry: Entry<T>, limits: PoolLimits, clock: Clock): boolean {
  const { checkIntervalMs } = limits
  if (checkIntervalMs === Number.POSITIVE_INFINITY) return false
  return clock.monotonicMs() - entry.checkedAtMs >= checkIntervalMs
}
