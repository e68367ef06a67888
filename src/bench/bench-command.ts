/** Flags of the command line → options of a run or an init, checked as pgbench checks them. */
import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { systemClock } from '../base/clock.js'
import { present } from '../base/present.js'
import { strategyNames } from '../client/strategy.js'
import { engineError } from '../errors/engine-error.js'
import { readConninfo } from '../pg/connect.js'
import { localEnvironment } from '../pg/local-environment.js'
import { type Conninfo, isConninfo } from '../topology/conninfo.js'
import { type InitOptions, type InitStep, readSteps } from './init/init-steps.js'
import { type LogFlags, logOf } from './log-options.js'
import { benchPage } from './report/bench-page.js'
import { junitXml } from './report/junit.js'
import { ownLines, pgbenchLines, sweepLines } from './report/report-text.js'
import { parseThreshold } from './report/threshold.js'
import type { BenchOptions, BenchResult } from './run-bench.js'
import { type Protocol, protocols, type ScriptSource } from './run-plan.js'
import { builtinScripts, findBuiltin, splitWeight } from './script/builtin-scripts.js'

export interface ConnectFlags {
  readonly host?: string | undefined
  readonly port?: string | undefined
  readonly username?: string | undefined
  readonly dbname?: string | undefined
}

export interface RunFlags extends ConnectFlags, LogFlags {
  readonly builtin?: readonly string[] | undefined
  readonly file?: readonly string[] | undefined
  readonly 'skip-some-updates': boolean
  readonly 'select-only': boolean
  readonly client: number
  readonly connect: boolean
  readonly define?: readonly string[] | undefined
  readonly jobs: number
  readonly protocol: string
  readonly progress?: number | undefined
  readonly 'report-per-command': boolean
  readonly rate?: string | undefined
  readonly scale?: number | undefined
  readonly transactions?: number | undefined
  readonly 'no-vacuum': boolean
  readonly 'vacuum-all': boolean
  readonly 'max-tries': number
  readonly 'verbose-errors': boolean
  readonly seed?: string | undefined
  readonly threshold?: readonly string[] | undefined
  readonly sweep?: string | undefined
  readonly strategy?: string | undefined
  readonly reconnect?: number | undefined
  readonly 'allow-shell'?: boolean | undefined
  readonly 'latency-limit'?: string | undefined
  readonly 'failures-detailed': boolean
  readonly 'progress-timestamp': boolean
  readonly debug: boolean
}

export interface InitFlags extends ConnectFlags {
  readonly scale?: number | undefined
  readonly fillfactor: number
  readonly 'unlogged-tables': boolean
  readonly 'foreign-keys': boolean
  readonly 'no-vacuum': boolean
  readonly 'init-steps': string
  readonly partitions: number
  readonly 'partition-method'?: string | undefined
  readonly tablespace?: string | undefined
  readonly 'index-tablespace'?: string | undefined
}

const usage = (message: string) => engineError('BENCH_USAGE', { message })

/** The positional argument or -d is a connection string, a URI or a database; -h, -p and -U win over it. */
export function benchConninfo(
  target: string | undefined,
  flags: ConnectFlags,
  warn: (line: string) => void,
): Conninfo {
  const text = target ?? flags.dbname ?? ''
  const isTwice = target !== undefined && flags.dbname !== undefined
  if (isTwice && isConninfo(flags.dbname as string))
    throw usage('the database is given twice: as an argument and with -d')
  return readConninfo(text, {
    environment: localEnvironment(process.env, (line) => warn(`pgshard: warning: ${line}`)),
    overrides: {
      host: flags.host,
      port: flags.port,
      user: flags.username,
      dbname: isTwice ? flags.dbname : undefined,
    },
  })
}

function readScript(path: string): string {
  try {
    return readFileSync(path === '-' ? 0 : path, 'utf8')
  } catch (cause) {
    const reason =
      (cause as NodeJS.ErrnoException).code === 'ENOENT' ? 'no such file' : String(cause)
    throw engineError('FILE_MISSING', { path, reason }, { cause })
  }
}

