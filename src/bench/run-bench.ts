/**
 * A run from its plan to its report: prepare the nodes, connect, drive, gather, judge. Prints nothing itself.
 * Source followed: main in pgbench.c.
 */
import { type Clock, systemClock } from '../base/clock.js'
import type { Conninfo } from '../topology/conninfo.js'
import { Prng } from '../topology/prng.js'
import { type BenchReport, makeReport, spreadMs } from './bench-report.js'
import type { GroupSeeds, GroupTools } from './clients/client-group.js'
import { openGroup, type RunningGroup } from './clients/run-group.js'
import {
  failuresOf,
  groupStats,
  mergeGroup,
  type TransactionStats,
  transactionStats,
} from './clients/stats.js'
import { openWorkerGroup } from './clients/worker-group.js'
import { prepareNodes } from './init/prepare-nodes.js'
import {
  checkNodes,
  checkThresholds,
  type Threshold,
  type ThresholdResult,
} from './report/threshold.js'
import type { RunPlan } from './run-plan.js'
import { nodesOf } from './run-plan.js'
import { parseScript } from './script/script.js'

export interface BenchOptions {
  /** All but the scale, which the nodes tell. */
  readonly plan: Omit<RunPlan, 'scale'>
  readonly usesBuiltin: boolean
  readonly vacuum: 'none' | 'default' | 'all'
  readonly scale?: number
  readonly progressMs?: number
  /** Progress lines tell the time of day. */
  readonly progressTimestamp: boolean
  readonly thresholds: readonly Threshold[]
}

export interface BenchTools {
  readonly clock?: Clock
  /** A line for stderr. */
  say(line: string): void
  /** Clients finish their transaction when it aborts. */
  readonly signal?: AbortSignal
}

export interface BenchResult {
  readonly report: BenchReport
  readonly thresholds: readonly ThresholdResult[]
  /** 0; 2 when a client was aborted; 3 when a threshold failed. */
  readonly exitCode: 0 | 2 | 3
}

/** One group a thread, clients dealt out as pgbench does, seeds drawn in its order. */
export function dealSeeds(plan: RunPlan): GroupSeeds[] {
  const base = Prng.ofSeed(BigInt(plan.seed))
  const clients = Array.from({ length: plan.clients }, (_, id) => ({ id, seed: base.nextUint64() }))
  const defaultSeed = 'default_seed' in plan.variables ? 0n : base.nextUint64()
  let dealt = 0
  const groups = Array.from({ length: plan.threads }, (_, i) => {
    const left = plan.threads - i
    const count = Math.floor((plan.clients - dealt + left - 1) / left)
    const own = clients.slice(dealt, dealt + count)
    dealt += count
    const choose = base.nextUint64()
    const throttle = base.nextUint64()
    const sample = base.nextUint64()
    return { clients: own, defaultSeed, choose, throttle, sample, thread: i }
  })
  return groups.map((group) => ({ ...group, hosts: base.nextUint64() }))
}

/** Advice that pgbench does not give. */
function warnings(conninfo: Conninfo): string[] {
  if (conninfo.loadBalanceHosts !== 'random' || conninfo.connectTimeoutMs !== undefined) return []
  if (conninfo.hosts.length < 2) return []
  return [
    'warning: load_balance_hosts=random without connect_timeout: a host that does not answer holds up its connections for minutes; add connect_timeout=2',
  ]
}

function sumTotals(groups: readonly RunningGroup[]): TransactionStats {
  const sum = transactionStats()
  for (const group of groups) {
    const totals = group.totals()
    sum.done += totals.done
    sum.serializationFailures += totals.serializationFailures
    sum.deadlockFailures += totals.deadlockFailures
    sum.connectionFailures += totals.connectionFailures
    sum.retried += totals.retried
    sum.retries += totals.retries
    sum.skipped += totals.skipped
    for (const name of ['latencyUs', 'lagUs'] as const) {
      sum[name].count += totals[name].count
      sum[name].sum += totals[name].sum
      sum[name].squares += totals[name].squares
    }
  }
  return sum
}

/** pgbench's progress line for what happened since `last`. */
function progressLine(
  plan: RunPlan,
  now: TransactionStats,
  last: TransactionStats,
  elapsedMs: number,
  spanMs: number,
  timestamp: string | undefined,
): string {
  const difference = {
    count: now.latencyUs.count - last.latencyUs.count,
    sum: now.latencyUs.sum - last.latencyUs.sum,
    squares: now.latencyUs.squares - last.latencyUs.squares,
    max: 0,
  }
  const { average, stddev } = spreadMs(difference)
  const tps = ((now.done - last.done) * 1000) / spanMs
  const failed = failuresOf(now) - failuresOf(last)
  const lagMs =
    difference.count === 0 ? 0 : (now.lagUs.sum - last.lagUs.sum) / difference.count / 1000
  const skipped = plan.latencyLimitMs === undefined ? '' : `, ${now.skipped - last.skipped} skipped`
  const lag = plan.ratePerSec === undefined ? '' : `, lag ${lagMs.toFixed(3)} ms${skipped}`
  const retries =
    plan.maxTries === 1
      ? ''
      : `, ${now.retried - last.retried} retried, ${now.retries - last.retries} retries`
  return `progress: ${timestamp ?? (elapsedMs / 1000).toFixed(1)} s, ${tps.toFixed(1)} tps, lat ${average.toFixed(3)} ms stddev ${stddev.toFixed(3)}, ${failed} failed${lag}${retries}`
}

