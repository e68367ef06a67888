/** The demo drives load at the proxy with the engine of bench. */
import { cpus } from 'node:os'
import { runBench } from '../bench/run-bench.js'
import type { RunPlan } from '../bench/run-plan.js'
import { formatCount } from '../cli/render.js'
import { readConninfo } from '../pg/connect.js'
import type { ProxyProcess } from './proxy-process.js'
import { DATABASE, type Stage, USER } from './stage.js'

/** Keys as data-set.ts makes them for two thirds of the customers: n + 1 where n is not a multiple of 3. */
const script = (customers: number): string =>
  [
    `\\set n random(0, ${customers - 1})`,
    '\\set id case when :n % 3 = 0 then -:n - 1 else :n + 1 end',
    'SELECT name, balance FROM customers WHERE id = :id;',
  ].join('\n')

const SECONDS = 4
const CLIENTS = 16

export async function driveLoad(stage: Stage, proxy: ProxyProcess): Promise<void> {
  const conninfo = readConninfo(
    `host=${proxy.host} port=${proxy.port} user=${USER} dbname=${DATABASE} sslmode=disable`,
    {
      environment: {
        variables: {},
        userName: USER,
        homeDirectory: '/',
        defaultHost: 'localhost',
        readFile: () => undefined,
      },
    },
  )
  const plan: Omit<RunPlan, 'scale'> = {
    conninfo,
    scripts: [{ name: 'one customer by key', text: script(stage.customers), weight: 1 }],
    protocol: 'prepared',
    clients: CLIENTS,
    threads: 1,
    transactions: 0,
    durationMs: SECONDS * 1000,
    reconnect: false,
    maxTries: 1,
    reportPerCommand: false,
    verboseErrors: false,
    failuresDetailed: false,
    variables: {},
    seed: '42',
  }
  const { report } = await runBench(
    {
      plan,
      usesBuiltin: false,
      vacuum: 'none',
      scale: 1,
      thresholds: [],
      progressTimestamp: false,
    },
    { clock: stage.clock, say: (line) => stage.story.status(line), signal: stage.signal },
  )
  const { latency_ms: latency } = report
  stage.story.facts([
    [
      'clients',
      `${CLIENTS}, prepared statements, ${SECONDS} s, ${cpus().length} cores for everything`,
    ],
    [
      'transactions',
      `${formatCount(report.processed)} (${formatCount(Math.round(report.tps))} a second)`,
    ],
    [
      'latency',
      `p50 ${latency.p50.toFixed(2)} ms, p95 ${latency.p95.toFixed(2)} ms, p99 ${latency.p99.toFixed(2)} ms`,
    ],
  ])
  stage.story.check(
    report.failed === 0 && report.aborted_clients === 0 && report.processed > 0,
    'no transaction failed',
    `${report.failed} failed, ${report.aborted_clients} clients aborted`,
  )
}
