/**
 * The whole road once, on this machine, with nothing prepared: servers, data, load, proxy, queries,
 * benchmark, a move from four shards to six under writes. Every count is checked, everything that
 * was started is ended, also after a failure, Ctrl-C or kill −9.
 */
import { chmodSync, mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import type { Clock } from '../base/clock.js'
import { formatBytes, formatCount, formatDuration } from '../cli/render.js'
import { sharedTemporaryDirectory } from '../cluster/cache-directory.js'
import type { Cluster } from '../cluster/cluster.js'
import { startGuardian } from '../cluster/guardian.js'
import { serverUser } from '../cluster/run-as.js'
import { engineError } from '../errors/engine-error.js'
import { driveLoad } from './bench-step.js'
import { type MadeFile, schemaSql, writeCustomers, writeOrders } from './data-set.js'
import { loadFiles } from './load-step.js'
import { type ProxyProcess, startProxy } from './proxy-process.js'
import { askThroughProxy } from './query-step.js'
import { reshardUnderWrites } from './reshard-step.js'
import {
  askShards,
  DATABASE,
  NEXT_DATABASE,
  type Stage,
  startShards,
  writeConfig,
} from './stage.js'
import { Story, type StoryOutput } from './story.js'
import { UndoList } from './undo-list.js'

const SHARDS = 4
const NEXT_SHARDS = 6

export interface DemoOptions {
  /** Number of customers; each has four orders. */
  customers: number
  /** bin/run.js of this installation. */
  program: string
  output: StoryOutput
  clock: Clock
  signal: AbortSignal
}

export interface DemoReport {
  rows: number
  checks: number
  elapsed_ms: number
  rows_copied: number
  changes_applied: number
  write_pause_ms: number | null
}

interface Files {
  customers: MadeFile
  orders: MadeFile
}

/** Plays the demo; resolves when everything is ended again. @throws DEMO_CHECK, INTERRUPTED, or what a step threw */
export async function playDemo(options: DemoOptions): Promise<DemoReport> {
  const { clock, signal, output } = options
  const begin = clock.monotonicMs()
  const directory = mkdtempSync(join(sharedTemporaryDirectory(serverUser()), 'pgshard-demo-'))
  chmodSync(directory, 0o755) // the servers may run as another user
  const undo = new UndoList()
  const guardian = startGuardian(directory)
  undo.add('the directory of the demo', () => guardian.release())
  const story = new Story(output)
  const stage: Stage = {
    directory,
    program: options.program,
    customers: options.customers,
    story,
    clock,
    signal,
    undo,
    guardian,
    configPath: join(directory, 'pgdog.toml'),
    usersPath: join(directory, 'users.toml'),
  }
  let failures: string[] = []
  let report: DemoReport
  try {
    const result = await untilAborted(playSteps(stage), signal)
    report = { ...result, elapsed_ms: 0, checks: 0 }
  } finally {
    story.status('ending what was started')
    failures = await undo.run()
    for (const failure of failures) story.plain(`could not end ${failure}`)
  }
  Object.assign(report, {
    checks: story.checks,
    elapsed_ms: Math.round(clock.monotonicMs() - begin),
  })
  story.plain('')
  story.plain(
    story.strong(
      `Done in ${formatDuration(report.elapsed_ms)}: ${report.checks} checks held, everything is stopped and removed.`,
    ),
  )
  whatNext(story)
  return report
}

/** The work, or INTERRUPTED as soon as the signal comes; what is still under way is cut off by the undoing. */
async function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let stop = (): void => undefined
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(engineError('INTERRUPTED', { what: 'demo' }))
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop, { once: true })
  })
  try {
    return await Promise.race([work, aborted])
  } finally {
    signal.removeEventListener('abort', stop)
    work.catch(() => undefined)
  }
}

type Steps = Omit<DemoReport, 'checks' | 'elapsed_ms'>

