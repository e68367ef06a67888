import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { serve } from '../../../src/proxy/serve.js'
import { startPostgres, type TestPostgres } from '../../support/postgres.js'
import { waitFor } from '../../support/wait-for.js'

let postgres: TestPostgres
let directory: string
let running: Promise<number>
let port = 0

function writeConfig(general: string): void {
  const at = postgres.servers[0]
  writeFileSync(
    join(directory, 'pgdog.toml'),
    `[general]
host = "127.0.0.1"
auth_type = "trust"
${general}
[[databases]]
name = "app"
host = "${at?.host}"
port = ${at?.port}
database_name = "${postgres.database}"
[admin]
password = "secret"
`,
  )
}

beforeAll(async () => {
  postgres = await startPostgres({ version: 15 })
  directory = mkdtempSync(join(tmpdir(), 'pgshard-console-'))
  writeConfig('max_client_conn = 3')
  writeFileSync(
    join(directory, 'users.toml'),
    `[[users]]\nname = "${postgres.user}"\ndatabase = "app"\n`,
  )
  running = serve({
    load: {
      configPath: join(directory, 'pgdog.toml'),
      usersPath: join(directory, 'users.toml'),
      env: {},
    },
    version: '9.9.9',
    port: 0,
    logLevel: 'silent',
    announce: (line) => {
      port = Number(/^listening on 127\.0\.0\.1:(\d+)$/.exec(line)?.[1])
    },
  })
  await waitFor(() => port > 0)
})

afterAll(async () => {
  const admin = await openConsole().catch(() => undefined)
  await admin?.query('SHUTDOWN')
  await running
  rmSync(directory, { recursive: true, force: true })
  await postgres.stop()
})

const clients: pg.Client[] = []

async function open(config: pg.ClientConfig): Promise<pg.Client> {
  const client = new pg.Client({ host: '127.0.0.1', port, ...config })
  // The proxy ends clients in these tests; an error without a listener would end the run.
  client.on('error', () => undefined)
  await client.connect()
  clients.push(client)
  return client
}

const openApp = () => open({ user: postgres.user, database: 'app' })
const openConsole = (database = 'pgdog') => open({ user: 'admin', password: 'secret', database })

async function closeAll(): Promise<void> {
  await Promise.all(clients.splice(0).map((client) => client.end()))
}

