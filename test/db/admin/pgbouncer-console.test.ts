/**
 * The console's database `pgbouncer`, for what was made for PgBouncer: held against a running PgBouncer, and asked as
 * prometheus' pgbouncer_exporter asks, over one and over two workers.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { chmodSync, mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { freePort } from '../../support/free-port.js'
import { type Served, startServe } from '../../support/serve.js'
import { findTool, isMissing } from '../../support/tools.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'

const postgres = usePostgres({ version: 15 })
const shards: string[] = []

beforeAll(async () => {
  for (let shard = 0; shard < 2; shard++) {
    const database = await postgres().createDatabase()
    shards.push(database)
    const client = await postgres().connect(0, database)
    await client.query('CREATE TABLE item (k bigint PRIMARY KEY)')
    await client.end()
  }
})

const serveShards = (workers: number): Promise<Served> =>
  startServe({
    shards: shards.map((database) => ({
      host: '127.0.0.1',
      port: postgres().servers[0]?.port ?? 0,
      database,
    })),
    tables: '[[sharded_tables]]\ndatabase = "app"\nname = "item"\ncolumn = "k"',
    args: workers > 1 ? ['--workers', String(workers)] : [],
  })

async function openAs(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => undefined)
  await client.connect()
  return client
}

const consoleOf = (served: Served) => openAs(served.adminUrl.replace(/pgshard$/, 'pgbouncer'))

type Row = Record<string, string | number | null>

const TABLES =
  'clients servers pools stats stats_totals stats_averages totals databases users config lists'.split(
    ' ',
  )

/** What the exporter makes series of: labels, and columns that must be numbers. */
const SERIES = {
  databases: {
    labels: ['name', 'host', 'port', 'database', 'force_user', 'pool_mode'],
    values: 'pool_size reserve_pool_size max_connections current_connections paused disabled',
  },
  stats_totals: {
    labels: ['database'],
    values:
      'query_count query_time bytes_received bytes_sent wait_time xact_count xact_time server_parse_count bind_count server_assignment_count',
  },
  pools: {
    labels: ['database', 'user'],
    values:
      'cl_active cl_active_cancel_req cl_waiting cl_waiting_cancel_req sv_active sv_active_cancel sv_being_canceled sv_idle sv_used sv_tested sv_login maxwait',
  },
} as const

describe.each([1, 2])('SHOW on the database pgbouncer, %i workers, two shards', (workers) => {
  let served: Served
  let admin: pg.Client
  const clients: pg.Client[] = []

  beforeAll(async () => {
    served = await serveShards(workers)
    admin = await consoleOf(served)
    for (let i = 0; i < 4; i++) clients.push(await served.connect())
    for (const [i, client] of clients.entries()) {
      await client.query('INSERT INTO item VALUES ($1) ON CONFLICT DO NOTHING', [i])
      await client.query('SELECT count(*) FROM item')
    }
  })
  afterAll(async () => {
    for (const client of [...clients, admin]) await client.end().catch(() => undefined)
  })

  test("D205: prometheus' exporter finds each series once, and numbers in it", async () => {
    for (const [what, { labels, values }] of Object.entries(SERIES)) {
      const rows: Row[] = (await admin.query(`SHOW ${what};`)).rows
      expect([what, rows.length > 0]).toEqual([what, true])
      const series = rows.map((row) => JSON.stringify(labels.map((label) => row[label])))
      expect([what, new Set(series).size]).toEqual([what, series.length])
      for (const row of rows)
        for (const name of values.split(' '))
          expect([what, name, /^\d+$/.test(String(row[name]))]).toEqual([what, name, true])
    }
    const lists: Row[] = (await admin.query('SHOW LISTS;')).rows
    expect(Object.keys(lists[0] ?? {})).toEqual(['list', 'items'])
    const config: Row[] = (await admin.query('SHOW CONFIG;')).rows
    const limit = config.find(({ key }) => key === 'max_client_conn')
    expect(limit).toEqual({ key: 'max_client_conn', value: '0', default: '0', changeable: 'yes' })
    const port = config.find(({ key }) => key === 'port')
    expect(port).toMatchObject({ value: '0', default: '6432', changeable: 'no' })
  })

  test('D205: rows of all workers, shards and hosts are one, and their figures add up', async () => {
    const [holder] = clients
    await holder?.query('BEGIN')
    await holder?.query('SELECT * FROM item WHERE k = 1')
    const [pool]: Row[] = (await admin.query('SHOW POOLS')).rows
    expect(pool).toMatchObject({ database: 'app', user: 'postgres', cl_active: 4, sv_active: 1 })
    const linked = (await admin.query('SHOW CLIENTS')).rows.filter(({ link }) => link !== '')
    expect(linked).toHaveLength(1)
    expect(linked[0]).toMatchObject({ type: 'C', state: 'active', database: 'app' })
    const servers: Row[] = (await admin.query('SHOW SERVERS')).rows
    const held = servers.find(({ ptr }) => ptr === linked[0]?.link)
    expect(held).toMatchObject({ type: 'S', state: 'active', link: linked[0]?.ptr })
    expect(servers).toHaveLength(1 + Number(pool?.['sv_idle']))
    const [user]: Row[] = (await admin.query('SHOW USERS')).rows
    expect(user).toMatchObject({
      current_connections: servers.length,
      current_client_connections: 4,
    })
    await holder?.query('COMMIT')
  })

  test('D205: totals are those of all workers and shards', async () => {
    const total = async (): Promise<Record<string, number>> => {
      const [row]: Row[] = (await admin.query('SHOW STATS')).rows
      return Object.fromEntries(
        Object.entries(row ?? {}).map(([name, value]) => [name, Number(value)]),
      )
    }
    const before = await total()
    // Each client's worker has to have been counted, whichever it is.
    for (const client of clients)
      for (let k = 0; k < 6; k++) await client.query(`UPDATE item SET k = ${k} WHERE k = ${k}`)
    const after = await total()
    const grown = (name: string) => (after[name] ?? 0) - (before[name] ?? 0)
    expect([grown('total_query_count'), grown('total_xact_count')]).toEqual([24, 24])
    expect(grown('total_received')).toBeGreaterThan(24 * 'UPDATE item SET k = 0'.length)
    const sums: Row[] = (await admin.query('SHOW TOTALS')).rows
    const sum = sums.find(({ name }) => name === 'total_query_count')
    expect(Number(sum?.['value'])).toBe(after['total_query_count'])
  })

  test('D205: the extended protocol tells the same, in text and in binary', async () => {
    for (const what of TABLES) {
      const simple = await admin.query(`SHOW ${what}`)
      const extended = await admin.query({ name: `x${what}`, text: `SHOW ${what}`, values: [] })
      const shape = (fields: pg.FieldDef[]) => fields.map((one) => [one.name, one.dataTypeID])
      expect([what, shape(extended.fields)]).toEqual([what, shape(simple.fields)])
      expect([what, extended.rows.length]).toEqual([what, simple.rows.length])
    }
    const text = 'SHOW STATS_TOTALS'
    const plain = (await admin.query(text)).rows[0]
    const binary = (await admin.query({ text, values: [], binary: true } as pg.QueryConfig)).rows[0]
    const same = 'xact_count query_count bytes_sent query_time server_assignment_count'.split(' ')
    for (const name of same)
      expect([name, Number(binary[name])]).toEqual([name, Number(plain[name])])
    expect(Number(plain.query_time)).toBeGreaterThan(0)
  })
})

