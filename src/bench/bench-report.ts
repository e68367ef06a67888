/** The result of a run as plain data: what `--json` prints and what the text report is written from. */

import { LatencyHistogram, type Percentiles } from './clients/latency-histogram.js'
import {
  failuresOf,
  type GroupStats,
  type NodeStats,
  type SecondStats,
  type SimpleStats,
  type TransactionStats,
} from './clients/stats.js'
import { type ChiSquare, chiSquare } from './report/chi-square.js'
import { type BenchNode, nodesOf, type RunPlan } from './run-plan.js'
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
  readonly errors: number
  readonly connect_failures: number
  readonly connect_p99: number
  readonly longest_gap_ms: number
}

/** One number a second of the run; the last second may be shorter. */
export interface SecondsReport {
  readonly tps: readonly number[]
  readonly avg_ms: readonly number[]
  readonly max_ms: readonly number[]
  readonly errors: readonly number[]
}

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
  readonly elapsed_ms: number
  readonly aborted_clients: number
  readonly scripts: readonly ScriptReport[]
  readonly nodes: readonly NodeReport[]
  /** Over all nodes, and by the name of each. */
  readonly seconds: SecondsReport & { readonly nodes: Readonly<Record<string, SecondsReport>> }
  readonly chi_square: ChiSquare | null
  readonly seed: string
}

export interface RunFacts {
  readonly plan: RunPlan
  readonly scripts: readonly Script[]
  readonly stats: GroupStats
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

/** Down for the whole run: refused and never reached. */
const isDown = (node: { connections: number; connectFailures: number }): boolean =>
  node.connections === 0 && node.connectFailures > 0

function nodeReports(facts: RunFacts, nodes: readonly BenchNode[]): NodeReport[] {
  const { stats, plan, elapsedMs } = facts
  const isBalanced = hasExpectedShares(plan)
  const reachable = nodes.filter((_, i) => !isDown(stats.nodes[i]!))
  const weights = reachable.reduce((sum, node) => sum + node.weight, 0)
  // what is balanced: with a strategy each transaction, else each connection
  const balanced = (node: NodeStats) =>
    plan.strategy === undefined ? node.connections : node.done + node.errors
  const all = stats.nodes.reduce((sum, node) => sum + balanced(node), 0)
  return nodes.map((node, i) => {
    const counted = stats.nodes[i]!
    const latency = counted.latency.percentilesMs()
    const expected = isDown(counted) ? 0 : node.weight / weights
    return {
      node: node.name,
      weight: node.weight,
      expected_share: isBalanced ? expected : null,
      connections: counted.connections,
      transactions: counted.done,
      share: all === 0 ? 0 : balanced(counted) / all,
      tps: counted.done / (elapsedMs / 1000),
      p50: latency.p50,
      p95: latency.p95,
      p99: latency.p99,
      max: latency.max,
      errors: counted.errors,
      connect_failures: counted.connectFailures,
      connect_p99: counted.connectTime.percentilesMs().p99,
      longest_gap_ms: counted.longestGapMs,
    }
  })
}

/** Shares can be foretold when chance alone chooses among hosts that all fit. */
function hasExpectedShares({ conninfo, strategy }: RunPlan): boolean {
  if (conninfo.targetSessionAttrs !== 'any') return false
  if (strategy === undefined) return conninfo.loadBalanceHosts === 'random'
  return strategy === 'random' || strategy === 'round_robin'
}

function chiSquareOf(nodes: readonly NodeReport[], { strategy }: RunPlan): ChiSquare | null {
  const counted = nodes.filter((node) => (node.expected_share ?? 0) > 0)
  const found = chiSquare(
    counted.map((node) => (strategy === undefined ? node.connections : node.transactions)),
    counted.map((node) => node.expected_share ?? 0),
  )
  return found ?? null
}

function secondsReport(stats: readonly NodeStats[], elapsedMs: number): SecondsReport {
  const rows = Array.from({ length: Math.ceil(elapsedMs / 1000) }, (_, i) => {
    const own = stats.flatMap((node) => node.seconds[i] ?? [])
    const sum = (read: (second: SecondStats) => number) =>
      own.reduce((total, second) => total + read(second), 0)
    const done = sum(({ done }) => done)
    // a short last second is counted up to a whole one
    const lengthS = Math.min(1, elapsedMs / 1000 - i)
    return {
      tps: done / lengthS,
      avg: done === 0 ? 0 : sum(({ latencySumUs }) => latencySumUs) / done / 1000,
      max: Math.max(0, ...own.map(({ latencyMaxUs }) => latencyMaxUs)) / 1000,
      errors: sum(({ errors }) => errors),
    }
  })
  const rounded = (value: number) => Math.round(value * 1000) / 1000
  return {
    tps: rows.map(({ tps }) => rounded(tps)),
    avg_ms: rows.map(({ avg }) => rounded(avg)),
    max_ms: rows.map(({ max }) => rounded(max)),
    errors: rows.map(({ errors }) => errors),
  }
}

export function makeReport(facts: RunFacts): BenchReport {
  const { plan, scripts, stats, elapsedMs } = facts
  const { total } = stats
  const failed = failuresOf(total)
  const all = totalOf(total)
  const { nodes } = nodesOf(plan.conninfo)
  const latency = new LatencyHistogram()
  for (const node of stats.nodes) latency.merge(node.latency)
  const reports = nodeReports(facts, nodes)
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
    chi_square: hasExpectedShares(plan) ? chiSquareOf(reports, plan) : null,
    seed: plan.seed,
  }
}
