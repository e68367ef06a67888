import { describe, expect, it } from 'vitest'
import type { BenchReport } from '../../../src/bench/bench-report.js'
import { junitXml } from '../../../src/bench/report/junit.js'

const report = {
  transaction_type: 'a <b> & "c".sql',
  clients: 4,
  aborted_clients: 1,
  elapsed_ms: 2500,
  tps: 12.5,
  failed_pct: 0,
  seed: '7',
  latency_ms: { average: 1, stddev: 0, p50: 1, p90: 1, p95: 2, p99: 3, p999: 4, max: 5 },
  nodes: [{ node: 'h:5432', transactions: 10, p99: 3 }],
} as unknown as BenchReport

describe('JUnit', () => {
  it('has a case for the run and one for each threshold, with what was measured', () => {
    const xml = junitXml({
      report,
      exitCode: 2,
      thresholds: [
        { threshold: 'p99<5ms', value: 3, unit: 'ms', ok: true },
        { threshold: 'p50<0.5ms', value: 1, unit: 'ms', ok: false },
        { threshold: 'chi2_p>0.01', value: null, unit: '', ok: false },
      ],
    })
    expect(xml).toContain(
      '<testsuite name="pgshard bench" tests="4" failures="3" errors="0" time="2.500">',
    )
    expect(xml).toContain('name="run: a &lt;b&gt; &amp; &quot;c&quot;.sql"')
    expect(xml).toContain('<failure message="1 of 4 clients were aborted">')
    expect(xml).toContain('name="threshold p99&lt;5ms" time="0.000"/>')
    expect(xml).toContain('<failure message="1.000 ms">threshold p50&lt;0.5ms: 1.000 ms</failure>')
    expect(xml).toContain('<failure message="not measured">')
    expect(xml).toContain('<property name="node(h:5432).transactions" value="10"/>')
  })

  it('holds nothing that XML cannot', () => {
    const odd = { ...report, aborted_clients: 0, transaction_type: 'bell\u0007\nline' }
    expect(junitXml({ report: odd as BenchReport, exitCode: 0, thresholds: [] })).toContain(
      'name="run: bell?&#10;line"',
    )
  })
})