async function playSteps(stage: Stage): Promise<Steps> {
  const { story } = stage
  story.title(
    `pgshard demo: one database on ${SHARDS} shards, then on ${NEXT_SHARDS}, without stopping`,
    `real PostgreSQL servers, a proxy and ${formatCount(stage.customers * 5)} rows, in ${stage.directory}`,
  )
  const cluster = await story.step(`Start ${SHARDS} PostgreSQL servers`, () => startServers(stage))
  const files = await story.step('Make the data', () => makeData(stage))
  writeConfig(stage, [[DATABASE, cluster]])
  await story.step('Load it, each row to its shard (pgshard copy-shard)', () =>
    loadFiles(stage, cluster, [files.customers, files.orders]),
  )
  const proxy = await story.step('Start the proxy (pgshard serve)', () => openProxy(stage))
  await story.step('Ask through the proxy as if it were one database', () =>
    askThroughProxy(stage, proxy, cluster, files),
  )
  await story.step('Measure it (pgshard bench)', () => driveLoad(stage, proxy))
  const moved = await story.step(
    `Move from ${SHARDS} shards to ${NEXT_SHARDS} while clients write (pgshard reshard)`,
    async () => {
      const next = await addServers(stage, proxy, cluster)
      return reshardUnderWrites(stage, proxy, next, files)
    },
  )
  await story.step('Stop the proxy', () => closeProxy(stage, proxy))
  return {
    rows: files.customers.rows + files.orders.rows,
    rows_copied: moved.rowsCopied,
    changes_applied: moved.changesApplied,
    write_pause_ms: moved.cutover?.writePauseMs ?? null,
  }
}

async function startServers(stage: Stage): Promise<Cluster> {
  const cluster = await startShards(stage, 'old', SHARDS)
  const ports = cluster.servers.map(({ port }) => port).join(', ')
  stage.story.line(`PostgreSQL ${cluster.version} on 127.0.0.1, ports ${ports}`)
  await askShards(cluster, schemaSql)
  stage.story.line('tables customers (sharded by id) and orders (by customer_id) on each')
  return cluster
}

async function makeData(stage: Stage): Promise<Files> {
  const { story, directory, customers } = stage
  const files = {
    customers: await writeCustomers(join(directory, 'customers.csv'), customers),
    orders: await writeOrders(join(directory, 'orders.csv'), customers),
  }
  story.facts([
    [
      'customers.csv',
      `${formatCount(files.customers.rows)} rows, ${formatBytes(files.customers.bytes)}`,
    ],
    ['orders.csv', `${formatCount(files.orders.rows)} rows, ${formatBytes(files.orders.bytes)}`],
    ['made to hurt', 'quotes, newlines, tabs, backslashes, \\. and \\N, many scripts, NULL beside'],
    ['', 'the empty string, negative keys, keys of 64 bits'],
  ])
  return files
}

async function openProxy(stage: Stage): Promise<ProxyProcess> {
  const proxy = await startProxy({
    program: stage.program,
    configPath: stage.configPath,
    usersPath: stage.usersPath,
    clock: stage.clock,
    onStarted: (pid) => stage.guardian.note(pid),
  })
  stage.undo.add('the proxy', () => proxy.stop())
  stage.story.line(`database "${DATABASE}" on 127.0.0.1:${proxy.port}, process ${proxy.pid}`)
  return proxy
}

/** Six more servers, made known to the running proxy. */
async function addServers(stage: Stage, proxy: ProxyProcess, cluster: Cluster): Promise<Cluster> {
  const next = await startShards(stage, 'new', NEXT_SHARDS)
  const ports = next.servers.map(({ port }) => port).join(', ')
  stage.story.line(`${NEXT_SHARDS} new servers, ports ${ports}`)
  writeConfig(stage, [
    [DATABASE, cluster],
    [NEXT_DATABASE, next],
  ])
  proxy.reload()
  return next
}

async function closeProxy(stage: Stage, proxy: ProxyProcess): Promise<void> {
  const code = await proxy.stop()
  stage.story.check(
    code === 0,
    'it finished what it was doing and ended with 0',
    `${code}\n${proxy.log}`,
  )
}

function whatNext(story: Story): void {
  story.plain('')
  story.plain('Try next:')
  const commands = [
    ['pgshard cluster start --shards 4', 'servers of your own, with a pgdog.toml to edit'],
    ['pgshard serve --config .pgshard/pgdog.toml', 'the proxy in front of them'],
    ['pgshard copy-shard --help', 'load files'],
    ['pgshard reshard run --help', 'move live data'],
    ["pgshard route 'SELECT …'", 'where a statement would go, and why'],
  ]
  for (const [command, what] of commands) story.line(`${command!.padEnd(46)}${what}`)
}