/** Prints a progress line every `everyMs` until the function that it returns is called. */
function watch(
  plan: RunPlan,
  groups: readonly RunningGroup[],
  { progressMs: everyMs, progressTimestamp: hasTimestamp }: BenchOptions,
  clock: Clock,
  say: (line: string) => void,
): () => void {
  if (everyMs === undefined) return () => undefined
  const startMs = clock.monotonicMs()
  let last = transactionStats()
  let lastMs = startMs
  let dueMs = startMs + everyMs
  let timer = clock.after(everyMs, tick)
  function tick(): void {
    const nowMs = clock.monotonicMs()
    const now = structuredClone(sumTotals(groups))
    const timestamp = hasTimestamp ? (clock.nowMs() / 1000).toFixed(3) : undefined
    say(progressLine(plan, now, last, nowMs - startMs, nowMs - lastMs, timestamp))
    last = now
    lastMs = nowMs
    // A timer may fire a moment early: the line of this moment is not due again then.
    do dueMs += everyMs as number
    while (dueMs <= nowMs)
    timer = clock.after(dueMs - nowMs, tick)
  }
  return () => timer.cancel()
}

function openGroups(plan: RunPlan, tools: GroupTools): RunningGroup[] {
  const seeds = dealSeeds(plan)
  if (seeds.length === 1) return [openGroup(plan, seeds[0] as GroupSeeds, tools)]
  return seeds.map((group) => openWorkerGroup(plan, group, tools))
}

async function drive(
  plan: RunPlan,
  serverVersion: string,
  options: BenchOptions,
  tools: GroupTools,
  signal: AbortSignal | undefined,
): Promise<BenchReport> {
  const { clock } = tools
  const groups = openGroups(plan, tools)
  const stop = () => {
    for (const group of groups) group.stop()
  }
  signal?.addEventListener('abort', stop, { once: true })
  try {
    const connectMs = clock.monotonicMs()
    await Promise.all(groups.map((group) => group.connect()))
    const startMs = clock.monotonicMs()
    const startedAtMs = clock.nowMs()
    if (signal?.aborted) stop()
    const unwatch = watch(plan, groups, options, clock, tools.say)
    const results = await Promise.all(groups.map((group) => group.run()))
    const elapsedMs = clock.monotonicMs() - startMs
    unwatch()
    const scripts = plan.scripts.map(({ name, text, weight }) =>
      parseScript(name, text, weight, plan.allowsShell),
    )
    const stats = groupStats(
      scripts.map((script) => script.commands.length),
      nodesOf(plan.conninfo).nodes.length,
      startMs,
    )
    for (const result of results) mergeGroup(stats, result)
    const connectElapsedMs = startMs - connectMs
    return makeReport({
      plan,
      scripts,
      stats,
      startedAtMs,
      elapsedMs,
      connectElapsedMs,
      serverVersion,
    })
  } finally {
    signal?.removeEventListener('abort', stop)
    await Promise.all(groups.map((group) => group.close()))
  }
}

function debugLine({ conninfo, clients, transactions, durationMs }: BenchOptions['plan']): string {
  const of = (what: 'host' | 'port') => conninfo.hosts.map((one) => one[what]).join(',')
  const amount =
    durationMs === undefined ? `nxacts: ${transactions}` : `duration: ${durationMs / 1000}`
  return `pghost: ${of('host')} pgport: ${of('port')} nclients: ${clients} ${amount} dbName: ${conninfo.database}`
}

/** Runs the benchmark. Rejects when it cannot begin; a client that dies is told in the result. */
export async function runBench(options: BenchOptions, tools: BenchTools): Promise<BenchResult> {
  const clock = tools.clock ?? systemClock
  const prefixed = (line: string) => tools.say(`pgshard: error: ${line}`)
  const groupTools: GroupTools = {
    clock,
    log: (message, level) =>
      level === 'info' ? tools.say(`pgshard: ${message}`) : prefixed(message),
    say: tools.say,
  }
  const { conninfo, threads, clients } = options.plan
  for (const line of warnings(conninfo)) tools.say(`pgshard: ${line}`)
  const nodeNames = nodesOf(conninfo).nodes.map(({ name }) => name)
  checkNodes(options.thresholds, nodeNames)
  // Broken scripts are refused before anything is touched.
  for (const { name, text, weight } of options.plan.scripts)
    parseScript(name, text, weight, options.plan.allowsShell)
  const { scale, serverVersion } = await prepareNodes(conninfo, {
    needsTables: options.usesBuiltin,
    vacuum: options.vacuum,
    scale: options.scale,
    warn: (line) => tools.say(`pgshard: warning: ${line}`),
  })
  if (options.plan.debug) tools.say(`pgshard: ${debugLine(options.plan)}`)
  if (options.vacuum !== 'none') tools.say('starting vacuum...end.')
  const plan = { ...options.plan, scale, threads: Math.min(threads, clients) }
  const report = await drive(plan, serverVersion, options, groupTools, tools.signal)
  const thresholds = checkThresholds(report, options.thresholds)
  if (report.aborted_clients > 0) prefixed('Run was aborted; the above results are incomplete.')
  const isFailed = thresholds.some((result) => !result.ok)
  const exitCode = report.aborted_clients > 0 ? 2 : isFailed ? 3 : 0
  return { report, thresholds, exitCode }
}
