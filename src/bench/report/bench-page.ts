/** A run as one self-contained page: shares against what was expected, load and latency over time, sizes, gaps, thresholds, errors. Pure. */
import type { ChartSpec } from '../../report/chart-spec.js'
import { type Html, html } from '../../report/html.js'
import { chartPlace, selfContainedPage } from '../../report/self-contained.js'
import { countWords } from '../../report/words.js'
import type { BenchReport } from '../bench-report.js'
import type { BenchResult } from '../run-bench.js'
import type { GapReport, NodeReport } from './node-report.js'
import type { SecondsReport } from './seconds-report.js'
import type { ThresholdResult } from './threshold.js'

export function benchPage(result: BenchResult): string {
  const { report } = result
  const nodes = report.nodes.length
  const title = `Benchmark of ${nodes === 1 ? (report.nodes[0]?.node ?? 'a node') : `${nodes} nodes`}`
  const charts = chartsOf(report)
  const body = html`<h1>${title}</h1>
<p class="dim">${report.transaction_type}; ${report.query_mode} protocol, ${countWords(report.clients)} clients, ${countWords(report.threads)} threads, PostgreSQL ${report.server_version}; begun ${report.started_at}, seed ${report.seed}</p>
${verdict(result)}${figures(report)}
${thresholdTable(result.thresholds)}
<h2>Nodes</h2>${chartPlace('shares')}${chiSquareLine(report)}${nodeTable(report.nodes)}
<h2>Over time</h2>${['tps', 'latency', 'errors'].filter((name) => name in charts).map(chartPlace)}
<h2>Latencies</h2>${'histogram' in charts ? chartPlace('histogram') : html`<p class="dim">No transaction was finished.</p>`}
<h2>Gaps</h2>${gapTable(report.nodes)}
<h2>Errors</h2>${errorTable(report.nodes)}`
  return selfContainedPage({ title, body, charts })
}

/** Milliseconds with three digits that count. */
const ms = (value: number): string =>
  `${value >= 100 ? countWords(value) : Number(value.toPrecision(3))} ms`

const percent = (share: number): string => `${(share * 100).toFixed(1)} %`

function verdict({ thresholds, report }: BenchResult): Html {
  const missed = thresholds.filter(({ ok }) => !ok).map(({ threshold }) => threshold)
  const bad = [
    ...(report.aborted_clients === 0
      ? []
      : [
          `${countWords(report.aborted_clients)} of ${countWords(report.clients)} clients were aborted: the run measured less than was asked.`,
        ]),
    ...(missed.length === 0 ? [] : [`Failed: ${missed.join(', ')} did not hold.`]),
  ]
  if (bad.length > 0) return html`${bad.map((line) => html`<p class="bad"><b>${line}</b></p>`)}`
  return thresholds.length === 0
    ? html``
    : html`<p class="good"><b>Passed: every threshold holds.</b></p>`
}

function figures(report: BenchReport): Html {
  const { latency_ms: latency } = report
  const known: [string, string][] = [
    ['Transactions a second', countWords(report.tps)],
    ['Transactions', countWords(report.processed)],
    ['Failed', `${countWords(report.failed)} (${report.failed_pct.toFixed(2)} %)`],
    ['Latency p50', ms(latency.p50)],
    ['p95', ms(latency.p95)],
    ['p99', ms(latency.p99)],
    ['Longest', ms(latency.max)],
    ['Duration', `${(report.elapsed_ms / 1000).toFixed(1)} s`],
  ]
  const cells = known.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)
  return html`<dl class="figures">${cells}</dl>`
}

interface Column<R> {
  readonly name: string
  readonly isNumber?: boolean
  value(row: R): string | Html
}

