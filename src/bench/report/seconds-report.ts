/** Load over time, and latencies by size, for charts and comparisons. */
import {
  bucketPercentileMs,
  bucketRangesMs,
  latencyBuckets,
  mergeBuckets,
} from '../clients/latency-buckets.js'
import type { NodeStats, SecondStats } from '../clients/stats.js'

/** One number a second of the run, all of the same length; the last second may be shorter. */
export interface SecondsReport {
  /** A short last second is counted up to a whole one. */
  readonly tps: readonly number[]
  readonly avg_ms: readonly number[]
  /** Percentiles by the second are upper ends of buckets, at most 12.5 % above the truth; 0 where nothing was done. */
  readonly p50_ms: readonly number[]
  readonly p99_ms: readonly number[]
  readonly max_ms: readonly number[]
  /** Failed transactions and clients that were aborted. */
  readonly errors: readonly number[]
}

/** How many latencies were at least `from_ms` and less than `to_ms`. The last bucket, from 60 s, has no upper end. */
export interface HistogramBucket {
  readonly from_ms: number
  readonly to_ms: number
  readonly count: number
}

const bucketsOf = (seconds: readonly SecondStats[]) => {
  const sum = latencyBuckets()
  for (const second of seconds) mergeBuckets(sum, second.latency)
  return sum
}

export const histogramOf = (nodes: readonly NodeStats[]): HistogramBucket[] =>
  bucketRangesMs(bucketsOf(nodes.flatMap((node) => node.seconds.flatMap((one) => one ?? []))))

const rounded = (value: number) => Math.round(value * 1000) / 1000

export function secondsReport(stats: readonly NodeStats[], elapsedMs: number): SecondsReport {
  const rows = Array.from({ length: Math.ceil(elapsedMs / 1000) }, (_, i) => {
    const own = stats.flatMap((node) => node.seconds[i] ?? [])
    const sum = (read: (second: SecondStats) => number) =>
      own.reduce((total, second) => total + read(second), 0)
    const done = sum(({ done }) => done)
    const buckets = bucketsOf(own)
    const maxMs = Math.max(0, ...own.map(({ latencyMaxUs }) => latencyMaxUs)) / 1000
    const lengthS = Math.min(1, elapsedMs / 1000 - i)
    return {
      tps: done / lengthS,
      avg: done === 0 ? 0 : sum(({ latencySumUs }) => latencySumUs) / done / 1000,
      p50: Math.min(bucketPercentileMs(buckets, 50), maxMs),
      p99: Math.min(bucketPercentileMs(buckets, 99), maxMs),
      max: maxMs,
      errors: sum(({ errors }) => errors),
    }
  })
  return {
    tps: rows.map(({ tps }) => rounded(tps)),
    avg_ms: rows.map(({ avg }) => rounded(avg)),
    p50_ms: rows.map(({ p50 }) => rounded(p50)),
    p99_ms: rows.map(({ p99 }) => rounded(p99)),
    max_ms: rows.map(({ max }) => rounded(max)),
    errors: rows.map(({ errors }) => errors),
  }
}
