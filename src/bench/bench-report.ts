/** The result of a run as plain data: what `--json` prints and what the text report is written from. */
import type { Percentiles } from './clients/latency-histogram.js'
import {
  failuresOf,
  type GroupStats,
  type SimpleStats,
  type TransactionStats,
} from './clients/stats.js'
import { type ChiSquare, chiSquare } from './report/chi-square.js'
import {
  hasExpectedShares,
  mergedLatency,
  type NodeReport,
  nodeReports,
} from './report/node-report.js'
import {
  type HistogramBucket,
  histogramOf,
  type SecondsReport,
  secondsReport,
} from './report/seconds-report.js'
import { nodesOf, type RunPlan } from './run-plan.js'
import type { Script } from './script/script.js'

export interface Spread {
  readonly average: number
  readonly stddev: number
}

export interface ScriptReport {
  readonly name: string
  readonly weight: number
  readonly target_pct: number
  readonly transactions: number
  readonly failed: number
  readonly serialization_failures: number
  readonly deadlock_failures: number
  readonly retried: number
  readonly retries: number
  readonly skipped: number
  readonly tps: number
  readonly latency_ms: Spread
  readonly commands?: readonly {
    readonly command: string
    readonly latency_ms: number
    readonly failures: number
    readonly retries: number
  }[]
}

/**
 * All that a run has to say; the object of `--json`, and all that a page with charts needs:
 * - over time: `seconds`, of all nodes and `seconds.nodes[name]` of each, one number a second since `started_at`;
 * - by size: `histogram`, and `nodes[i].histogram`, buckets that grow by an eighth of a doubling;
 * - shares: `nodes[i].share` beside `nodes[i].expected_share`, judged together by `chi_square`;
 * - failures: `nodes[i].gaps`, each from the last good transaction to the next, with the errors between.
 * Times are milliseconds where the name does not say otherwise.
 */
export interface BenchReport {
  readonly server_version: string
  readonly transaction_type: string
  readonly scale: number
  readonly query_mode: string
  readonly clients: number
  readonly threads: number
  readonly max_tries: number
  readonly transactions_per_client: number | null
  readonly duration_s: number | null
  readonly processed: number
  readonly expected: number | null
  readonly failed: number
  readonly failed_pct: number
  readonly serialization_failures: number
  readonly deadlock_failures: number
  /** Lost with their connection; null: clients do not connect again. */
  readonly connection_failures: number | null
  readonly retried: number
  readonly retries: number
  /** Failures are reported by kind. */
  readonly failures_detailed: boolean
  /** Not begun because the latency limit had passed. */
  readonly skipped: number
  readonly latency_limit_ms: number | null
  /** Above the limit. */
  readonly late: number
  readonly latency_ms: Spread & Percentiles
  /** As pgbench computes it without -P and -R: from the run's time. */
  readonly latency_from_time_ms: number
  readonly schedule_lag_ms: {
    readonly average: number
    readonly max: number
    readonly p99: number
  } | null
  readonly reconnect: boolean
  /** How the host of each transaction was picked; null: by libpq's rules, once a connection. */
  readonly strategy: string | null
  /** With -C the average of a transaction, else the time until all clients were connected. */
  readonly connection_time_ms: number
  readonly tps: number
  /** ISO 8601, of the first transaction's start. */
  readonly started_at: string
  readonly elapsed_ms: number
  readonly aborted_clients: number
  readonly scripts: readonly ScriptReport[]
  readonly nodes: readonly NodeReport[]
  /** Over all nodes, and by the name of each. */
  readonly seconds: SecondsReport & { readonly nodes: Readonly<Record<string, SecondsReport>> }
  readonly histogram: readonly HistogramBucket[]
  readonly chi_square: ChiSquare | null
  readonly seed: string
}

export interface RunFacts {
  readonly plan: RunPlan
  readonly scripts: readonly Script[]
  readonly stats: GroupStats
  /** Time of day at which it began. */
  readonly startedAtMs: number
  readonly elapsedMs: number
  /** Until all clients were connected; without -C. */
  readonly connectElapsedMs: number
  readonly serverVersion: string
}

export function spreadMs(stats: SimpleStats): Spread {
  if (stats.count === 0) return { average: 0, stddev: 0 }
  const average = stats.sum / stats.count
  const variance = Math.max(0, stats.squares / stats.count - average * average)
  return { average: average / 1000, stddev: Math.sqrt(variance) / 1000 }
}

const totalOf = (stats: TransactionStats): number => stats.done + stats.skipped + failuresOf(stats)