/** The first column names the row. */
function table<R>(name: string, columns: readonly Column<R>[], rows: readonly R[]): Html {
  const head = columns.map(
    (one) => html`<th scope="col" class="${one.isNumber ? 'n' : ''}">${one.name}</th>`,
  )
  const cell = (row: R) => (one: Column<R>, i: number) =>
    i === 0
      ? html`<th scope="row">${one.value(row)}</th>`
      : html`<td class="${one.isNumber ? 'n' : ''}">${one.value(row)}</td>`
  const body = rows.map((row) => html`<tr>${columns.map(cell(row))}</tr>`)
  return html`<div class="scroll" tabindex="0" role="region" aria-label="${name}"><table><thead><tr>${head}</tr></thead><tbody>${body}</tbody></table></div>`
}

const words = ({ value, unit }: ThresholdResult): string =>
  value === null
    ? 'not measured'
    : `${Number(value.toPrecision(4))}${unit === '' ? '' : ` ${unit}`}`

function thresholdTable(thresholds: readonly ThresholdResult[]): Html {
  if (thresholds.length === 0) return html``
  const columns: Column<ThresholdResult>[] = [
    { name: 'Threshold', value: ({ threshold }) => threshold },
    { name: 'Measured', isNumber: true, value: words },
    {
      name: 'Result',
      value: ({ ok }) =>
        ok ? html`<span class="good">holds</span>` : html`<span class="bad">does not hold</span>`,
    },
  ]
  return html`<h2>Thresholds</h2>${table('Thresholds', columns, thresholds)}`
}

const nodeColumns: readonly Column<NodeReport>[] = [
  { name: 'Node', value: ({ node }) => node },
  { name: 'Weight', isNumber: true, value: ({ weight }) => String(weight) },
  {
    name: 'Expected',
    isNumber: true,
    value: ({ expected_share: expected }) => (expected === null ? '–' : percent(expected)),
  },
  { name: 'Share', isNumber: true, value: ({ share }) => percent(share) },
  { name: 'Connections', isNumber: true, value: ({ connections }) => countWords(connections) },
  { name: 'Transactions', isNumber: true, value: ({ transactions }) => countWords(transactions) },
  { name: 'tps', isNumber: true, value: ({ tps }) => countWords(tps) },
  { name: 'p50', isNumber: true, value: ({ p50 }) => ms(p50) },
  { name: 'p95', isNumber: true, value: ({ p95 }) => ms(p95) },
  { name: 'p99', isNumber: true, value: ({ p99 }) => ms(p99) },
  { name: 'Errors', isNumber: true, value: ({ errors }) => countWords(errors) },
  {
    name: 'Refused',
    isNumber: true,
    value: ({ connect_failures: failures }) => countWords(failures),
  },
  { name: 'Longest gap', isNumber: true, value: ({ longest_gap_ms: gap }) => ms(gap) },
]

const nodeTable = (nodes: readonly NodeReport[]): Html => table('Nodes', nodeColumns, nodes)

function chiSquareLine({ chi_square: found }: BenchReport): Html {
  if (found === null) return html``
  const judged =
    found.p < 0.01
      ? 'chance alone does not explain these shares'
      : 'these shares are what chance gives'
  return html`<p class="note">Chi-square ${found.statistic.toFixed(2)}, p ${found.p < 0.0001 ? '< 0.0001' : `= ${found.p.toFixed(4)}`}: ${judged}.</p>`
}

interface NodeGap extends GapReport {
  readonly node: string
}

const at = (seconds: number | null, otherwise: string): string =>
  seconds === null ? otherwise : `${seconds.toFixed(1)} s`

const statesIn = (errors: Readonly<Record<string, number>>): string =>
  Object.entries(errors)
    .map(([sqlstate, count]) => `${sqlstate} × ${countWords(count)}`)
    .join(', ')

