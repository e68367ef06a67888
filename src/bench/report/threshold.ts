/** `--threshold 'p99<5ms'`: conditions that must hold for the run to pass, over all nodes or for one as `node(NAME).p99`. */
import { engineError } from '../../errors/engine-error.js'
import type { BenchReport } from '../bench-report.js'
import type { NodeReport } from './node-report.js'

export interface Threshold {
  /** As written. */
  readonly text: string
  readonly node: string | undefined
  readonly metric: string
  readonly operator: '<' | '<=' | '>' | '>=' | '=='
  readonly limit: number
}

export interface ThresholdResult {
  readonly threshold: string
  readonly value: number | null
  /** Of the value: ms whatever the limit was written in, % or nothing. */
  readonly unit: string
  readonly ok: boolean
}

type Metric = (report: BenchReport) => number | undefined

const maximum = (values: readonly number[]): number | undefined =>
  values.length === 0 ? undefined : Math.max(...values)

const deviations = (report: BenchReport): number[] =>
  report.nodes.flatMap((node) =>
    node.expected_share === null ? [] : [100 * Math.abs(node.share - node.expected_share)],
  )

const metrics: Readonly<Record<string, Metric>> = {
  p50: (report) => report.latency_ms.p50,
  p90: (report) => report.latency_ms.p90,
  p95: (report) => report.latency_ms.p95,
  p99: (report) => report.latency_ms.p99,
  p999: (report) => report.latency_ms.p999,
  max: (report) => report.latency_ms.max,
  avg: (report) => report.latency_ms.average,
  tps: (report) => report.tps,
  errors: (report) => report.nodes.reduce((sum, node) => sum + node.errors, 0),
  failed_pct: (report) => report.failed_pct,
  connect_p99: (report) => maximum(report.nodes.map((node) => node.connect_p99)),
  gap_ms: (report) => maximum(report.nodes.map((node) => node.longest_gap_ms)),
  share_dev_pct: (report) => maximum(deviations(report)),
  chi2_p: (report) => report.chi_square?.p,
  sched_lag_p99: (report) => report.schedule_lag_ms?.p99,
}

const nodeMetrics: Readonly<Record<string, (node: NodeReport) => number | undefined>> = {
  p50: (node) => node.p50,
  p95: (node) => node.p95,
  p99: (node) => node.p99,
  max: (node) => node.max,
  tps: (node) => node.tps,
  errors: (node) => node.errors,
  connect_p99: (node) => node.connect_p99,
  gap_ms: (node) => node.longest_gap_ms,
  share_dev_pct: (node) =>
    node.expected_share === null ? undefined : 100 * Math.abs(node.share - node.expected_share),
}

const usage = (message: string) =>
  engineError(
    'BENCH_USAGE',
    { message },
    {
      hint: `write it as "p99<5ms" or "node(HOST:PORT).p99<5ms"; metrics: ${Object.keys(metrics).join(' ')}`,
    },
  )

const counts = new Set(['tps', 'errors', 'chi2_p'])

function unitOf({ metric }: Pick<Threshold, 'metric'>): string {
  if (counts.has(metric)) return ''
  return metric.endsWith('_pct') ? '%' : 'ms'
}

const units: Readonly<Record<string, number>> = { '': 1, '%': 1, us: 0.001, ms: 1, s: 1000 }

export function parseThreshold(text: string): Threshold {
  const found =
    /^\s*(?:node\(([^)]+)\)\.)?([a-z0-9_]+)\s*(<=|>=|==|<|>)\s*(\d+(?:\.\d*)?(?:e-?\d+)?|\.\d+)\s*(us|ms|s|%|)\s*$/i.exec(
      text,
    )
  if (found === null) throw usage(`invalid threshold "${text}"`)
  const [, node, metric = '', operator, limit, unit = ''] = found
  const known = node === undefined ? metrics : nodeMetrics
  if (!Object.hasOwn(known, metric)) throw usage(`threshold "${text}": unknown metric "${metric}"`)
  const own = unitOf({ metric })
  const fits = own === 'ms' ? unit !== '%' : unit === own
  if (unit !== '' && !fits)
    throw usage(`threshold "${text}": "${metric}" is not measured in ${unit}`)
  return {
    text: text.trim(),
    node,
    metric,
    operator: operator as Threshold['operator'],
    limit: Number(limit) * (units[unit.toLowerCase()] ?? 1),
  }
}

function holds(value: number, { operator, limit }: Threshold): boolean {
  switch (operator) {
    case '<':
      return value < limit
    case '<=':
      return value <= limit
    case '>':
      return value > limit
    case '>=':
      return value >= limit
    case '==':
      return value === limit
  }
}

function measured(report: BenchReport, { node, metric }: Threshold): number | undefined {
  if (node === undefined) return metrics[metric]?.(report)
  const found = report.nodes.find((one) => one.node === node)
  return found && nodeMetrics[metric]?.(found)
}

/** Before the run: @throws BENCH_USAGE for a node that it has not */
export function checkNodes(thresholds: readonly Threshold[], nodes: readonly string[]): void {
  const unknown = thresholds.find(({ node }) => node !== undefined && !nodes.includes(node))
  if (unknown)
    throw usage(
      `threshold "${unknown.text}" names a node that is not in the list (${nodes.join(', ')})`,
    )
}

/** A metric that the run did not measure fails its threshold. */
export function checkThresholds(
  report: BenchReport,
  thresholds: readonly Threshold[],
): ThresholdResult[] {
  return thresholds.map((threshold) => {
    const value = measured(report, threshold)
    return {
      threshold: threshold.text,
      value: value ?? null,
      unit: unitOf(threshold),
      ok: value !== undefined && holds(value, threshold),
    }
  })
}
