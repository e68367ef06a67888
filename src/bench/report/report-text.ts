/** The text report: the lines of pgbench 15 in its order and form, then percentiles, then one row per node. Source followed: printResults in pgbench.c. */
import type { BenchReport, ScriptReport, Spread } from '../bench-report.js'
import type { NodeReport } from './node-report.js'

export interface ReportStyle {
  /** -P or -R: latencies were measured one by one, and pgbench then shows average and stddev. */
  readonly isMeasured: boolean
}

const pct = (part: number, whole: number): string =>
  whole === 0 ? '0.000' : ((100 * part) / whole).toFixed(3)

function headLines(report: BenchReport): string[] {
  return [
    `transaction type: ${report.transaction_type}`,
    `scaling factor: ${report.scale}`,
    `query mode: ${report.query_mode}`,
    `number of clients: ${report.clients}`,
    `number of threads: ${report.threads}`,
    ...(report.max_tries > 0 ? [`maximum number of tries: ${report.max_tries}`] : []),
  ]
}

function countLines(report: BenchReport): string[] {
  if (report.duration_s !== null)
    return [
      `duration: ${report.duration_s} s`,
      `number of transactions actually processed: ${report.processed}`,
    ]
  return [
    `number of transactions per client: ${report.transactions_per_client}`,
    `number of transactions actually processed: ${report.processed}/${report.expected}`,
  ]
}

type Counted = Pick<
  BenchReport,
  'failed' | 'serialization_failures' | 'deadlock_failures' | 'retried' | 'retries' | 'skipped'
>

/** Failures, retries and skipped ones, of a run or of one of its scripts. */
function outcomeLines(
  report: BenchReport,
  counted: Counted,
  total: number,
  prefix: string,
): string[] {
  const share = (what: string, count: number) =>
    `${prefix}number of ${what}: ${count} (${pct(count, total)}%)`
  return [
    share('failed transactions', counted.failed),
    ...(report.failures_detailed
      ? [
          share('serialization failures', counted.serialization_failures),
          share('deadlock failures', counted.deadlock_failures),
        ]
      : []),
    ...(report.max_tries === 1
      ? []
      : [
          share('transactions retried', counted.retried),
          `${prefix}total number of retries: ${counted.retries}`,
        ]),
  ]
}

const hasSkipped = (report: BenchReport): boolean =>
  report.latency_limit_ms !== null && report.schedule_lag_ms !== null

function limitLines(report: BenchReport, total: number): string[] {
  const { latency_limit_ms: limit, late, processed, skipped } = report
  if (limit === null) return []
  return [
    ...(hasSkipped(report)
      ? [`number of transactions skipped: ${skipped} (${pct(skipped, total)}%)`]
      : []),
    `number of transactions above the ${limit.toFixed(1)} ms latency limit: ${late}/${processed} (${pct(late, processed)}%)`,
  ]
}

const spreadLines = (prefix: string, spread: Spread): string[] => [
  `${prefix} average = ${spread.average.toFixed(3)} ms`,
  `${prefix} stddev = ${spread.stddev.toFixed(3)} ms`,
]

function latencyLines(report: BenchReport, style: ReportStyle): string[] {
  if (style.isMeasured) return spreadLines('latency', report.latency_ms)
  const note = report.failed > 0 ? ' (including failures)' : ''
  return [`latency average = ${report.latency_from_time_ms.toFixed(3)} ms${note}`]
}

function lagLines(report: BenchReport): string[] {
  const lag = report.schedule_lag_ms
  if (lag === null) return []
  return [`rate limit schedule lag: avg ${lag.average.toFixed(3)} (max ${lag.max.toFixed(3)}) ms`]
}

function speedLines(report: BenchReport): string[] {
  const time = report.connection_time_ms.toFixed(3)
  const tps = report.tps.toFixed(6)
  return report.reconnect
    ? [`average connection time = ${time} ms`, `tps = ${tps} (including reconnection times)`]
    : [`initial connection time = ${time} ms`, `tps = ${tps} (without initial connection time)`]
}

function commandLines(script: ScriptReport, report: BenchReport, isMany: boolean): string[] {
  if (script.commands === undefined) return []
  const hasRetries = report.max_tries !== 1
  const what = hasRetries ? ', failures and retries' : ' and failures'
  return [
    `${isMany ? ' - ' : ''}statement latencies in milliseconds${what}:`,
    ...script.commands.map((command) => {
      const retries = hasRetries ? `  ${String(command.retries).padStart(10)}` : ''
      const latency = command.latency_ms.toFixed(3).padStart(11)
      return `   ${latency}  ${String(command.failures).padStart(10)}${retries}  ${command.command}`
    }),
  ]
}

function scriptLines(report: BenchReport, total: number): string[] {
  const isMany = report.scripts.length > 1
  return report.scripts.flatMap((script, i) => {
    const commands = commandLines(script, report, isMany)
    if (!isMany) return commands
    const share = total === 0 ? 0 : (100 * script.transactions) / total
    return [
      `SQL script ${i + 1}: ${script.name}`,
      ` - weight: ${script.weight} (targets ${script.target_pct.toFixed(1)}% of total)`,
      ` - ${script.transactions} transactions (${share.toFixed(1)}% of total, tps = ${script.tps.toFixed(6)})`,
      ...outcomeLines(report, script, script.transactions, ' - '),
      ...(hasSkipped(report) && script.transactions > 0
        ? [
            ` - number of transactions skipped: ${script.skipped} (${pct(script.skipped, script.transactions)}%)`,
          ]
        : []),
      ...(script.transactions > script.failed + script.skipped
        ? spreadLines(' - latency', script.latency_ms)
        : []),
      ...commands,
    ]
  })
}

