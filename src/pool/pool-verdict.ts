/** What becomes of a resource that came back, or lies idle: the rules alone, nothing is closed here. */
import type { Clock } from '../base/clock.js'
import type { Entry } from './pool-entry.js'
import type { Condition, PoolCounters, PoolLimits, ResourceKind } from './pool-types.js'

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
function idleVerdict<T>(
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

/** Takes those out of `idle` that go at a beat; from the bottom of the stack: the one that was not needed for the longest time goes first. */
export function takeSurplus<T>(
  idle: Entry<T>[],
  nowMs: number,
  total: number,
  limits: PoolLimits,
): { readonly entry: Entry<T>; readonly why: string }[] {
  const gone: { entry: Entry<T>; why: string }[] = []
  for (const entry of [...idle]) {
    const why = idleVerdict(entry, nowMs, total - gone.length, limits)
    if (why === undefined) continue
    idle.splice(idle.indexOf(entry), 1)
    gone.push({ entry, why })
  }
  return gone
}

/** True when a resource must be checked before it is lent. */
export function isCheckDue<T>(entry: Entry<T>, limits: PoolLimits, clock: Clock): boolean {
  const { checkIntervalMs } = limits
  if (checkIntervalMs === Number.POSITIVE_INFINITY) return false
  return clock.monotonicMs() - entry.checkedAtMs >= checkIntervalMs
}

/** Asks a resource whether it is good, and keeps the books of it. */
export async function runCheck<T>(
  entry: Entry<T>,
  kind: ResourceKind<T>,
  counters: PoolCounters,
  clock: Clock,
): Promise<boolean> {
  counters.checks++
  const isGood = await kind.check(entry.resource)
  entry.checkedAtMs = clock.monotonicMs()
  if (!isGood) counters.checksFailed++
  return isGood
}
