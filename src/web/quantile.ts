/** Quantiles of times that were counted in the buckets of a scrape. Pure. */
import { TIME_BOUNDS } from '../metrics/time-buckets.js'

/** Milliseconds, between the ends of the bucket in proportion; null when nothing was counted. */
export function quantileMs(counts: readonly number[], share: number): number | null {
  const all = counts.reduce((sum, count) => sum + count, 0)
  if (all === 0) return null
  let left = all * share
  for (const [at, count] of counts.entries()) {
    if (count > 0 && left <= count) {
      const from = TIME_BOUNDS[at - 1] ?? 0
      const to = TIME_BOUNDS[at] ?? from
      return (from + ((to - from) * left) / count) * 1000
    }
    left -= count
  }
  return (TIME_BOUNDS.at(-1) ?? 0) * 1000
}
