/** The demo moves the database from four shards to six while clients write, by the engine of reshard. */
import { silentLog } from '../base/log.js'
import { formatBytes, formatCount, formatDuration } from '../cli/render.js'
import type { Cluster } from '../cluster/cluster.js'
import { loadConfig } from '../config/load-config.js'
import type { HostTarget } from '../pg/host-client.js'
import { ConsoleGate } from '../reshard/cutover/console-gate.js'
import { configSwitch } from '../reshard/cutover/switch-config.js'
import { type RunReport, runReshard } from '../reshard/reshard.js'
import type { ReshardSide } from '../reshard/side.js'
import type { MadeFile } from './data-set.js'
import type { ProxyProcess } from './proxy-process.js'
import { differencesOf, digestOf } from './query-step.js'
import { ADMIN, askShards, DATABASE, NEXT_DATABASE, type Stage, USER, withProxy } from './stage.js'
import { expectedRows, Writers } from './writers.js'

const BUDGET_MS = 2000

function sideOf(stage: Stage, database: string): ReshardSide {
  const config = loadConfig({ configPath: stage.configPath, usersPath: stage.usersPath, env: {} })
  const topology = config.databases.find(({ name }) => name === database)!
  const shards = topology.shards.map(({ hosts }): HostTarget => {
    const primary = hosts[0]!
    const { host, port } = primary
    return { host, port, database: primary.database, user: USER, password: '' }
  })
  return { name: database, shards, sharding: config.sharding.get(database)! }
}

async function move(stage: Stage, proxy: ProxyProcess, writers: Writers): Promise<RunReport> {
  const { clock, story } = stage
  const console: HostTarget = { host: proxy.host, port: proxy.port, ...ADMIN }
  return runReshard({
    source: sideOf(stage, DATABASE),
    target: sideOf(stage, NEXT_DATABASE),
    gate: new ConsoleGate(console, clock),
    config: configSwitch(stage.configPath, DATABASE, NEXT_DATABASE),
    clock,
    log: silentLog,
    listener: {
      step: (text) =>
        story.line(`${formatCount(writers.total).padStart(7)} writes so far · ${text}`),
      copied: (table, bytes) => story.status(`copying ${table}: ${formatBytes(bytes)}`),
    },
    jobs: 1,
    budgetMs: BUDGET_MS,
    verifyHoldMs: 1000,
    signal: stage.signal,
  })
}

/** Moves, lets the writers go on for a moment on the new shards, and compares everything. */
export async function reshardUnderWrites(
  stage: Stage,
  proxy: ProxyProcess,
  next: Cluster,
  files: { customers: MadeFile; orders: MadeFile },
): Promise<RunReport> {
  const { story, clock } = stage
  const expected = { customers: files.customers.digest, orders: files.orders.digest }
  const writers = new Writers(stage, proxy, expected)
  await writers.start()
  let report: RunReport
  const atSwitch = { writes: 0 }
  try {
    report = await move(stage, proxy, writers)
    atSwitch.writes = writers.total
    // so that writes are seen on the new shards too, on a slow machine as well
    for (
      let waited = 0;
      waited < 700 || (writers.total === atSwitch.writes && waited < 15_000);
      waited += 100
    )
      await clock.sleep(100, stage.signal)
  } finally {
    await writers.stop()
  }
  const { counts } = writers
  story.facts([
    ['copied', `${formatCount(report.rowsCopied)} rows, ${formatBytes(report.bytesCopied)}`],
    ['followed', `${formatCount(report.changesApplied)} changes applied while the data moved`],
    [
      'written by clients',
      `${formatCount(counts.updated)} updates, ${formatCount(counts.inserted)} inserts, ${formatCount(counts.deleted)} deletes, ${formatCount(writers.total - atSwitch.writes)} of them after the switch`,
    ],
    [
      'write pause',
      `${formatDuration(report.cutover?.writePauseMs ?? 0)} at the switch (budget ${formatDuration(BUDGET_MS)})`,
    ],
    [
      'longest wait',
      `${formatDuration(counts.longestGapMs)} between two writes of one client, the switch included`,
    ],
  ])
  story.check(
    counts.failed.length === 0,
    counts.retried === 0
      ? 'no write failed'
      : `no write failed; ${counts.retried} that waited through the switch were told to run again (40001)`,
    counts.failed.slice(0, 3).join('\n'),
  )
  story.check(writers.total > atSwitch.writes, 'clients went on writing on the new shards')
  await compareAll(stage, proxy, next, writers, expected)
  return report
}

async function compareAll(
  stage: Stage,
  proxy: ProxyProcess,
  next: Cluster,
  writers: Writers,
  expected: { customers: MadeFile['digest']; orders: MadeFile['digest'] },
): Promise<void> {
  const { story } = stage
  const tables = ['customers', 'orders'] as const
  const counts = await Promise.all(
    tables.map((table) => askShards(next, `SELECT count(*) AS n FROM ${table}`)),
  )
  const rows = counts.map((shards) => shards.map(([row]) => Number(row?.['n'])))
  story.table(
    ['table', ...next.servers.map(({ shard }) => `shard ${shard}`), 'in all'],
    tables.map((table, index) => [
      table,
      ...rows[index]!,
      rows[index]!.reduce((sum, count) => sum + count, 0),
    ]),
  )
  for (const [index, table] of tables.entries()) {
    const sum = rows[index]!.reduce((total, count) => total + count, 0)
    story.check(
      sum === expected[table].rows,
      `${table}: loaded + inserted − deleted = ${formatCount(sum)} = sum of the six shards`,
      `${sum} and not ${expected[table].rows}`,
    )
    story.status(`reading all ${table}`)
    const wrong = await withProxy(proxy, async (client) => {
      const found = await digestOf(client, table)
      if (found.equals(expected[table])) return undefined
      return differencesOf(client, table, expectedRows(table, stage.customers, writers.changed))
    })
    story.check(
      wrong === undefined,
      `${table}: every row through the proxy is as the clients were told`,
      wrong,
    )
  }
}
