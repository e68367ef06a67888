/** Which classes of statements are quick and small enough to stand behind one another, by what was seen of them. Pure. */
import type { ClassFigures } from '../../plan/plan.js'

/** hard-parts §1.4. */
export const SMALL_REPLY_BYTES = 16_384

/** A new sample's share in the running means. */
const SHARE = 1 / 8
/** One sample counts as at most this many stalls, so that a class can come back. */
const WORST_STALLS = 4
/** A class whose mean is more than this part of a stall is not quick. */
const QUICK_PART = 1 / 4

/** A class never seen runs alone first. */
export function mayEnter(figures: ClassFigures, stallMs: number): boolean {
  return (
    figures.runs > 0 &&
    figures.meanMs <= stallMs * QUICK_PART &&
    figures.replyBytes <= SMALL_REPLY_BYTES
  )
}

export function noteRun(
  figures: ClassFigures,
  elapsedMs: number,
  replyBytes: number,
  stallMs: number,
): void {
  const ms = Math.min(elapsedMs, stallMs * WORST_STALLS)
  const share = figures.runs === 0 ? 1 : SHARE
  figures.meanMs += (ms - figures.meanMs) * share
  figures.replyBytes += (replyBytes - figures.replyBytes) * share
  figures.runs++
}

/** A statement of the class keeps others waiting: it leaves until runs of its own say better. */
export function noteStall(figures: ClassFigures, stallMs: number): void {
  figures.meanMs = stallMs * WORST_STALLS
}