describe.skipIf(isMissing('pgbouncer'))('beside a running PgBouncer', () => {
  let bouncer: ChildProcess | undefined
  let theirs: pg.Client | undefined
  let ours: pg.Client | undefined
  afterAll(async () => {
    await theirs?.end().catch(() => undefined)
    await ours?.end().catch(() => undefined)
    bouncer?.kill('SIGTERM')
  })

  async function startPgBouncer(): Promise<pg.Client> {
    const directory = mkdtempSync(join(inject('runDirectory'), 'pgbouncer-'))
    chmodSync(directory, 0o755)
    const port = await freePort()
    writeFileSync(join(directory, 'users.txt'), '"postgres" ""\n')
    const at = postgres().servers[0]
    const lines = [
      '[databases]',
      `app = host=127.0.0.1 port=${at?.port} dbname=${shards[0]}`,
      '[pgbouncer]',
      `listen_addr = 127.0.0.1\nlisten_port = ${port}\nunix_socket_dir =`,
      `auth_type = trust\nauth_file = ${join(directory, 'users.txt')}\nadmin_users = postgres`,
      'pool_mode = transaction',
    ]
    writeFileSync(join(directory, 'pgbouncer.ini'), `${lines.join('\n')}\n`)
    const asUser = process.getuid?.() === 0 ? ['-u', 'nobody'] : []
    const program = findTool('pgbouncer') ?? 'pgbouncer'
    bouncer = spawn(program, ['-q', ...asUser, join(directory, 'pgbouncer.ini')], {
      stdio: 'ignore',
    })
    const url = `postgres://postgres@127.0.0.1:${port}`
    await waitFor(() =>
      openAs(`${url}/pgbouncer`).then(
        (client) => client.end().then(() => true),
        () => false,
      ),
    )
    const app = await openAs(`${url}/app`)
    await app.query('SELECT 1')
    await app.end()
    return openAs(`${url}/pgbouncer`)
  }

  /** Called otherwise since 1.18. */
  const renamed: Readonly<Record<string, string>> = { reserve_pool: 'reserve_pool_size' }

  test('D205: every column of PgBouncer is there, in its order and of its type', async () => {
    theirs = await startPgBouncer()
    ours = await consoleOf(await serveShards(1))
    const tables = [...TABLES, 'sockets', 'active_sockets', 'dns_hosts', 'dns_zones', 'version']
    for (const what of tables) {
      const columns = async (client: pg.Client) =>
        (await client.query(`SHOW ${what}`)).fields.map(
          ({ name, dataTypeID }) => `${renamed[name] ?? name} ${dataTypeID}`,
        )
      const wanted = await columns(theirs)
      const found = await columns(ours)
      expect([what, found.filter((one) => wanted.includes(one))]).toEqual([what, wanted])
    }
    const names = async (client: pg.Client, what: string, column: string) =>
      (await client.query(`SHOW ${what}`)).rows.map((row) => row[column])
    for (const [what, column] of [
      ['lists', 'list'],
      ['totals', 'name'],
    ] as const) {
      const wanted = await names(theirs, what, column)
      const found = await names(ours, what, column)
      expect([what, wanted.filter((one) => !found.includes(one))]).toEqual([what, []])
    }
  })
})