function scriptSources(flags: RunFlags): { scripts: ScriptSource[]; usesBuiltin: boolean } {
  const builtin = (option: string): ScriptSource => {
    const { name, weight } = splitWeight(option)
    const script = findBuiltin(name)
    return { name: script.title, text: script.text, weight }
  }
  const builtins = [
    ...(flags.builtin ?? []),
    ...(flags['skip-some-updates'] ? ['simple-update'] : []),
    ...(flags['select-only'] ? ['select-only'] : []),
  ].map(builtin)
  const files = (flags.file ?? []).map((option) => {
    const { name, weight } = splitWeight(option)
    return { name, text: readScript(name), weight }
  })
  if (builtins.length + files.length === 0)
    return { scripts: [builtin('tpcb-like')], usesBuiltin: true }
  const scripts = [...builtins, ...files]
  if (scripts.every((script) => script.weight === 0))
    throw usage('total script weight must not be zero')
  return { scripts, usesBuiltin: builtins.length > 0 }
}

function definitions(define: readonly string[] | undefined): Record<string, string> {
  const variables: Record<string, string> = {}
  for (const text of define ?? []) {
    const equals = text.indexOf('=')
    if (equals <= 0 || equals === text.length - 1)
      throw usage(`invalid variable definition: "${text}"`)
    variables[text.slice(0, equals)] = text.slice(equals + 1)
  }
  return variables
}

/** One that is asked for is told, so that the run can be had again. */
function seedOf(flag: string | undefined, say: (line: string) => void): string {
  const asked = flag ?? process.env['PGBENCH_RANDOM_SEED']
  const seed = chosenSeed(asked)
  if (asked !== undefined) say(`pgshard: setting random seed to ${seed}`)
  return seed
}

function chosenSeed(text: string | undefined): string {
  if (text === 'time') return String(Math.floor(systemClock.nowMs() * 1000))
  if (text === undefined || text === 'rand') return String(randomBytes(8).readBigUInt64LE())
  if (!/^\s*[+-]?\d+$/.test(text))
    throw usage(`unrecognized random seed option "${text}": an unsigned integer, "time" or "rand"`)
  return String(unsigned64(BigInt(text.replace('+', ''))))
}

/** As strtoul reads it: what is too large is the largest, what is below zero counts from the end. */
function unsigned64(value: bigint): bigint {
  const most = 2n ** 64n - 1n
  return value > most || value < -most ? most : BigInt.asUintN(64, value)
}

function rateOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const rate = Number(text)
  if (!(rate > 0) || !Number.isFinite(rate)) throw usage(`invalid rate limit: "${text}"`)
  return rate
}

function limitOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const limit = Number(text)
  if (!(limit > 0) || !Number.isFinite(limit)) throw usage(`invalid latency limit: "${text}"`)
  return limit
}

/** Numbers of clients of --sweep, in the order given; undefined without it. */
export function sweepOf(text: string | undefined): number[] | undefined {
  if (text === undefined) return undefined
  return text.split(',').map((word) => {
    const clients = Number(word.trim())
    if (/^\s*\d+\s*$/.test(word) && clients >= 1) return clients
    throw usage(`invalid number of clients in --sweep: "${word}"`)
  })
}

/** The options of its i-th run; logs of each have names of their own. */
export function runOfSweep(options: BenchOptions, clients: number, i: number): BenchOptions {
  const { log } = options.plan
  const ownLog = log && { ...log, prefix: `${log.prefix}_${i + 1}` }
  return { ...options, plan: { ...options.plan, clients, ...present({ log: ownLog }) } }
}

/** Options of a run. `warn` hears of password files that may not be used. */
export function runOptions(
  target: string | undefined,
  flags: RunFlags,
  warn: (line: string) => void,
): BenchOptions {
  const { scripts, usesBuiltin } = scriptSources(flags)
  const protocol = protocols.find((known) => known === flags.protocol) as Protocol
  const latencyLimitMs = limitOf(flags['latency-limit'])
  if (flags['max-tries'] === 0 && flags.time === undefined && latencyLimitMs === undefined)
    throw usage('an unlimited number of transaction tries can only be used with -L or -T')
  if (flags['progress-timestamp'] && flags.progress === undefined)
    throw usage('--progress-timestamp is allowed only under --progress')
  const log = logOf(flags)
  const strategy = strategyNames.find((known) => known === flags.strategy)
  const ratePerSec = rateOf(flags.rate)
  return {
    plan: {
      conninfo: benchConninfo(target, flags, warn),
      scripts,
      protocol,
      clients: flags.client,
      threads: flags.jobs,
      transactions: flags.transactions ?? 10,
      reconnect: flags.connect,
      maxTries: flags['max-tries'],
      reportPerCommand: flags['report-per-command'],
      verboseErrors: flags['verbose-errors'],
      variables: definitions(flags.define),
      failuresDetailed: flags['failures-detailed'],
      allowsShell: flags['allow-shell'] === true,
      debug: flags.debug,
      seed: seedOf(flags.seed, warn),
      ...present({
        latencyLimitMs,
        log,
        strategy,
        reconnectMs: flags.reconnect === undefined ? undefined : flags.reconnect * 1000,
        durationMs: flags.time === undefined ? undefined : flags.time * 1000,
        ratePerSec,
      }),
    },
    usesBuiltin,
    progressTimestamp: flags['progress-timestamp'],
    vacuum: flags['no-vacuum'] ? 'none' : flags['vacuum-all'] ? 'all' : 'default',
    thresholds: (flags.threshold ?? []).map(parseThreshold),
    ...(flags.scale === undefined ? {} : { scale: flags.scale }),
    ...(flags.progress === undefined ? {} : { progressMs: flags.progress * 1000 }),
  }
}

