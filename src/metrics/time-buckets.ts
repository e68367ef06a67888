/** Times of requests in fixed buckets, as a scrape wants them. Recording is a search among a few numbers and two additions: it stands in the hot path. */

/** Upper bounds in seconds; one more bucket takes the rest. */
export const TIME_BOUNDS: readonly number[] = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
  30, 60,
]

const boundsMs = Float64Array.from(TIME_BOUNDS, (bound) => bound * 1000)

export class TimeBuckets {
  /** Of each bucket by itself, not of those below it too. */
  readonly counts = new Float64Array(TIME_BOUNDS.length + 1)
  sumMs = 0

  record(elapsedMs: number): void {
    let at = 0
    // most requests are fast: the first bounds are passed in a few steps
    while (at < boundsMs.length && elapsedMs > (boundsMs[at] as number)) at++
    ;(this.counts[at] as number)++
    this.sumMs += elapsedMs
  }
}
