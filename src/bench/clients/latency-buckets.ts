/** Counts of latencies by size, eight buckets to each doubling: cheap enough to be kept for every second of a run. Plain data between threads. */

/** Each of its counts is of one bucket; see `bucketRangesMs`. */
export type LatencyBuckets = Uint32Array

/** Up to 2^26 µs, 67 s; what takes longer is in the last one. */
const BUCKETS = 8 * 24

export const latencyBuckets = (): LatencyBuckets => new Uint32Array(BUCKETS)

function bucketOf(latencyUs: number): number {
  const us = Math.min(Math.max(Math.round(latencyUs), 0), 0x7fffffff)
  if (us < 8) return us
  const exponent = 31 - Math.clz32(us)
  return Math.min(8 * (exponent - 2) + ((us >>> (exponent - 3)) & 7), BUCKETS - 1)
}

/** The least latency of a bucket. */
function bucketStartUs(bucket: number): number {
  return bucket < 8 ? bucket : (8 + (bucket & 7)) * 2 ** ((bucket >> 3) - 1)
}

export function countLatency(buckets: LatencyBuckets, latencyUs: number): void {
  const at = bucketOf(latencyUs)
  buckets[at] = (buckets[at] as number) + 1
}

export function mergeBuckets(into: LatencyBuckets, from: LatencyBuckets): void {
  for (let i = 0; i < into.length; i++) into[i] = (into[i] as number) + (from[i] as number)
}

/** Those that hold something, smallest first. */
export function bucketRangesMs(
  buckets: LatencyBuckets,
): { from_ms: number; to_ms: number; count: number }[] {
  return Array.from(buckets, (count, i) => ({
    from_ms: bucketStartUs(i) / 1000,
    to_ms: bucketStartUs(i + 1) / 1000,
    count,
  })).filter(({ count }) => count > 0)
}

/** The end of the bucket in which the percentile lies, at most 12.5 % above it; 0 when nothing was counted. */
export function bucketPercentileMs(buckets: LatencyBuckets, percent: number): number {
  const total = buckets.reduce((sum, count) => sum + count, 0)
  if (total === 0) return 0
  let left = Math.ceil((total * percent) / 100)
  for (let i = 0; i < buckets.length; i++) {
    left -= buckets[i] as number
    if (left <= 0) return bucketStartUs(i + 1) / 1000
  }
  return bucketStartUs(buckets.length) / 1000
}
