import type pg from 'pg'
import { afterEach, describe, expect, test } from 'vitest'
import type { Served } from '../../support/serve.js'
import { startServe } from '../../support/serve.js'
import { type ReadFamily, readOpenMetrics, sampleValue } from '../../support/strict-open-metrics.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'
import { askConsole } from '../../support/workers.js'
import { useShardedRig } from '../session/sharded-rig.js'

const PORTS = ['openmetrics_port = 0', 'openmetrics_host = "127.0.0.1"', 'healthcheck_port = 0']
const QUIET = ['idle_healthcheck_interval = 0', 'min_pool_size = 0']

async function portOf(served: Served, what: 'metrics' | 'health'): Promise<number> {
  const line = await served.program.waitForOutput(new RegExp(`${what} over HTTP .*port=(\\d+)`))
  return Number(line[1])
}

async function scrape(served: Served): Promise<ReadFamily[]> {
  const answer = await fetch(`http://127.0.0.1:${await portOf(served, 'metrics')}/metrics`)
  expect(answer.status).toBe(200)
  expect(answer.headers.get('content-type')).toContain('application/openmetrics-text')
  return readOpenMetrics(await answer.text())
}

const clients: pg.Client[] = []
afterEach(async () => {
  for (const client of clients.splice(0)) await client.end().catch(() => undefined)
})

async function connect(served: Served): Promise<pg.Client> {
  const client = await served.connect()
  clients.push(client)
  return client
}

describe('metrics of three shards', () => {
  const rig = useShardedRig([...PORTS, ...QUIET, 'stats_period = 200'])

  test('D204, D207: a scrape is OpenMetrics; ten transactions of three queries count 10 and 30', async () => {
    const { served, key } = rig()
    const client = await connect(served)
    const shard = { shard: '1' }
    await client.query('SELECT * FROM item WHERE k = $1', [key(1)])
    const before = await scrape(served)
    for (let i = 0; i < 10; i++) {
      await client.query('BEGIN')
      await client.query(`UPDATE item SET v = 'x' WHERE k = ${key(1)}`)
      await client.query('COMMIT')
    }
    const after = await scrape(served)
    const grown = (name: string) =>
      sampleValue(after, name, shard) - sampleValue(before, name, shard)
    expect([grown('total_xact_count'), grown('total_query_count')]).toEqual([10, 30])
    expect(grown('total_writes')).toBe(10)
    expect(grown('total_errors')).toBe(0)
  })

  test('D182, D206: each figure moves as the session says', async () => {
    const { served, key } = rig()
    const client = await connect(served)
    const before = await scrape(served)
    await client.query({ name: 'r', text: 'SELECT 1 FROM item WHERE k = $1', values: [key(0)] })
    await client.query({ name: 'r', text: 'SELECT 1 FROM item WHERE k = $1', values: [key(0)] })
    await client.query('INSERT INTO item VALUES ($1, 700), ($1, 701), ($1, 702)', [key(0)])
    await client.query('UPDATE item SET v = 2 WHERE k = $1 AND id < 702', [key(0)])
    await client.query('DELETE FROM item WHERE k = $1 AND id = 702', [key(0)])
    await client.query('BEGIN')
    await client.query('DELETE FROM item WHERE k = $1', [key(0)])
    await client.query('ROLLBACK')
    await client.query('BEGIN')
    await client.query('INSERT INTO item VALUES ($1, 800)', [key(0)])
    await client.query('INSERT INTO item VALUES ($1, 800)', [key(1)])
    await client.query('COMMIT')
    await expect(client.query('SELECT 1/0 FROM item WHERE k = $1', [key(0)])).rejects.toThrow()
    const after = await scrape(served)
    const grown = (name: string, labels: Record<string, string> = {}) =>
      sampleValue(after, name, labels) - (before.length > 0 ? sampleOr0(before, name, labels) : 0)
    const ofFirst = (name: string) => grown(name, { shard: '0' })
    expect({
      inserted: ofFirst('total_rows_inserted'),
      updated: ofFirst('total_rows_updated'),
      deleted: ofFirst('total_rows_deleted'),
      rollbacks: ofFirst('total_rollbacks'),
      twoPhase: grown('total_xact_2pc_count'),
      server_errors: ofFirst('total_server_errors'),
      reads: ofFirst('total_reads'),
      writes: ofFirst('total_writes'),
    }).toEqual({
      inserted: 4,
      updated: 2,
      deleted: 3,
      rollbacks: 1,
      twoPhase: 1,
      server_errors: 1,
      reads: 2,
      writes: 5,
    })
    expect(ofFirst('total_prepared_hits')).toBeGreaterThanOrEqual(1)
    expect(ofFirst('total_prepared_misses')).toBeGreaterThanOrEqual(1)
    const positive = ['received', 'sent', 'reads', 'writes', 'connect_count', 'connect_time']
    for (const name of [...positive, 'query_time', 'xact_time', 'idle_xact_time'])
      expect([name, sampleValue(after, `total_${name}`) > 0]).toEqual([name, true])
  })

  test('requests are timed by shard and class of statement', async () => {
    const { served, key } = rig()
    const client = await connect(served)
    const count = (families: ReadFamily[], labels: Record<string, string>) =>
      sampleOr0(families, 'request_duration_seconds_count', labels)
    const before = await scrape(served)
    for (let i = 0; i < 3; i++) await client.query(`SELECT v FROM item WHERE k = ${key(2)}`)
    await client.query('UPDATE item SET v = 1 WHERE k = $1', [key(2)])
    await client.query('SELECT k FROM item')
    await client.query('SELECT k FROM item ORDER BY k')
    await client.query('SELECT a.k FROM item a JOIN item b ON a.id = b.id')
    await client.query('SET application_name = x')
    const after = await scrape(served)
    const grown = (shard: string, name: string) =>
      count(after, { shard, class: name }) - count(before, { shard, class: name })
    expect({
      read: grown('2', 'read'),
      write: grown('2', 'write'),
      scatter: grown('several', 'scatter'),
      merge: grown('several', 'merge'),
      gather: grown('several', 'gather'),
      control: grown('several', 'control'),
    }).toEqual({ read: 3, write: 1, scatter: 1, merge: 1, gather: 1, control: 1 })
    await client.query('BEGIN')
    for (const shard of [0, 1]) await client.query('INSERT INTO late2 VALUES ($1)', [key(shard)])
    await client.query('COMMIT')
    const last = await scrape(served)
    const twoPhase = (families: ReadFamily[]) => count(families, { class: 'two_phase' })
    expect(twoPhase(last) - twoPhase(after)).toBe(1)
  })

  test('D209: what went to clients and what went over servers is counted apart', async () => {
    const { served } = rig()
    const client = await connect(served)
    const before = await scrape(served)
    await client.query("SELECT repeat('x', 100000) AS v FROM country")
    const after = await scrape(served)
    const grown = (name: string) => sampleValue(after, name) - sampleOr0(before, name)
    expect(grown('client_sent_bytes_total')).toBeGreaterThan(200_000)
    expect(grown('client_received_bytes_total')).toBeLessThan(5000)
    expect(grown('total_received')).toBeGreaterThan(200_000)
    const [clientRow] = await askConsole(served, 'SHOW CLIENTS')
    const servers = await askConsole(served, 'SHOW SERVERS')
    expect(Number(clientRow?.['bytes_sent'])).toBeGreaterThan(200_000)
    const received = servers.reduce((sum, row) => sum + Number(row['bytes_received']), 0)
    expect(received).toBeGreaterThan(200_000)
  })

  test('averages are those of the last stats_period', async () => {
    const { served, key } = rig()
    const client = await connect(served)
    await waitFor(async () => {
      for (let i = 0; i < 20; i++) await client.query(`SELECT v FROM item WHERE k = ${key(1)}`)
      return sampleValue(await scrape(served), 'avg_query_count', { shard: '1' }) > 0
    })
    // nobody asks any more: a whole period without work brings them back to nothing
    await waitFor(
      async () => sampleValue(await scrape(served), 'avg_query_count', { shard: '1' }) === 0,
    )
    expect(sampleValue(await scrape(served), 'total_query_count', { shard: '1' })).toBeGreaterThan(
      20,
    )
  })
})

