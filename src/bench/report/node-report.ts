/** What a report says of each node: its share, its times, when it was gone. */
import { LatencyHistogram } from '../clients/latency-histogram.js'
import { faultsIn, type Silence } from '../clients/silences.js'
import type { NodeStats } from '../clients/stats.js'
import type { BenchNode, RunPlan } from '../run-plan.js'
import { type HistogramBucket, histogramOf } from './seconds-report.js'

/** A time without a good transaction on a node that has a reason: errors meanwhile, or its sheer length. */
export interface GapReport {
  /** Seconds since the start of the run; null when nothing was good before, or behind. */
  readonly last_good_s: number | null
  readonly first_good_s: number | null
  /** The same as times of day, in ISO 8601 with milliseconds. */
  readonly last_good_at: string | null
  readonly first_good_at: string | null
  /** Counted to the start or the end of the run where one of them is null. */
  readonly length_ms: number
  /** How often which SQLSTATE came between; 08001 is a connection that was refused, 08006 one that was lost. */
  readonly errors: Readonly<Record<string, number>>
}

export interface NodeReport {
  readonly node: string
  readonly weight: number
  /** Of the connections, by the weights of the nodes that take any; null where the order of hosts decides. */
  readonly expected_share: number | null
  readonly connections: number
  readonly transactions: number
  /** Of the connections; with a strategy of the transactions. */
  readonly share: number
  readonly tps: number
  readonly p50: number
  readonly p95: number
  readonly p99: number
  readonly max: number
  /** Failed transactions and clients that were aborted. */
  readonly errors: number
  /** Errors of the whole run by SQLSTATE, those that were tried again too. */
  readonly sqlstates: Readonly<Record<string, number>>
  /** Attempts to connect that failed. */
  readonly connect_failures: number
  readonly connect_p99: number
  readonly longest_gap_ms: number
  /** Longest first, at most 100. */
  readonly gaps: readonly GapReport[]
  /** Latencies of the good transactions; buckets that hold none are left out. */
  readonly histogram: readonly HistogramBucket[]
}

/** When the run began and ended, as times of day. */
interface RunTimes {
  readonly startMs: number
  readonly endMs: number
}

/** Longer silences are told without any error, too: a server may hang. */
const SILENT_MS = 1000
const MOST_GAPS = 100

/** Down for the whole run: refused and never reached. */
const isDown = (node: NodeStats): boolean => node.connections === 0 && node.connectFailures > 0

/** Shares can be foretold when chance alone chooses among hosts that all fit. */
export function hasExpectedShares({ conninfo, strategy }: RunPlan): boolean {
  if (conninfo.targetSessionAttrs !== 'any') return false
  if (strategy === undefined) return conninfo.loadBalanceHosts === 'random'
  return strategy === 'random' || strategy === 'round_robin'
}

interface Gap extends Silence {
  readonly errors: ReadonlyMap<string, number>
}

/** Class 40 is the fate of a transaction, not of a node. */
const blamesNode = (errors: ReadonlyMap<string, number>): boolean =>
  [...errors.keys()].some((sqlstate) => !sqlstate.startsWith('40'))

/** Silences within the run. Behind its last transaction a node is only missed when errors came. */
function gapsOf(node: NodeStats, { startMs, endMs }: RunTimes): Gap[] {
  if (node.connections === 0 && node.connectFailures === 0) return []
  return (node.silences ?? [])
    .map(({ fromMs, toMs }) => ({
      fromMs: Math.max(fromMs, startMs),
      toMs,
      errors: faultsIn({ fromMs, toMs }, node.faults),
    }))
    .filter(({ toMs, errors }) => toMs <= endMs || blamesNode(errors))
}

const byState = (errors: ReadonlyMap<string, number>): Record<string, number> =>
  Object.fromEntries([...errors].sort(([a], [b]) => (a < b ? -1 : 1)))

const always = { fromMs: Number.NEGATIVE_INFINITY, toMs: Number.POSITIVE_INFINITY }

function gapReport({ fromMs, toMs, errors }: Gap, { startMs, endMs }: RunTimes): GapReport {
  const hadGood = fromMs > startMs
  const hasGood = toMs <= endMs
  const seconds = (atMs: number) => Math.round(atMs - startMs) / 1000
  return {
    last_good_s: hadGood ? seconds(fromMs) : null,
    first_good_s: hasGood ? seconds(toMs) : null,
    last_good_at: hadGood ? new Date(fromMs).toISOString() : null,
    first_good_at: hasGood ? new Date(toMs).toISOString() : null,
    length_ms: Math.round(Math.min(toMs, endMs) - fromMs),
    errors: byState(errors),
  }
}

export function nodeReports(
  nodes: readonly BenchNode[],
  stats: readonly NodeStats[],
  plan: RunPlan,
  times: RunTimes,
): NodeReport[] {
  const isBalanced = hasExpectedShares(plan)
  const reachable = nodes.filter((_, i) => !isDown(stats[i]!))
  const weights = reachable.reduce((sum, node) => sum + node.weight, 0)
  // what is balanced: with a strategy each transaction, else each connection
  const balanced = (node: NodeStats) =>
    plan.strategy === undefined ? node.connections : node.done + node.errors
  const all = stats.reduce((sum, node) => sum + balanced(node), 0)
  const elapsedS = (times.endMs - times.startMs) / 1000
  return nodes.map((node, i) => {
    const counted = stats[i]!
    const latency = counted.latency.percentilesMs()
    const gaps = gapsOf(counted, times)
    const lengths = gaps.map(({ fromMs, toMs }) => Math.min(toMs, times.endMs) - fromMs)
    return {
      node: node.name,
      weight: node.weight,
      expected_share: isBalanced ? (isDown(counted) ? 0 : node.weight / weights) : null,
      connections: counted.connections,
      transactions: counted.done,
      share: all === 0 ? 0 : balanced(counted) / all,
      tps: counted.done / elapsedS,
      p50: latency.p50,
      p95: latency.p95,
      p99: latency.p99,
      max: latency.max,
      errors: counted.errors,
      sqlstates: byState(faultsIn(always, counted.faults)),
      connect_failures: counted.connectFailures,
      connect_p99: counted.connectTime.percentilesMs().p99,
      longest_gap_ms: Math.max(0, ...lengths),
      gaps: gaps
        .map((gap) => ({ ...gapReport(gap, times), blames: blamesNode(gap.errors) }))
        .filter(({ blames, length_ms }) => blames || length_ms >= SILENT_MS)
        .map(({ blames: _, ...gap }) => gap)
        .sort((a, b) => b.length_ms - a.length_ms)
        .slice(0, MOST_GAPS),
      histogram: histogramOf([counted]),
    }
  })
}

/** Of the latencies of all nodes. */
export function mergedLatency(stats: readonly NodeStats[]): LatencyHistogram {
  const latency = new LatencyHistogram()
  for (const node of stats) latency.merge(node.latency)
  return latency
}
