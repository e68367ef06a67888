import { describe, expect, it } from 'vitest'
import { LatencyHistogram } from '../../../src/metrics/latency-histogram.js'

describe('latency histogram', () => {
  it('gives percentiles within one per cent', () => {
    const times = new LatencyHistogram()
    for (let i = 1; i <= 10_000; i++) times.record(i / 10)
    const { count, p50Ms, p99Ms, maxMs } = times.summary()
    expect(count).toBe(10_000)
    expect(Math.abs(p50Ms - 500)).toBeLessThan(5)
    expect(Math.abs(p99Ms - 990)).toBeLessThan(10)
    expect(Math.abs(maxMs - 1000)).toBeLessThan(10)
  })

  it('is empty without a record, takes nonsense as the nearest sense, and adds another', () => {
    const times = new LatencyHistogram()
    expect(times.summary()).toEqual({ count: 0, p50Ms: 0, p95Ms: 0, p99Ms: 0, maxMs: 0 })
    times.record(-1)
    times.record(1e12)
    const more = new LatencyHistogram()
    more.record(5)
    times.add(more)
    expect(times.summary().count).toBe(3)
  })
})
