import { expect, test } from 'vitest'
import { LatencyHistogram } from '../../../src/bench/clients/latency-histogram.js'

test('no percentile lies above the largest latency', () => {
  const histogram = new LatencyHistogram()
  for (const latencyUs of [20_000, 75_850]) histogram.record(latencyUs)
  expect(histogram.percentilesMs()).toMatchObject({ p99: 75.85, p999: 75.85, max: 75.85 })
})

test('nothing recorded is zero', () => {
  expect(new LatencyHistogram().percentilesMs()).toEqual({
    p50: 0,
    p90: 0,
    p95: 0,
    p99: 0,
    p999: 0,
    max: 0,
  })
})
