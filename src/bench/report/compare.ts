/** Two saved runs side by side: what changed, by how much, and whether chance alone could have done it. */
import { readFileSync } from 'node:fs'
import { engineError } from '../../errors/engine-error.js'
import type { BenchReport } from '../bench-report.js'
import { rankTest } from './rank-test.js'
import type { SecondsReport } from './seconds-report.js'

/** Below it a difference is not taken for chance. */
export const SIGNIFICANT = 0.01
/** A second at either end is warm-up or cut short. */
const ENDS = 1
/** With fewer whole seconds nothing is said about chance. */
const FEWEST = 5

export interface Change {
  readonly metric: string
  readonly before: number
  readonly after: number
  /** Of `before`, in percent; null when that was 0. */
  readonly change_pct: number | null
  /** That chance alone makes such a difference, from the seconds of both runs; null: not tested. */
  readonly p: number | null
  readonly verdict: 'same' | 'better' | 'worse' | 'not tested'
}

export interface Comparison {
  readonly before: string
  readonly after: string
  /** Settings in which the runs differ: then a difference may be theirs. */
  readonly differing_settings: readonly string[]
  readonly changes: readonly Change[]
  readonly nodes: readonly { readonly node: string; readonly changes: readonly Change[] }[]
  readonly is_different: boolean
}

/** @throws FILE_MISSING, BENCH_USAGE when it is not a report of `bench run --json` */
export function readReport(path: string): BenchReport {
  const read = (): unknown => {
    try {
      return JSON.parse(readFileSync(path, 'utf8'))
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause)
      throw engineError('FILE_MISSING', { path, reason }, { cause })
    }
  }
  const report = read() as Partial<BenchReport> | null
  const isReport =
    typeof report?.tps === 'number' &&
    Array.isArray(report.nodes) &&
    Array.isArray(report.seconds?.tps)
  if (isReport) return report as BenchReport
  throw engineError(
    'BENCH_USAGE',
    { message: `${path} is not a report of bench` },
    { hint: 'write one with pgshard bench run … --json-file FILE' },
  )
}

const inner = (values: readonly number[]): readonly number[] => values.slice(ENDS, -ENDS)

function change(
  metric: string,
  [before, after]: readonly [number, number],
  better: 'more' | 'less',
  samples?: readonly [readonly number[], readonly number[]],
): Change {
  const [a, b] = (samples ?? [[], []]).map(inner) as [readonly number[], readonly number[]]
  const p = a.length < FEWEST || b.length < FEWEST ? null : rankTest(a, b).p
  const isMore = after > before
  const verdict =
    p === null
      ? 'not tested'
      : p >= SIGNIFICANT
        ? 'same'
        : isMore === (better === 'more')
          ? 'better'
          : 'worse'
  return {
    metric,
    before,
    after,
    change_pct: before === 0 ? null : (100 * (after - before)) / before,
    p,
    verdict,
  }
}

interface Figures {
  readonly tps: number
  readonly avg?: number
  readonly p50: number
  readonly p95: number
  readonly p99: number
  readonly seconds: SecondsReport | undefined
}

function changesOf(before: Figures, after: Figures): Change[] {
  const of = (read: (seconds: SecondsReport) => readonly number[]) =>
    [before, after].map(({ seconds }) => (seconds ? read(seconds) : [])) as [number[], number[]]
  const averages = of(({ avg_ms }) => avg_ms)
  const plain = (metric: 'p50' | 'p95' | 'p99') =>
    change(metric, [before[metric], after[metric]], 'less')
  return [
    change(
      'tps',
      [before.tps, after.tps],
      'more',
      of(({ tps }) => tps),
    ),
    ...(before.avg === undefined || after.avg === undefined
      ? []
      : [change('avg', [before.avg, after.avg], 'less', averages)]),
    plain('p50'),
    plain('p95'),
    plain('p99'),
  ]
}

const settings = (report: BenchReport): Record<string, unknown> => ({
  'transaction type': report.transaction_type,
  'scaling factor': report.scale,
  'query mode': report.query_mode,
  clients: report.clients,
  threads: report.threads,
  'server version': report.server_version,
  reconnect: report.reconnect,
  nodes: report.nodes.map(({ node }) => node).join(','),
})

const figuresOf = (report: BenchReport): Figures => ({
  tps: report.tps,
  avg: report.latency_ms.average,
  p50: report.latency_ms.p50,
  p95: report.latency_ms.p95,
  p99: report.latency_ms.p99,
  seconds: report.seconds,
})

const ofNode = (report: BenchReport, name: string): Figures | undefined => {
  const node = report.nodes.find((one) => one.node === name)
  return node && { ...node, seconds: report.seconds.nodes[name] }
}

export function compareReports(
  before: BenchReport,
  after: BenchReport,
  names: readonly [string, string],
): Comparison {
  const [one, other] = [settings(before), settings(after)]
  const changes = changesOf(figuresOf(before), figuresOf(after))
  const nodes =
    before.nodes.length < 2 && after.nodes.length < 2
      ? []
      : before.nodes.flatMap(({ node }) => {
          const [a, b] = [ofNode(before, node), ofNode(after, node)]
          return a && b ? [{ node, changes: changesOf(a, b) }] : []
        })
  return {
    before: names[0],
    after: names[1],
    differing_settings: Object.keys(one).filter((name) => one[name] !== other[name]),
    changes,
    nodes,
    is_different: changes.some(({ verdict }) => verdict === 'better' || verdict === 'worse'),
  }
}

const cell = (value: number): string => value.toFixed(Math.abs(value) < 100 ? 3 : 1)

const lineOf = ({ metric, before, after, change_pct, p, verdict }: Change): string => {
  const unit = metric === 'tps' ? '' : ' ms'
  const pct = change_pct === null ? '-' : `${change_pct >= 0 ? '+' : ''}${change_pct.toFixed(1)}%`
  const chance = p === null ? '' : `  p = ${p.toFixed(4)}`
  return `  ${metric.padEnd(4)} ${`${cell(before)}${unit}`.padStart(14)} → ${`${cell(after)}${unit}`.padStart(14)}  ${pct.padStart(8)}  ${verdict}${chance}`
}

export function comparisonLines(comparison: Comparison): string[] {
  return [
    `before: ${comparison.before}`,
    `after:  ${comparison.after}`,
    ...comparison.differing_settings.map((name) => `note: the runs differ in ${name}`),
    ...comparison.changes.map(lineOf),
    ...comparison.nodes.flatMap(({ node, changes }) => [`node ${node}`, ...changes.map(lineOf)]),
    comparison.is_different
      ? 'different: chance alone would hardly have done it'
      : 'no difference that stands out of chance',
  ]
}
