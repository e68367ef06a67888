/** Coarse counts of latencies: every latency lies in its bucket, and percentiles are close above the truth. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  bucketPercentileMs,
  bucketRangesMs,
  countLatency,
  latencyBuckets,
  mergeBuckets,
} from '../../../src/bench/clients/latency-buckets.js'

const micros = fc.integer({ min: 0, max: 60_000_000 })

test('a latency lies in the bucket that counts it', () => {
  fc.assert(
    fc.property(micros, (us) => {
      const buckets = latencyBuckets()
      countLatency(buckets, us)
      const [only] = bucketRangesMs(buckets)
      expect(only!.from_ms).toBeLessThanOrEqual(us / 1000)
      expect(only!.to_ms).toBeGreaterThan(us / 1000)
      expect(only!.to_ms - only!.from_ms).toBeLessThanOrEqual(Math.max(0.001, only!.from_ms / 8))
    }),
    { seed: 3, numRuns: 2000 },
  )
})

test('percentiles of two counts together', () => {
  fc.assert(
    fc.property(fc.array(micros, { minLength: 1 }), fc.array(micros), (a, b) => {
      const [one, other] = [latencyBuckets(), latencyBuckets()]
      for (const us of a) countLatency(one, us)
      for (const us of b) countLatency(other, us)
      mergeBuckets(one, other)
      const sorted = [...a, ...b].sort((x, y) => x - y)
      const median = sorted[Math.ceil(sorted.length / 2) - 1]! / 1000
      expect(bucketPercentileMs(one, 50)).toBeGreaterThan(median)
      expect(bucketPercentileMs(one, 50)).toBeLessThanOrEqual(median * 1.125 + 0.001)
    }),
    { seed: 4, numRuns: 500 },
  )
  expect(bucketPercentileMs(latencyBuckets(), 99)).toBe(0)
})

test('what takes longer than all is in the last', () => {
  const buckets = latencyBuckets()
  countLatency(buckets, 3e9)
  expect(bucketRangesMs(buckets)).toHaveLength(1)
})