export function initOptions(
  target: string | undefined,
  flags: InitFlags,
  quiet: boolean,
  warn: (line: string) => void,
): InitOptions {
  return {
    conninfo: benchConninfo(target, flags, warn),
    scale: flags.scale ?? 1,
    fillfactor: flags.fillfactor,
    unlogged: flags['unlogged-tables'],
    steps: stepsOf(flags),
    partitions: flags.partitions,
    partitionMethod: partitionMethodOf(flags['partition-method']),
    ...present({ tablespace: flags.tablespace, indexTablespace: flags['index-tablespace'] }),
    quiet,
  }
}

function partitionMethodOf(text = 'range'): 'range' | 'hash' {
  const method = text.toLowerCase()
  if (method === 'range' || method === 'hash') return method
  throw usage(`invalid partition method, expecting "range" or "hash", got: "${text}"`)
}

/** As pgbench: --no-vacuum takes v out of the steps, --foreign-keys puts f behind them. */
function stepsOf(flags: InitFlags): InitStep[] {
  if (flags['partition-method'] !== undefined && flags.partitions === 0)
    throw usage('partition-method requires greater than zero --partitions')
  const steps = readSteps(flags['init-steps']).filter((step) => step !== 'v' || !flags['no-vacuum'])
  return flags['foreign-keys'] && !steps.includes('f') ? [...steps, 'f'] : steps
}

/** The text report of a run. */
export function resultLines(result: BenchResult, options: BenchOptions, version: string): string[] {
  const { report } = result
  const { ratePerSec, latencyLimitMs } = options.plan
  const isMeasured = [options.progressMs, ratePerSec, latencyLimitMs].some(
    (one) => one !== undefined,
  )
  return [
    `pgshard bench (${version}, server ${report.server_version})`,
    ...pgbenchLines(report, { isMeasured }),
    ...ownLines(report),
    ...(result.thresholds.length === 0 ? [] : ['']),
    ...result.thresholds.map(
      ({ threshold, value, unit, ok }) =>
        `threshold ${threshold}: ${ok ? 'ok' : 'FAILED'} (${value === null ? 'not measured' : `${value.toFixed(3)} ${unit}`.trimEnd()})`,
    ),
  ]
}

/** The table of a sweep, and its failed thresholds. */
export const sweepText = (results: readonly BenchResult[]): string[] => [
  ...sweepLines(results.map(({ report }) => report)),
  ...results.flatMap(({ report, thresholds }) =>
    thresholds
      .filter(({ ok }) => !ok)
      .map(({ threshold }) => `threshold ${threshold}: FAILED with ${report.clients} clients`),
  ),
]

/** What --json prints and --json-file holds. */
export const resultJson = (result: BenchResult) => ({
  ...result.report,
  thresholds: result.thresholds,
  exit_code: result.exitCode,
})

export const writeJson = (path: string, result: BenchResult): void =>
  writeText(path, `${JSON.stringify(resultJson(result), null, 2)}\n`)

export const writeJunit = (path: string, result: BenchResult): void =>
  writeText(path, junitXml(result))

export const writeHtml = (path: string, result: BenchResult): void =>
  writeText(path, benchPage(result))

function writeText(path: string, text: string): void {
  try {
    writeFileSync(path, text)
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw engineError('FILE_MISSING', { path, reason }, { cause })
  }
}

/** Text of a built-in script, or the list of them. */
export function showScript(name: string): string {
  if (name === 'list') return builtinScripts.map((one) => `${one.name}: ${one.title}`).join('\n')
  const script = findBuiltin(name)
  return `-- ${script.name}: ${script.title}\n${script.text}`
}
