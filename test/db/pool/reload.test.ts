/** SIGHUP and RELOAD under clients: what stays, what goes, and what nobody notices. */
import { readFileSync, writeFileSync } from 'node:fs'
import pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Served, startServe } from '../../support/serve.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'

describe('reload', () => {
  const postgres = usePostgres({ version: 15, count: 2 })
  let served: Served
  let reloads = 0

  const reloadsDone = () => served.program.stderr.match(/configuration reloaded/g)?.length ?? 0

  /** Changes the file, sends SIGHUP, and waits until it is in force. */
  const reloadWith = async (change: (toml: string) => string, pattern?: RegExp) => {
    writeFileSync(served.configPath, change(readFileSync(served.configPath, 'utf8')))
    const before = served.program.stderr.length
    served.program.signal('SIGHUP')
    if (pattern) await waitFor(() => pattern.test(served.program.stderr.slice(before)))
    else {
      reloads++
      await waitFor(() => reloadsDone() === reloads)
    }
  }

  const withSize = (size: number) => (toml: string) =>
    toml.replace(/default_pool_size = \d+/, `default_pool_size = ${size}`)

  const pidOf = async (client: pg.Client) =>
    (await client.query('select pg_backend_pid() as pid')).rows[0].pid as number

  const poolOf = async () => {
    const admin = new pg.Client({ connectionString: served.adminUrl })
    await admin.connect()
    const { rows: pools } = await admin.query('show pools')
    const { rows: servers } = await admin.query('show servers')
    await admin.end()
    return { pools, servers: servers.map((row) => Number(row.remote_pid)) }
  }

  beforeAll(async () => {
    const [first] = postgres().servers
    served = await startServe({
      shards: [{ host: first!.host, port: first!.port, database: postgres().database }],
      general: ['default_pool_size = 3'],
    })
    for (const [server, columns] of ['a int', 'a int, b text'].entries())
      await postgres().query(`create table kept (${columns})`, [], server)
  })

  it('D189, D190: the same address keeps its backends when the size changes', async () => {
    const client = await served.connect()
    await pidOf(client)
    const before = (await poolOf()).servers
    await reloadWith(withSize(7))
    const after = await poolOf()
    expect(after.servers).toEqual(expect.arrayContaining(before))
    expect(after.servers).toContain(await pidOf(client))
    expect(after.pools[0].pool_size).toBe('7')
    await client.end()
  })

  it('D192: a server lent across SIGHUP commits and comes back to the new pool', async () => {
    const client = await served.connect()
    await client.query('begin')
    await client.query('insert into kept values (192)')
    const pid = await pidOf(client)
    await reloadWith(withSize(5))
    await client.query('commit')
    const { servers, pools } = await poolOf()
    expect(servers).toContain(pid)
    expect(pools).toHaveLength(1)
    expect(pools[0].pool_size).toBe('5')
    expect(await served.query('select a from kept where a = 192')).toHaveLength(1)
    await client.end()
  })

  it('D7, D193: ten SIGHUPs under eight clients: no error, no connection lost', async () => {
    let isOver = false
    const errors: unknown[] = []
    let done = 0
    const worker = async () => {
      const client = await served.connect()
      client.on('error', (error) => errors.push(error))
      while (!isOver) {
        try {
          await client.query('begin')
          await client.query('insert into kept values (193)')
          await client.query('commit')
          await client.query('select count(*) from kept where a = $1', [7])
          done++
        } catch (error) {
          errors.push(error)
          isOver = true
        }
      }
      await client.end()
    }
    const workers = Array.from({ length: 8 }, worker)
    for (let i = 0; i < 10; i++) {
      const before = done
      await reloadWith(withSize(2 + (i % 4)))
      await waitFor(() => done > before + 8 || errors.length > 0)
    }
    isOver = true
    await Promise.all(workers)
    expect(errors).toEqual([])
    expect(await served.query('select 1 from kept where a = 193')).toHaveLength(done)
  })

  it('D188: a broken file keeps the old configuration and says so in the log', async () => {
    const client = await served.connect()
    await pidOf(client)
    const before = (await poolOf()).servers
    const good = readFileSync(served.configPath, 'utf8')
    await reloadWith((toml) => `${toml}\n[general\n`, /reload failed, the old configuration stays/)
    expect((await poolOf()).servers).toEqual(expect.arrayContaining(before))
    expect(await served.query('select 1 as one')).toEqual([{ one: 1 }])
    writeFileSync(served.configPath, good)
    await client.end()
  })

  it('D194: a new user and a new database can be used after it', async () => {
    const { host, port } = postgres().servers[0]!
    const other = await postgres().createDatabase()
    writeFileSync(
      served.usersPath,
      `${readFileSync(served.usersPath, 'utf8')}
[[users]]
name = "later"
databases = ["app", "fresh"]
password = "x"
server_user = "postgres"
`,
    )
    await reloadWith(
      (toml) => `${toml}
[[databases]]
name = "fresh"
host = "${host}"
port = ${port}
database_name = "${other}"
`,
    )
    for (const database of ['app', 'fresh']) {
      const client = new pg.Client(`postgres://later:x@127.0.0.1:${served.port}/${database}`)
      await client.connect()
      const { rows } = await client.query('select current_database() as name')
      expect(rows[0].name).toBe(database === 'app' ? postgres().database : other)
      await client.end()
    }
  })

  it('D191: another address has new backends, the old ones go, statements are prepared anew', async () => {
    const read = { name: 'kept', text: 'select * from kept where a = -1' }
    const client = await served.connect()
    expect((await client.query(read)).fields.map(({ name }) => name)).toEqual(['a'])
    const pid = await pidOf(client)
    const [first, second] = postgres().servers
    await reloadWith((toml) => toml.replaceAll(`port = ${first!.port}`, `port = ${second!.port}`))
    const fresh = await served.connect()
    expect((await fresh.query(read)).fields.map(({ name }) => name)).toEqual(['a', 'b'])
    const { rows } = await fresh.query('select inet_server_port() as port')
    expect(rows[0].port).toBe(second!.port)
    // as one PostgreSQL whose table has changed
    await expect(client.query(read)).rejects.toMatchObject({
      code: '0A000',
      message: 'cached plan must not change result type',
    })
    await waitFor(async () => {
      const sql = 'select 1 from pg_stat_activity where pid = $1'
      return (await postgres().query(sql, [pid])).length === 0
    })
    await fresh.end()
    await client.end()
  })
})
