import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { BenchReport } from '../../../src/bench/bench-report.js'
import { compareReports, comparisonLines, readReport } from '../../../src/bench/report/compare.js'
import { rankTest } from '../../../src/bench/report/rank-test.js'
import type { SecondsReport } from '../../../src/bench/report/seconds-report.js'
import { makeRandom } from '../../support/random.js'

describe('rank test', () => {
  // Worked out by hand: U by counting pairs, variance with ties, a table of the normal distribution.
  it.each([
    [[1, 2, 3, 4, 5], [6, 7, 8, 9, 10], 1, 0.012185780355344818],
    [[1, 2, 2, 3, 3, 3], [2, 3, 3, 4, 4, 5], 29 / 36, 0.0784],
    [[5, 5, 5], [5, 5, 5], 0.5, 1],
    [[], [1], 0.5, 1],
  ])('%j against %j', (a, b, above, p) => {
    const found = rankTest(a, b)
    expect(found.above).toBeCloseTo(above, 10)
    expect(found.p).toBeCloseTo(p, 3)
  })

  it('calls chance a difference in about one of a hundred', () => {
    const random = makeRandom(11)
    const sample = () => Array.from({ length: 20 }, () => Math.floor(random() * 1000))
    let found = 0
    for (let n = 0; n < 2000; n++) if (rankTest(sample(), sample()).p < 0.01) found++
    expect(found).toBeGreaterThan(4)
    expect(found).toBeLessThan(40)
  })
})

const seconds = (tps: number[], avg: number[]): SecondsReport => ({
  tps,
  avg_ms: avg,
  p50_ms: avg,
  p99_ms: avg,
  max_ms: avg,
  errors: tps.map(() => 0),
})

function report(tps: number, spread: number, more: Partial<BenchReport> = {}): BenchReport {
  const each = Array.from({ length: 12 }, (_, i) => tps + ((i * 7) % 5) * spread)
  const own = seconds(
    each,
    each.map((value) => 8000 / value),
  )
  const node = { node: 'a:1', tps, p50: 1, p95: 2, p99: 3 }
  return {
    transaction_type: 'select only',
    scale: 1,
    query_mode: 'simple',
    clients: 8,
    threads: 1,
    server_version: '15.1',
    reconnect: false,
    tps,
    latency_ms: { average: 8000 / tps, stddev: 0, p50: 1, p90: 1, p95: 2, p99: 3, p999: 4, max: 5 },
    nodes: [node, { ...node, node: 'b:1' }],
    seconds: { ...own, nodes: { 'a:1': own, 'b:1': own } },
    ...more,
  } as BenchReport
}

describe('bench compare', () => {
  const names = ['before.json', 'after.json'] as const

  it('finds none between equal runs, and one where there is one', () => {
    const same = compareReports(report(1000, 10), report(1001, 10), names)
    expect(same.is_different).toBe(false)
    expect(same.changes[0]).toMatchObject({ metric: 'tps', verdict: 'same' })
    const slower = compareReports(report(1000, 10), report(800, 10), names)
    expect(slower.is_different).toBe(true)
    expect(slower.changes.map(({ metric, verdict }) => [metric, verdict])).toEqual([
      ['tps', 'worse'],
      ['avg', 'worse'],
      ['p50', 'not tested'],
      ['p95', 'not tested'],
      ['p99', 'not tested'],
    ])
    expect(slower.changes[0]?.change_pct).toBeCloseTo(-20)
    expect(slower.nodes.map(({ node }) => node)).toEqual(['a:1', 'b:1'])
    const faster = compareReports(report(800, 10), report(1000, 10), names)
    expect(faster.changes[0]?.verdict).toBe('better')
  })

  it('says nothing of chance after a few seconds, and names settings that differ', () => {
    const short = report(500, 1)
    const cut = { ...short, seconds: { ...short.seconds, tps: [1, 2, 3], avg_ms: [1, 2, 3] } }
    const found = compareReports(report(1000, 10), { ...cut, clients: 16 }, names)
    expect(found.is_different).toBe(false)
    expect(found.changes[0]?.verdict).toBe('not tested')
    expect(found.differing_settings).toEqual(['clients'])
    expect(comparisonLines(found).join('\n')).toContain('note: the runs differ in clients')
  })

  it('refuses what is no report', () => {
    const path = join(mkdtempSync(join(tmpdir(), 'compare-')), 'x.json')
    expect(() => readReport(path)).toThrow(/could not open/)
    writeFileSync(path, '{"tps": 1}')
    expect(() => readReport(path)).toThrow(/not a report of bench/)
    writeFileSync(path, 'null')
    expect(() => readReport(path)).toThrow(/not a report of bench/)
    writeFileSync(path, JSON.stringify(report(1, 0)))
    expect(readReport(path).tps).toBe(1)
  })
})
