import type pg from 'pg'
import { afterEach, describe, expect, test } from 'vitest'
import { type Served, startServe } from '../../support/serve.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'
import { askConsole } from '../../support/workers.js'

const postgres = usePostgres()
const clients: pg.Client[] = []
afterEach(async () => {
  for (const client of clients.splice(0)) await client.end().catch(() => undefined)
})

async function serve(...general: string[]): Promise<Served> {
  const [at] = postgres().servers
  if (!at) throw new Error('no server')
  const shards = [{ host: at.host, port: at.port, database: postgres().database }]
  return startServe({ shards, general: ['log_format = "json"', ...general] })
}

async function connect(served: Served): Promise<pg.Client> {
  const client = await served.connect()
  clients.push(client)
  return client
}

/** Lines of the log with this message. */
const lines = (served: Served, message: string): Record<string, unknown>[] =>
  served.program.stderr
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line))
    .filter(({ msg }) => msg === message)

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'

describe('log', () => {
  test('slow statements are said without their literals, with the trace of their comment', async () => {
    const served = await serve('log_min_duration_statement = 200')
    const client = await connect(served)
    await client.query('SELECT 1')
    const comment = `/*app='x',traceparent='00-${TRACE}-00f067aa0ba902b7-01'*/`
    await client.query(`SELECT pg_sleep(0.3), 'secret' ${comment}`)
    await waitFor(() => lines(served, 'slow statement').length > 0)
    const [line, ...more] = lines(served, 'slow statement')
    expect(more).toEqual([])
    expect(line).toMatchObject({ user: 'postgres', database: 'app', traceId: TRACE, shard: 0 })
    expect(line?.['statement']).toBe('SELECT pg_sleep(?), ?')
    expect(line?.['durationMs']).toBeGreaterThanOrEqual(300)
    expect(served.program.stderr).not.toContain('secret')
  })

  test('a sample of none says none', async () => {
    const served = await serve('log_min_duration_statement = 0', 'log_statement_sample_rate = 0.0')
    const client = await connect(served)
    await client.query('SELECT 1')
    await client.end()
    await waitFor(() => lines(served, 'client disconnected').length > 0)
    expect(lines(served, 'slow statement')).toEqual([])
  })

  test('clients that come and go are said, or not', async () => {
    const served = await serve()
    const client = await connect(served)
    await client.query('SELECT 1')
    await client.end()
    await waitFor(() => lines(served, 'client disconnected').length > 0)
    expect(lines(served, 'client connected')[0]).toMatchObject({ user: 'postgres', tls: false })
    expect(lines(served, 'client disconnected')[0]).toMatchObject({ database: 'app', queries: 1 })
    const quiet = await serve('log_connections = false', 'log_disconnections = false')
    const other = await connect(quiet)
    await other.query('SELECT 1')
    await other.end()
    await waitFor(async () => (await askConsole(quiet, 'SHOW CLIENTS')).length === 1)
    expect(lines(quiet, 'client connected')).toEqual([])
    expect(lines(quiet, 'client disconnected')).toEqual([])
  })

  test('parsing that takes longer than log_min_duration_parse is said', async () => {
    const served = await serve('log_min_duration_parse = 0')
    const client = await connect(served)
    await client.query("SELECT 1 AS parsed, 'secret'")
    await waitFor(() =>
      lines(served, 'slow parse').some(({ statement }) => String(statement).includes('parsed')),
    )
    expect(served.program.stderr).not.toContain('secret')
  })

  test('equal lines are counted within log_dedup_window', async () => {
    const served = await serve('log_dedup_window = 1500', 'log_min_duration_parse = 0')
    const client = await connect(served)
    // lines differ in their duration, so what is equal here are those of the console's reloads
    for (let i = 0; i < 5; i++) await askConsole(served, 'RELOAD')
    await client.query('SELECT 1')
    await waitFor(() =>
      lines(served, 'configuration reloaded').some(({ repeated }) => repeated === 4),
    )
    expect(lines(served, 'configuration reloaded')).toHaveLength(2)
  })
})

describe('prepared statements', () => {
  test('prepared_statements_ttl closes them on servers, and they are made again', async () => {
    const served = await serve(
      'prepared_statements_ttl = 300',
      'prepared_statements_ttl_jitter = 0',
    )
    const client = await connect(served)
    const ask = () => client.query({ name: 'p', text: 'SELECT $1::int AS x', values: [5] })
    await ask()
    const kept = async () => {
      const rows = await askConsole(served, 'SHOW SERVERS')
      return rows.reduce((sum, row) => sum + Number(row['prepared_statements']), 0)
    }
    expect(await kept()).toBe(1)
    await waitFor(async () => (await kept()) === 0)
    expect((await ask()).rows).toEqual([{ x: 5 }])
  })
})
