/** Which classes of statements are quick and small enough to stand behind one another, by what was seen of them. Pure. */
import type { ClassFigures } from '../../plan/plan.js'

/** hard-parts §1.4. */
const SMALL_REPLY_BYTES = 16_384

/** A new sample's share in the running means. */
const SHARE = 1 / 8
const QUICKER_SHARE = 1 / 2
const SLOWER_SHARE = 1 / 16
/** Of a stall: others may have kept the machine busy, so that one says little and three in a row much. */
const STALL_SHARE = 1 / 32
/** A sample's share in what is typical, which so stays near the lower end. */
const LOWER_SHARE = 1 / 4
const HIGHER_SHARE = 1 / 64
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

/** A run behind others, or on a server that had just been at work. */
export function noteRun(
  figures: ClassFigures,
  elapsedMs: number,
  replyBytes: number,
  stallMs: number,
): void {
  noteTypical(figures, elapsedMs)
  note(figures, Math.min(elapsedMs, stallMs * WORST_STALLS), replyBytes, SHARE)
}

/** A run on a server of its own: it also waited for the server to wake and for the machine, so that the quick runs count more. */
export function noteRunAlone(
  figures: ClassFigures,
  elapsedMs: number,
  replyBytes: number,
  stallMs: number,
): void {
  noteTypical(figures, elapsedMs)
  const ms = Math.min(elapsedMs, stallMs * WORST_STALLS)
  note(figures, ms, replyBytes, ms < figures.meanMs ? QUICKER_SHARE : SLOWER_SHARE)
}

function note(figures: ClassFigures, ms: number, replyBytes: number, share: number): void {
  const isFirst = figures.runs === 0
  figures.meanMs += (ms - figures.meanMs) * (isFirst ? 1 : share)
  figures.replyBytes += (replyBytes - figures.replyBytes) * (isFirst ? 1 : SHARE)
  figures.runs++
}

/** A statement of the class keeps others waiting: when it happens again and again the class leaves, until runs of its own say better. */
export function noteStall(figures: ClassFigures, stallMs: number): void {
  figures.meanMs += (stallMs * WORST_STALLS - figures.meanMs) * STALL_SHARE
}

/** Quick runs count much, and a slow one never more than twice of what is known: it has waited for the machine, not worked. */
function noteTypical(figures: ClassFigures, ms: number): void {
  const { typicalMs } = figures
  if (figures.runs === 0) figures.typicalMs = ms
  else if (ms < typicalMs) figures.typicalMs += (ms - typicalMs) * LOWER_SHARE
  else figures.typicalMs += Math.min(ms - typicalMs, typicalMs) * HIGHER_SHARE
}