function gapTable(nodes: readonly NodeReport[]): Html {
  const gaps = nodes.flatMap(({ node, gaps }) => gaps.map((gap): NodeGap => ({ ...gap, node })))
  if (gaps.length === 0)
    return html`<p class="dim">No node stood still for long, and none was lost.</p>`
  const columns: Column<NodeGap>[] = [
    { name: 'Node', value: ({ node }) => node },
    { name: 'Last good at', isNumber: true, value: (gap) => at(gap.last_good_s, 'the start') },
    { name: 'Good again at', isNumber: true, value: (gap) => at(gap.first_good_s, 'not again') },
    { name: 'Gap', isNumber: true, value: ({ length_ms: length }) => ms(length) },
    { name: 'Errors meanwhile', value: ({ errors }) => statesIn(errors) || 'none' },
  ]
  const shown = gaps.sort((a, b) => b.length_ms - a.length_ms).slice(0, 100)
  return table('Gaps', columns, shown)
}

function errorTable(nodes: readonly NodeReport[]): Html {
  const rows = nodes.flatMap(({ node, sqlstates }) =>
    Object.entries(sqlstates).map(([sqlstate, count]) => ({ node, sqlstate, count })),
  )
  if (rows.length === 0) return html`<p class="dim">There was none.</p>`
  const columns: Column<(typeof rows)[number]>[] = [
    { name: 'SQLSTATE', value: ({ sqlstate }) => sqlstate },
    { name: 'Node', value: ({ node }) => node },
    { name: 'Errors', isNumber: true, value: ({ count }) => countWords(count) },
  ]
  return table('Errors', columns, rows)
}

function chartsOf(report: BenchReport): Record<string, ChartSpec> {
  const { seconds, nodes } = report
  const lines = (title: string, unit: 'rate' | 'ms' | 'count', of: readonly Line[]): ChartSpec => ({
    ...{ kind: 'lines', title, unit, isClock: false, shaded: shadedGaps(nodes) },
    times: seconds.tps.map((_, second) => second + 0.5),
    series: of,
  })
  const hasErrors = seconds.errors.some((count) => count > 0)
  return {
    shares: {
      ...{ kind: 'bars', title: 'Share of each node', unit: 'percent' },
      bars: nodes.map(({ node, share, expected_share: expected }) => ({
        ...{ label: node, value: share * 100 },
        ...(expected === null ? {} : { expected: expected * 100 }),
      })),
      ...(nodes.some((node) => node.expected_share !== null)
        ? { note: 'The mark is the share that was expected.' }
        : {}),
    },
    tps: lines('Transactions a second', 'rate', eachNode(report, 'tps')),
    latency: lines('Latency', 'ms', latencyLines(seconds)),
    ...(hasErrors ? { errors: lines('Errors', 'count', eachNode(report, 'errors')) } : {}),
    ...histogramOf(report),
  }
}

interface Line {
  readonly label: string
  readonly values: readonly (number | null)[]
}

const eachNode = ({ seconds, nodes }: BenchReport, of: 'tps' | 'errors'): Line[] =>
  nodes.map(({ node }) => ({ label: node, values: seconds.nodes[node]?.[of] ?? [] }))

/** Nothing was finished in a second: there is no latency, not one of 0. */
const latencyLines = (seconds: SecondsReport): Line[] =>
  (['p50_ms', 'p99_ms'] as const).map((name) => ({
    label: name.slice(0, 3),
    values: seconds[name].map((value, second) => (seconds.tps[second] === 0 ? null : value)),
  }))

const shadedGaps = (nodes: readonly NodeReport[]) =>
  nodes.flatMap(({ gaps, node }) =>
    gaps.map(({ last_good_s: last, length_ms: length }) => ({
      ...{ from: last ?? 0, to: (last ?? 0) + length / 1000 },
      label: `${node} stood still`,
    })),
  )

function histogramOf({ histogram }: BenchReport): Record<string, ChartSpec> {
  if (histogram.length === 0) return {}
  return {
    histogram: {
      ...{ kind: 'histogram', title: 'Transactions by latency' },
      spans: histogram.map(({ from_ms: from, to_ms: to, count }) => ({ from, to, count })),
      note: 'The axis is logarithmic; buckets grow by an eighth of a doubling.',
    },
  }
}
