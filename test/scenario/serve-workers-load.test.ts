/** Usual work through several workers: recorded conversations, pgbench, a schema that changes; and what one process can do. */
import { spawn, spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type pg from 'pg'
import { describe, expect, it } from 'vitest'
import { projectRoot, runCliJson } from '../support/run-cli.js'
import { type Served, startServe } from '../support/serve.js'
import { bySize } from '../support/test-size.js'
import { findTool, isMissing } from '../support/tools.js'
import { usePostgres } from '../support/use-postgres.js'
import { waitFor } from '../support/wait-for.js'
import {
  askConsole,
  cpuMsOf,
  endAll,
  openClient,
  startWorkers,
  workerOf,
} from '../support/workers.js'

const postgres = usePostgres({ version: 15, own: true })
const server = () => ({ host: '127.0.0.1', port: postgres().servers[0]?.port ?? 0 })

/** Its output; fails with it when it ends in an error. */
function pgbench(port: number, database: string, args: readonly string[]): Promise<string> {
  const child = spawn(findTool('pgbench') ?? 'pgbench', [
    ...['-h', '127.0.0.1', '-p', String(port), '-U', 'postgres'],
    ...args,
    database,
  ])
  let output = ''
  const keep = (chunk: Buffer) => {
    output += chunk.toString()
  }
  child.stdout.on('data', keep)
  child.stderr.on('data', keep)
  return new Promise((resolve, reject) => {
    child.once('close', (code) => (code === 0 ? resolve(output) : reject(new Error(output))))
  })
}

it('recorded conversations end with a pool of four and two workers as with one process', async () => {
  const folder = join(projectRoot, 'fixtures/wire/proto')
  const files = readdirSync(folder).filter((name) => name.endsWith('.json'))
  const play = async (workers: number) => {
    const served = await startServe({
      shards: [{ ...server(), database: 'postgres' }],
      // The conversations name user and database postgres.
      database: 'postgres',
      general: ['default_pool_size = 4'],
      args: ['--workers', String(workers)],
    })
    const { stdout } = spawnSync(
      process.execPath,
      [
        join(projectRoot, 'fixtures/wire/play-wire.mjs'),
        ...['--port', String(served.port), '--direct-port', String(server().port)],
        ...files.map((name) => join(folder, name)),
      ],
      { encoding: 'utf8' },
    )
    await served.program.stop()
    return stdout
  }
  const alone = await play(1)
  expect(alone).toMatch(new RegExp(`\\b${files.length} passed, 0 failed`))
  expect(await play(2)).toBe(alone)
})

it('B12: a server goes back when its transaction ends, and serves the next client', async () => {
  const served = await startWorkers(postgres(), undefined, ['default_pool_size = 1'])
  const clients = [await openClient(served), await openClient(served)]
  const pids = []
  for (let turn = 0; turn < 6; turn++) {
    const { rows } = await clients[turn % 2]!.query(
      'BEGIN; SELECT pg_backend_pid() AS pid; COMMIT',
    ).then((results) => (results as unknown as pg.QueryResult[])[1]!)
    pids.push(rows[0].pid)
  }
  expect(new Set(pids).size).toBe(1)
  await endAll(clients)
  await served.program.stop()
})

describe.skipIf(isMissing('pgbench'))('pgbench', () => {
  it('fails nothing through two workers, in any protocol', async () => {
    await pgbench(server().port, postgres().database, ['-i', '-q', '-s', '1'])
    const served = await startWorkers(postgres(), 2, ['default_pool_size = 8'])
    const seconds = bySize(1, 10)
    for (const how of [
      ['-M', 'simple'],
      ['-M', 'extended'],
      ['-S', '-M', 'prepared', '-j', '8'],
    ]) {
      const output = await pgbench(served.port, 'app', [
        '-n',
        '-c',
        '8',
        '-T',
        String(seconds),
        ...how,
      ])
      expect(output).toMatch(/number of failed transactions: 0 /)
      expect(Number(/actually processed: (\d+)/.exec(output)?.[1])).toBeGreaterThan(0)
    }
    const errors = await askConsole(served, 'SHOW POOLS')
    expect(errors.map((row) => row['errors'])).toEqual(['0', '0'])
    // Both have worked.
    for (const row of await askConsole(served, 'SHOW STATS'))
      expect(Number(row['total_query_count'])).toBeGreaterThan(0)
    await served.program.stop()
  })

  it('B1, B2: one process under load uses one core at most, however many there are', async () => {
    const served = await startWorkers(postgres(), undefined, ['default_pool_size = 8'])
    const before = cpuMsOf(served.program.pid)
    const begun = performance.now()
    await pgbench(served.port, 'app', ['-n', '-S', '-c', '8', '-T', String(bySize(1, 5))])
    const share = (cpuMsOf(served.program.pid) - before) / (performance.now() - begun)
    // Collecting garbage and compiling have threads of their own.
    expect(share).toBeLessThan(1.35)
    await served.program.stop()
  })

  it('B30: bench shows what the proxy costs beside the same server without it', async () => {
    const { database } = postgres()
    await pgbench(server().port, database, ['-i', '-q', '-s', '1'])
    const served = await startServe({ shards: [{ ...server(), database }], database })
    const hosts = `host=127.0.0.1,127.0.0.1 port=${server().port},${served.port} user=postgres dbname=${database} load_balance_hosts=random`
    const report = await runCliJson<{ nodes: { tps: number; p50: number }[] }>([
      ...['bench', 'run', '-n', '-S', '-c', '8', '-t', String(bySize(50, 500)), '--seed', '1'],
      hosts,
    ])
    expect(report.nodes).toHaveLength(2)
    for (const node of report.nodes) expect(node.tps).toBeGreaterThan(0)
    // far from what it costs, and far from what a wait in every answer would cost
    const [direct, proxied] = report.nodes.map(({ p50 }) => p50) as [number, number]
    expect(proxied).toBeLessThan(10 * direct + 10)
    await served.program.stop()
  })
})

it('a statement that changes the schema in one worker is known to the others', async () => {
  const second = await postgres().createDatabase()
  const { database } = postgres()
  const served: Served = await startServe({
    shards: [
      { ...server(), database },
      { ...server(), database: second },
    ],
    general: ['default_pool_size = 4'],
    tables:
      '[[sharded_tables]]\ndatabase = "app"\nname = "born"\ncolumn = "id"\ndata_type = "bigint"\n',
    args: ['--workers', '2'],
  })
  const clients = await Promise.all([1, 2, 3, 4].map(() => openClient(served)))
  const owners = await Promise.all(clients.map((client) => workerOf(served, client)))
  const maker = clients[owners.indexOf(0)]!
  const reader = clients[owners.indexOf(1)]!
  await expect(reader.query('INSERT INTO born VALUES (1)')).rejects.toThrow()
  for (const shard of [0, 1])
    await maker.query(`/* pgshard_shard: ${shard} */ CREATE TABLE born (id bigint PRIMARY KEY)`)
  // The catalogue is read again a moment later, by each worker.
  await waitFor(async () => (await reader.query('INSERT INTO born VALUES (1)')).rowCount === 1)
  expect((await maker.query('SELECT count(*)::int AS n FROM born WHERE id = 1')).rows).toEqual([
    { n: 1 },
  ])
  await endAll(clients)
  await served.program.stop()
})

it('a reload that moves shards takes effect in all workers at one moment', async () => {
  const second = await postgres().createDatabase()
  const { database } = postgres()
  const client = await postgres().connect()
  const other = await postgres().connect(0, second)
  for (const one of [client, other]) {
    await one.query('CREATE TABLE moved (id bigint PRIMARY KEY)')
    await one.query('INSERT INTO moved SELECT generate_series(1, 20)')
  }
  const served = await startServe({
    shards: [
      { ...server(), database },
      { ...server(), database: second },
    ],
    general: ['default_pool_size = 6'],
    tables:
      '[[sharded_tables]]\ndatabase = "app"\nname = "moved"\ncolumn = "id"\ndata_type = "bigint"\n',
    args: ['--workers', '2'],
  })
  const clients = await Promise.all([1, 2, 3, 4, 5, 6].map(() => openClient(served)))
  const heard: { begunMs: number; endedMs: number; from: string }[] = []
  let runs = true
  const ask = async (one: pg.Client) => {
    while (runs) {
      const begunMs = performance.now()
      const { rows } = await one.query('SELECT current_database() AS at FROM moved WHERE id = 7')
      heard.push({ begunMs, endedMs: performance.now(), from: rows[0].at })
    }
  }
  const asking = Promise.all(clients.map(ask))
  const swap = (text: string) =>
    text
      .replaceAll(`database_name = "${database}"`, 'database_name = "swapped"')
      .replaceAll(`database_name = "${second}"`, `database_name = "${database}"`)
      .replaceAll('database_name = "swapped"', `database_name = "${second}"`)
  for (let i = 0; i < bySize(3, 20); i++) {
    const before = heard.length
    await waitFor(() => heard.length > before + 30)
    writeFileSync(served.configPath, swap(readFileSync(served.configPath, 'utf8')))
    await askConsole(served, 'RELOAD')
  }
  await waitFor(() => new Set(heard.slice(-30).map(({ from }) => from)).size === 1)
  runs = false
  await asking
  // Once anybody has heard from the new place, nobody who asks then hears from the old one.
  const sorted = heard.toSorted((a, b) => a.endedMs - b.endedMs)
  let moves = 0
  let now = sorted[0]
  let turnedMs = 0
  for (const one of sorted) {
    // Asked before the first answer from the new place: may have been answered before it, too.
    if (one.from === now?.from || one.begunMs < turnedMs) continue
    moves++
    now = one
    turnedMs = one.endedMs
  }
  expect(moves).toBe(bySize(3, 20))
  await endAll(clients)
  await served.program.stop()
})