function scriptReports({ plan, scripts, stats, elapsedMs }: RunFacts): ScriptReport[] {
  const weights = scripts.reduce((sum, script) => sum + script.weight, 0)
  return scripts.map((script, i) => {
    const own = stats.scripts[i]!
    const commands = script.commands.map((command, j) => {
      const counted = stats.commands[i]![j]!
      return {
        command: command.shown,
        latency_ms: spreadMs(counted.timeUs).average,
        failures: counted.failures,
        retries: counted.retries,
      }
    })
    return {
      name: script.name,
      weight: script.weight,
      target_pct: weights === 0 ? 0 : (100 * script.weight) / weights,
      transactions: totalOf(own),
      failed: failuresOf(own),
      serialization_failures: own.serializationFailures,
      deadlock_failures: own.deadlockFailures,
      retried: own.retried,
      retries: own.retries,
      skipped: own.skipped,
      tps: own.done / (elapsedMs / 1000),
      latency_ms: spreadMs(own.latencyUs),
      ...(plan.reportPerCommand ? { commands } : {}),
    }
  })
}

function chiSquareOf(nodes: readonly NodeReport[], { strategy }: RunPlan): ChiSquare | null {
  const counted = nodes.filter((node) => (node.expected_share ?? 0) > 0)
  const found = chiSquare(
    counted.map((node) => (strategy === undefined ? node.connections : node.transactions)),
    counted.map((node) => node.expected_share ?? 0),
  )
  return found ?? null
}

export function makeReport(facts: RunFacts): BenchReport {
  const { plan, scripts, stats, elapsedMs } = facts
  const { total } = stats
  const failed = failuresOf(total)
  const all = totalOf(total)
  const { nodes } = nodesOf(plan.conninfo)
  const latency = mergedLatency(stats.nodes)
  const times = { startMs: facts.startedAtMs, endMs: facts.startedAtMs + elapsedMs }
  const reports = nodeReports(nodes, stats.nodes, plan, times)
  const lag = spreadMs(total.lagUs)
  const isTimed = plan.durationMs !== undefined
  const perTransactionMs = all === 0 ? 0 : stats.connectUs / 1000 / (total.done + failed)
  return {
    server_version: facts.serverVersion,
    transaction_type: scripts.length === 1 ? (scripts[0]!.name as string) : 'multiple scripts',
    scale: plan.scale,
    query_mode: plan.protocol,
    clients: plan.clients,
    threads: plan.threads,
    max_tries: plan.maxTries,
    transactions_per_client: isTimed ? null : plan.transactions,
    duration_s: plan.durationMs === undefined ? null : plan.durationMs / 1000,
    processed: total.done,
    expected: isTimed ? null : plan.transactions * plan.clients,
    failed,
    failed_pct: all === 0 ? 0 : (100 * failed) / all,
    serialization_failures: total.serializationFailures,
    deadlock_failures: total.deadlockFailures,
    connection_failures: plan.reconnectMs === undefined ? null : total.connectionFailures,
    retried: total.retried,
    retries: total.retries,
    failures_detailed: plan.failuresDetailed,
    skipped: total.skipped,
    latency_limit_ms: plan.latencyLimitMs ?? null,
    late: stats.late,
    latency_ms: { ...spreadMs(total.latencyUs), ...latency.percentilesMs() },
    latency_from_time_ms: all === 0 ? 0 : (elapsedMs * plan.clients) / all,
    schedule_lag_ms:
      plan.ratePerSec === undefined
        ? null
        : { average: lag.average, max: total.lagUs.max / 1000, p99: stats.lag.percentilesMs().p99 },
    reconnect: plan.reconnect,
    strategy: plan.strategy ?? null,
    connection_time_ms: plan.reconnect ? perTransactionMs : facts.connectElapsedMs,
    tps: total.done / (elapsedMs / 1000),
    started_at: new Date(facts.startedAtMs).toISOString(),
    elapsed_ms: elapsedMs,
    aborted_clients: stats.abortedClients,
    scripts: scriptReports(facts),
    nodes: reports,
    seconds: {
      ...secondsReport(stats.nodes, elapsedMs),
      nodes: Object.fromEntries(
        nodes.map(({ name }, i) => [name, secondsReport([stats.nodes[i]!], elapsedMs)]),
      ),
    },
    histogram: histogramOf(stats.nodes),
    chi_square: hasExpectedShares(plan) ? chiSquareOf(reports, plan) : null,
    seed: plan.seed,
  }
}