/** The lines that pgbench prints. */
export function pgbenchLines(report: BenchReport, style: ReportStyle): string[] {
  const total = report.processed + report.failed + report.skipped
  const counts = [
    ...headLines(report),
    ...countLines(report),
    ...outcomeLines(report, report, total, ''),
    ...(report.connection_failures === null
      ? []
      : [
          `number of connection failures: ${report.connection_failures} (${pct(report.connection_failures, total)}%)`,
        ]),
  ]
  // of times there is nothing to tell
  if (report.processed + report.skipped === 0) return counts
  return [
    ...counts,
    ...limitLines(report, total),
    ...latencyLines(report, style),
    ...lagLines(report),
    ...speedLines(report),
    ...scriptLines(report, total),
  ]
}

const ms = (value: number): string => value.toFixed(value < 100 ? 3 : 1)
const share = (value: number | null): string =>
  value === null ? '-' : `${(100 * value).toFixed(1)}%`

const nodeColumns: Columns<NodeReport> = [
  ['node', (node) => node.node],
  ['weight', (node) => String(node.weight)],
  ['expected', (node) => share(node.expected_share)],
  ['connections', (node) => String(node.connections)],
  ['transactions', (node) => String(node.transactions)],
  ['share', (node) => share(node.share)],
  ['tps', (node) => node.tps.toFixed(1)],
  ['p50', (node) => ms(node.p50)],
  ['p95', (node) => ms(node.p95)],
  ['p99', (node) => ms(node.p99)],
  ['errors', (node) => String(node.errors)],
  ['refused', (node) => String(node.connect_failures)],
  ['gap ms', (node) => node.longest_gap_ms.toFixed(0)],
]

type Columns<T> = readonly [string, (row: T) => string][]

function table<T>(columns: Columns<T>, values: readonly T[]): string[] {
  const rows = [
    columns.map(([title]) => title),
    ...values.map((value) => columns.map(([, of]) => of(value))),
  ]
  const widths = columns.map((_, i) => Math.max(...rows.map((row) => (row[i] as string).length)))
  return rows.map((row) =>
    row
      .map((cell, i) => (i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!)))
      .join('  '),
  )
}

const sweepColumns: Columns<BenchReport> = [
  ['clients', (report) => String(report.clients)],
  ['tps', (report) => report.tps.toFixed(1)],
  ['avg', (report) => ms(report.latency_ms.average)],
  ['p50', (report) => ms(report.latency_ms.p50)],
  ['p95', (report) => ms(report.latency_ms.p95)],
  ['p99', (report) => ms(report.latency_ms.p99)],
  ['max', (report) => ms(report.latency_ms.max)],
  ['failed', (report) => String(report.failed)],
  ['aborted', (report) => String(report.aborted_clients)],
]

/** One row a run of a sweep; latencies in ms. */
export const sweepLines = (reports: readonly BenchReport[]): string[] =>
  table(sweepColumns, reports)

/** Most of a node that are printed; the JSON report has more. */
const MOST_GAPS = 5

const gapLines = (nodes: readonly NodeReport[]): string[] => {
  const lines = nodes.flatMap(({ node, gaps }) => {
    const shown = gaps.slice(0, MOST_GAPS).map((gap) => {
      const errors = Object.entries(gap.errors).map(([sqlstate, count]) => `${sqlstate} x ${count}`)
      const from = gap.last_good_at ?? 'the start'
      return `gap of ${node}: ${gap.length_ms} ms, last good ${from}, first good ${gap.first_good_at ?? 'none'}, errors between: ${errors.join(', ') || 'none'}`
    })
    const more = gaps.length - shown.length
    return more > 0 ? [...shown, `gap of ${node}: and ${more} shorter ones`] : shown
  })
  return lines.length === 0 ? [] : ['', ...lines]
}

/** What pgbench does not print: percentiles and nodes. */
export function ownLines(report: BenchReport): string[] {
  if (report.processed === 0 && report.nodes.length < 2) return []
  const { p50, p90, p95, p99, p999, max } = report.latency_ms
  const lines = [
    '',
    `latency percentiles (ms): p50 ${ms(p50)}  p90 ${ms(p90)}  p95 ${ms(p95)}  p99 ${ms(p99)}  p99.9 ${ms(p999)}  max ${ms(max)}`,
    '',
    ...(report.strategy === null
      ? []
      : [`strategy: ${report.strategy}, a pick at the start of each transaction`, '']),
    ...table(nodeColumns, report.nodes),
    ...gapLines(report.nodes),
  ]
  const chi = report.chi_square
  if (chi !== null) {
    const few = report.nodes.some(
      (node) => (node.expected_share ?? 0) > 0 && chiExpected(report, node) < 5,
    )
    lines.push(
      '',
      `chi-square of ${report.strategy === null ? 'connections' : 'transactions'}: ${chi.statistic.toFixed(2)}, ${chi.degreesOfFreedom} ${chi.degreesOfFreedom === 1 ? 'degree' : 'degrees'} of freedom, p = ${chi.p.toFixed(3)}${few ? ' (too few connections to say much: use -C or more clients)' : ''}`,
    )
  }
  return lines
}

function chiExpected(report: BenchReport, node: NodeReport): number {
  const balanced = report.strategy === null ? 'connections' : 'transactions'
  const all = report.nodes.reduce((sum, one) => sum + one[balanced], 0)
  return all * (node.expected_share ?? 0)
}
