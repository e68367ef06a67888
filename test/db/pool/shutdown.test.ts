/** How serve ends: by SIGINT, with clients at work, in time and not. */
import { connect } from 'node:net'
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { type Served, startServe } from '../../support/serve.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'

const isRefused = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(socket.destroy() === undefined))
    socket.once('error', () => resolve(true))
  })

describe('the end of serve', () => {
  const postgres = usePostgres({ version: 15 })

  const start = (...general: string[]): Promise<Served> => {
    const { host, port } = postgres().servers[0]!
    return startServe({ shards: [{ host, port, database: postgres().database }], general })
  }

  const clientOf = async (served: Served) => {
    const client = new pg.Client({ connectionString: served.url })
    client.on('error', () => undefined)
    await client.connect()
    return client
  }

  const isRunning = async (sql: string) => {
    const asked = "select 1 from pg_stat_activity where query = $1 and state = 'active'"
    return (await postgres().query(asked, [sql])).length > 0
  }

  it('D183–D186: SIGINT: no new clients, what runs is finished, exit code 0 after the last client', async () => {
    const served = await start('shutdown_timeout = 10000')
    const client = await clientOf(served)
    const sql = 'select pg_sleep(0.7), 183'
    const running = client.query(sql)
    await waitFor(() => isRunning(sql))
    served.program.signal('SIGINT')
    await waitFor(() => isRefused(served.port))
    let isOver = false
    void served.program.ended.then(() => {
      isOver = true
    })
    expect((await running).rowCount).toBe(1)
    expect(isOver).toBe(false)
    expect((await served.program.ended).code).toBe(0)
  })

  it('D183: at shutdown_timeout what still runs is cancelled', async () => {
    const served = await start('shutdown_timeout = 400', 'shutdown_termination_timeout = 5000')
    const client = await clientOf(served)
    const sql = 'select pg_sleep(60), 1830'
    const running = client.query(sql).catch((error: unknown) => error)
    await waitFor(() => isRunning(sql))
    const from = performance.now()
    served.program.signal('SIGTERM')
    expect(await running).toMatchObject({ code: '57014' })
    expect(performance.now() - from).toBeGreaterThan(390)
    expect((await served.program.ended).code).toBe(1)
    await waitFor(async () => !(await isRunning(sql)))
  })
})