describe('the console of a running proxy', () => {
  it('asks for its password, whatever auth_type says', async () => {
    const wrong = open({ user: 'admin', password: 'no', database: 'pgdog' })
    await expect(wrong).rejects.toMatchObject({ code: '28P01' })
    await expect(open({ user: 'bob', password: 'secret', database: 'pgdog' })).rejects.toThrow()
  })

  it('answers under each of its names, in the simple and the extended protocol', async () => {
    for (const name of ['pgdog', 'pgshard', 'pgbouncer', 'admin']) {
      const admin = await openConsole(name)
      expect((await admin.query('SHOW VERSION')).rows).toEqual([{ version: 'pgshard 9.9.9' }])
      const extended = await admin.query({ name: 'p', text: 'SHOW POOLS', values: [] })
      const place = name === 'pgbouncer' ? { sv_used: 0 } : { shard: '0', role: 'primary' }
      expect(extended.rows[0]).toMatchObject({ database: 'app', ...place })
    }
    await closeAll()
  })

  it('D205: shows idle + active = total while clients hold servers', async () => {
    const [one, two, admin] = [await openApp(), await openApp(), await openConsole()]
    await one.query('BEGIN')
    await one.query('SELECT 1')
    await two.query('SELECT 1')
    const [pool] = (await admin.query('SHOW POOLS')).rows
    const sum = Number(pool.sv_idle) + Number(pool.sv_active) + Number(pool.sv_idle_xact)
    expect(sum).toBe(Number(pool.sv_total))
    expect(Number(pool.sv_idle_xact)).toBe(1)
    const states = (await admin.query('SHOW CLIENTS state')).rows
      .filter((row) => row.database === 'app')
      .map((row) => row.state)
    expect(states.sort()).toEqual(['idle', 'idle in transaction'])
    await closeAll()
  })

  it('refuses a client above the limit in PgBouncer words; the others and the console go on', async () => {
    const three = [await openApp(), await openApp(), await openApp()]
    await expect(openApp()).rejects.toMatchObject({
      code: '53300',
      severity: 'FATAL',
      message: 'no more connections allowed (max_client_conn)',
    })
    expect((await three[0]?.query('SELECT 7 AS n'))?.rows).toEqual([{ n: 7 }])
    await openConsole()
    await closeAll()
  })

  it('PAUSE waits for open transactions and holds others; RESUME lets them go on', async () => {
    const [one, two, admin, other] = [
      await openApp(),
      await openApp(),
      await openConsole(),
      await openConsole(),
    ]
    await one.query('BEGIN')
    await one.query('SELECT 1')
    let isPaused = false
    const pausing = admin.query('PAUSE app').then(() => {
      isPaused = true
    })
    await waitFor(async () => (await other.query('SHOW POOLS')).rows[0].paused === true)
    expect(isPaused).toBe(false)
    const held = two.query('SELECT 2 AS n')
    await one.query('COMMIT')
    await pausing
    expect((await other.query('SHOW POOLS')).rows[0]).toMatchObject({
      sv_total: '0',
      cl_waiting: '1',
    })
    await other.query('RESUME app')
    expect((await held).rows).toEqual([{ n: 2 }])
    await closeAll()
  })

  it('RELOAD keeps servers, puts settings in force, and keeps the old ones when the file is wrong', async () => {
    const [app, admin] = [await openApp(), await openConsole()]
    await app.query('BEGIN')
    const { pid } = (await app.query('SELECT pg_backend_pid() AS pid')).rows[0]
    writeConfig('max_client_conn = 30\ndefault_pool_size = 4')
    await admin.query('RELOAD')
    expect((await admin.query('SHOW POOLS')).rows[0]).toMatchObject({ pool_size: '4' })
    expect((await app.query('SELECT pg_backend_pid() AS pid')).rows[0].pid).toBe(pid)
    await app.query('COMMIT')
    const servers = (await admin.query('SHOW SERVERS')).rows
    expect(servers.map((row) => Number(row.remote_pid))).toContain(pid)
    writeFileSync(join(directory, 'pgdog.toml'), 'this is no toml')
    await expect(admin.query('RELOAD')).rejects.toMatchObject({ code: 'F0000' })
    expect((await app.query('SELECT 3 AS n')).rows).toEqual([{ n: 3 }])
    writeConfig('max_client_conn = 30')
    await closeAll()
  })

  it('names what does not exist', async () => {
    const admin = await openConsole()
    await expect(admin.query('PAUSE nothing')).rejects.toMatchObject({ code: '42704' })
    await expect(admin.query('KILL_CLIENT 999999')).rejects.toMatchObject({ code: '42704' })
    await expect(openApp().then((app) => app.end())).resolves.toBeUndefined()
    await expect(open({ user: postgres.user, database: 'nothing' })).rejects.toThrow()
    await closeAll()
  })

  it('KILL_CLIENT ends one client only', async () => {
    const [one, two, admin] = [await openApp(), await openApp(), await openConsole()]
    const rows = (await admin.query('SHOW CLIENTS')).rows.filter((row) => row.database === 'app')
    const ended = new Promise((resolve) => one.once('end', resolve))
    await admin.query(`KILL_CLIENT ${Math.min(...rows.map((row) => Number(row.id)))}`)
    await ended
    expect((await two.query('SELECT 4 AS n')).rows).toEqual([{ n: 4 }])
    clients.splice(clients.indexOf(one), 1)
    await closeAll()
  })

  it('D39, D184, D185: SHUTDOWN lets an open transaction commit, takes no new client, and ends with 0', async () => {
    const [app, admin] = [await openApp(), await openConsole()]
    await app.query('CREATE TABLE drained (n int)')
    await app.query('BEGIN')
    await app.query('INSERT INTO drained VALUES (1)')
    await admin.query('SHUTDOWN')
    await waitFor(() =>
      openApp().then(
        () => false,
        () => true,
      ),
    )
    await app.query('COMMIT')
    expect(await running).toBe(0)
    expect(await postgres.query('SELECT n FROM drained')).toEqual([{ n: 1 }])
    clients.length = 0
  })
})
