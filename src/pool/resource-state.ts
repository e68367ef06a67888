/** What a pool tells of its live resources. */
import type { Entry } from './pool-entry.js'

/** What the pool knows of a live resource. */
export interface ResourceState<T> {
  readonly resource: T
  readonly isLent: boolean
  /** Closed when it comes back. */
  readonly isReplaced: boolean
  readonly ageMs: number
  readonly idleMs: number
}

export function stateOf<T>(entry: Entry<T>, nowMs: number): ResourceState<T> {
  const { resource, isLent, openedAtMs, usedAtMs } = entry
  const isReplaced = isLent && entry.isForceClosed
  const idleMs = isLent ? 0 : nowMs - usedAtMs
  return { resource, isLent, isReplaced, ageMs: nowMs - openedAtMs, idleMs }
}
