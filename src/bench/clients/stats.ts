/** What a run counts, per script, per command and per node; kept per group of clients and merged at the end. Source followed: StatsData in pgbench.c. */
import {
  countLatency,
  type LatencyBuckets,
  latencyBuckets,
  mergeBuckets,
} from './latency-buckets.js'
import { LatencyHistogram } from './latency-histogram.js'
import { commonSilences, type Faults, type Silence } from './silences.js'

/** Count, sum, squares, least and most of something in microseconds. */
export interface SimpleStats {
  count: number
  sum: number
  squares: number
  max: number
}

export interface TransactionStats {
  /** Successful transactions. */
  done: number
  skipped: number
  retries: number
  retried: number
  serializationFailures: number
  deadlockFailures: number
  /** Lost with their connection; only where clients connect again. */
  connectionFailures: number
  readonly latencyUs: SimpleStats
  readonly lagUs: SimpleStats
}

export interface CommandStats {
  readonly timeUs: SimpleStats
  failures: number
  retries: number
}

/** What happened on a node in one second of the run. */
export interface SecondStats {
  done: number
  errors: number
  latencySumUs: number
  latencyMaxUs: number
  readonly latency: LatencyBuckets
}

export interface NodeStats {
  connections: number
  connectFailures: number
  done: number
  /** Failed transactions and clients that were aborted. */
  errors: number
  readonly latency: LatencyHistogram
  readonly connectTime: LatencyHistogram
  startMs: number
  /** When nothing was finished, in times of day; undefined before a thread has told. */
  silences: readonly Silence[] | undefined
  /** Refused connections, lost ones, failed and aborted transactions. */
  faults: readonly Faults[]
  /** By second since the start; a hole is a second in which nothing ended. */
  readonly seconds: (SecondStats | undefined)[]
}

export interface GroupStats {
  readonly total: TransactionStats
  readonly scripts: readonly TransactionStats[]
  readonly commands: readonly (readonly CommandStats[])[]
  readonly nodes: readonly NodeStats[]
  readonly lag: LatencyHistogram
  connectUs: number
  /** Transactions above the latency limit. */
  late: number
  abortedClients: number
}

const simple = (): SimpleStats => ({ count: 0, sum: 0, squares: 0, max: 0 })

export const transactionStats = (): TransactionStats => ({
  done: 0,
  skipped: 0,
  retries: 0,
  retried: 0,
  serializationFailures: 0,
  deadlockFailures: 0,
  connectionFailures: 0,
  latencyUs: simple(),
  lagUs: simple(),
})

export const failuresOf = (stats: TransactionStats): number =>
  stats.serializationFailures + stats.deadlockFailures + stats.connectionFailures

const nodeStats = (startMs: number): NodeStats => ({
  connections: 0,
  connectFailures: 0,
  done: 0,
  errors: 0,
  latency: new LatencyHistogram(),
  connectTime: new LatencyHistogram(),
  startMs,
  silences: undefined,
  faults: [],
  seconds: [],
})

/** Empty statistics for scripts with so many commands each, and so many nodes. */
export function groupStats(
  commandCounts: readonly number[],
  nodeCount: number,
  startMs: number,
): GroupStats {
  return {
    total: transactionStats(),
    scripts: commandCounts.map(transactionStats),
    commands: commandCounts.map((count) =>
      Array.from({ length: count }, () => ({ timeUs: simple(), failures: 0, retries: 0 })),
    ),
    nodes: Array.from({ length: nodeCount }, () => nodeStats(startMs)),
    lag: new LatencyHistogram(),
    connectUs: 0,
    late: 0,
    abortedClients: 0,
  }
}

export function addSample(stats: SimpleStats, value: number): void {
  stats.count++
  stats.sum += value
  stats.squares += value * value
  if (value > stats.max) stats.max = value
}

function mergeSimple(into: SimpleStats, from: SimpleStats): void {
  into.count += from.count
  into.sum += from.sum
  into.squares += from.squares
  into.max = Math.max(into.max, from.max)
}

function mergeTransactions(into: TransactionStats, from: TransactionStats): void {
  into.done += from.done
  into.skipped += from.skipped
  into.retries += from.retries
  into.retried += from.retried
  into.serializationFailures += from.serializationFailures
  into.deadlockFailures += from.deadlockFailures
  into.connectionFailures += from.connectionFailures
  mergeSimple(into.latencyUs, from.latencyUs)
  mergeSimple(into.lagUs, from.lagUs)
}

const second = (): SecondStats => ({
  done: 0,
  errors: 0,
  latencySumUs: 0,
  latencyMaxUs: 0,
  latency: latencyBuckets(),
})

/** Threads start within milliseconds of each other, so their seconds are one. */
function mergeSeconds(into: NodeStats['seconds'], from: NodeStats['seconds']): void {
  for (const [i, one] of from.entries()) {
    if (one === undefined) continue
    into[i] ??= second()
    const sum = into[i]
    sum.done += one.done
    sum.errors += one.errors
    sum.latencySumUs += one.latencySumUs
    sum.latencyMaxUs = Math.max(sum.latencyMaxUs, one.latencyMaxUs)
    mergeBuckets(sum.latency, one.latency)
  }
}

function secondOf(node: NodeStats, nowMs: number): SecondStats {
  const at = Math.max(0, Math.floor((nowMs - node.startMs) / 1000))
  node.seconds[at] ??= second()
  return node.seconds[at]
}

/** Adds `from` to `into`; both are of the same run. */
export function mergeGroup(into: GroupStats, from: GroupStats): void {
  mergeTransactions(into.total, from.total)
  for (const [i, script] of from.scripts.entries()) mergeTransactions(into.scripts[i]!, script)
  for (const [i, commands] of from.commands.entries()) {
    for (const [j, command] of commands.entries()) {
      const target = into.commands[i]![j]!
      mergeSimple(target.timeUs, command.timeUs)
      target.failures += command.failures
      target.retries += command.retries
    }
  }
  for (const [i, node] of from.nodes.entries()) {
    const target = into.nodes[i]!
    target.connections += node.connections
    target.connectFailures += node.connectFailures
    target.done += node.done
    target.errors += node.errors
    target.latency.merge(node.latency)
    target.connectTime.merge(node.connectTime)
    target.silences =
      target.silences === undefined
        ? node.silences
        : commonSilences(target.silences, node.silences ?? [])
    target.faults = [...target.faults, ...node.faults]
    mergeSeconds(target.seconds, node.seconds)
  }
  into.lag.merge(from.lag)
  into.connectUs += from.connectUs
  into.late += from.late
  into.abortedClients += from.abortedClients
}

/** Notes a finished transaction of a node at `nowMs`. */
export function noteDone(node: NodeStats, latencyUs: number, nowMs: number): void {
  node.done++
  node.latency.record(latencyUs)
  const now = secondOf(node, nowMs)
  now.done++
  now.latencySumUs += latencyUs
  if (latencyUs > now.latencyMaxUs) now.latencyMaxUs = latencyUs
  countLatency(now.latency, latencyUs)
}

/** Notes a failed transaction of a node, or a client that was aborted, at `nowMs`. */
export function noteError(node: NodeStats, nowMs: number): void {
  node.errors++
  secondOf(node, nowMs).errors++
}
