/** Pooler modes, RECONNECT, and what becomes of the server of a client that vanished. */
import { readFileSync, writeFileSync } from 'node:fs'
import pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Served, startServe } from '../../support/serve.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'

describe('a pool of one', () => {
  const postgres = usePostgres({ version: 15 })
  let served: Served
  let admin: pg.Client

  beforeAll(async () => {
    const { host, port } = postgres().servers[0]!
    served = await startServe({
      shards: [{ host, port, database: postgres().database }],
      general: [
        'default_pool_size = 1',
        'pooler_mode = "transaction"',
        'connection_recovery = "recover"',
      ],
    })
    await postgres().query('create table left_open (n int)')
    admin = new pg.Client({ connectionString: served.adminUrl })
    await admin.connect()
    return () => admin.end()
  })

  const setKey = async (key: string, value: string) => {
    const toml = readFileSync(served.configPath, 'utf8')
    writeFileSync(
      served.configPath,
      toml.replace(new RegExp(`${key} = "\\w+"`), `${key} = "${value}"`),
    )
    await admin.query('reload')
  }

  const clientOf = async () => {
    const client = await served.connect()
    client.on('error', () => undefined)
    return client
  }
  const pidOf = async (client: pg.Client) =>
    (await client.query('select pg_backend_pid() as pid')).rows[0].pid as number
  const pids = async () =>
    (await admin.query('show servers')).rows.map((row) => Number(row.remote_pid))
  const vanish = (client: pg.Client) => {
    const { connection } = client as unknown as { connection: { stream: { destroy(): void } } }
    connection.stream.destroy()
  }
  const isSleeping = async (pid: number) => {
    const sql =
      "select 1 from pg_stat_activity where pid = $1 and query ~ 'pg_sleep' and state = 'active'"
    return (await postgres().query(sql, [pid])).length > 0
  }
  const rowsLeft = async () => (await postgres().query('select 1 from left_open')).length

  it('RECONNECT replaces servers after their transaction; no client notices', async () => {
    const [a, b] = [await clientOf(), await clientOf()]
    const before = await pidOf(a)
    await a.query('begin')
    expect(await pidOf(a)).toBe(before)
    await admin.query('reconnect')
    expect(await pidOf(a)).toBe(before)
    await a.query('commit')
    const after = await pidOf(b)
    expect(after).not.toBe(before)
    expect(await pidOf(a)).toBe(after)
    await a.end()
    await b.end()
  })

  it('session mode: a client keeps its server until it leaves; the next gets it then', async () => {
    await setKey('pooler_mode', 'session')
    const [a, b] = [await clientOf(), await clientOf()]
    await a.query("set work_mem = '7MB'")
    const pid = await pidOf(a)
    const waiting = b.query('show work_mem')
    await waitFor(async () =>
      (await admin.query('show clients')).rows.some(({ state }) => state === 'waiting'),
    )
    expect(await pidOf(a)).toBe(pid)
    await a.end()
    expect((await waiting).rows[0].work_mem).not.toBe('7MB')
    expect(await pidOf(b)).toBe(pid)
    await b.end()
    await setKey('pooler_mode', 'transaction')
  })

  it.each([
    ['recover', 'kept', 'kept'],
    ['rollback_only', 'kept', 'dropped'],
    ['drop', 'dropped', 'dropped'],
  ] as const)(
    'connection_recovery = %s: idle in a transaction its server is %s, at work %s',
    async (mode, idle, busy) => {
      await setKey('connection_recovery', mode)
      for (const [state, expected] of [
        ['idle', idle],
        ['busy', busy],
      ] as const) {
        const client = await clientOf()
        await client.query('begin')
        await client.query('insert into left_open values (1)')
        const pid = await pidOf(client)
        if (state === 'busy') {
          client.query('select pg_sleep(60)').catch(() => undefined)
          await waitFor(() => isSleeping(pid))
        }
        vanish(client)
        // whoever comes next gets a sound server soon, not in a minute
        const next = await clientOf()
        const pidNow = await pidOf(next)
        if (expected === 'kept') expect(pidNow).toBe(pid)
        else expect(pidNow).not.toBe(pid)
        expect((await next.query('select 1 from left_open')).rowCount).toBe(0)
        await next.end()
        await waitFor(async () => !(await isSleeping(pid)))
      }
      expect(await rowsLeft()).toBe(0)
      expect(await pids()).toHaveLength(1)
    },
  )
})