describe('metrics of two workers', () => {
  const postgres = usePostgres()

  test('D204: one scrape is the sum over all workers', async () => {
    const { servers, database } = postgres()
    const [at] = servers
    if (!at) throw new Error('no server')
    const served = await startServe({
      shards: [{ ...at, database }],
      general: [...PORTS, ...QUIET, 'default_pool_size = 8', 'openmetrics_namespace = "db_"'],
      args: ['--workers', '2'],
    })
    const many = await Promise.all(Array.from({ length: 12 }, () => connect(served)))
    for (const client of many) for (let i = 0; i < 5; i++) await client.query('SELECT 1 AS x')
    const families = await scrape(served)
    expect(sampleValue(families, 'db_clients')).toBe(12)
    expect(sampleValue(families, 'db_client_queries_total')).toBe(60)
    expect(sampleValue(families, 'db_request_duration_seconds_count', { class: 'read' })).toBe(60)
    expect(families.find(({ name }) => name === 'db_worker_up')?.samples).toHaveLength(2)
    const perWorker = await askConsole(served, 'SHOW WORKERS')
    // both have had clients, or the sum would prove nothing
    expect(perWorker.map((row) => Number(row['clients']) > 0)).toEqual([true, true])
  })
})

describe('health', () => {
  const postgres = usePostgres({ own: true })

  async function health(general: readonly string[] = []) {
    const { servers, database } = postgres()
    const [at] = servers
    if (!at) throw new Error('no server')
    const served = await startServe({
      shards: [{ host: at.host, port: at.port, database }],
      general: [...PORTS, ...general],
    })
    const port = await portOf(served, 'health')
    const status = async () => (await fetch(`http://127.0.0.1:${port}/`)).status
    return { served, status, pid: at.pid }
  }

  test('503 while it drains, so that no new client is sent here', async () => {
    const { served, status } = await health()
    const client = await connect(served)
    client.on('error', () => undefined)
    await client.query('BEGIN')
    await client.query('SELECT 1')
    expect(await status()).toBe(200)
    served.program.signal('SIGTERM')
    await waitFor(async () => (await status()) === 503)
    await client.query('COMMIT')
  })

  test('D208: 200 while a shard can be reached, 503 when none can', async () => {
    const checks = ['idle_healthcheck_interval = 100', 'idle_healthcheck_delay = 0']
    const { status, pid } = await health(checks)
    expect(await status()).toBe(200)
    process.kill(pid, 'SIGKILL')
    await waitFor(async () => (await status()) === 503)
  })
})

function sampleOr0(
  families: readonly ReadFamily[],
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number {
  try {
    return sampleValue(families, name, labels)
  } catch {
    return 0
  }
}
