/** `serve --workers` from its start to its end: how many, limits at their edge, reload, signals, and a primary that dies. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { connect as connectSocket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterEach, describe, expect, it } from 'vitest'
import { canReusePort } from '../../src/net/listener.js'
import type { Served } from '../support/serve.js'
import { bySize } from '../support/test-size.js'
import { usePostgres } from '../support/use-postgres.js'
import { waitFor } from '../support/wait-for.js'
import {
  AskingClients,
  askConsole,
  childrenOf,
  endAll,
  isAlive,
  numbers,
  openClient,
  serversOf,
  startWorkers as startServing,
  tryConnect,
  workerOf,
} from '../support/workers.js'

const postgres = usePostgres({ version: 15 })

const running: Served[] = []

/** Each is ended with its test: processes that idle take time from the others. */
async function startWorkers(...args: Parameters<typeof startServing>): Promise<Served> {
  const served = await startServing(...args)
  running.push(served)
  return served
}

afterEach(() => Promise.all(running.splice(0).map((served) => served.program.stop())))

describe('a worker that stands still', () => {
  it('is ended and replaced; the others and the console go on meanwhile', async () => {
    const served = await startWorkers(postgres(), 2, ['worker_timeout = 2_000'])
    const asking = await AskingClients.start(served, 8)
    const victim = asking.workers[0] as number
    const before = (await askConsole(served, 'SHOW WORKERS'))[victim]
    process.kill(Number(before?.['pid']), 'SIGSTOP')
    const then = asking.total
    await waitFor(() => asking.total > then + 100, { what: 'answers of the other worker' })
    await served.program.waitForOutput(/a worker stands still and is ended worker=\d/)
    await waitFor(async () => {
      const row = (await askConsole(served, 'SHOW WORKERS').catch(() => []))[victim]
      return row?.['state'] === 'ready' && row['pid'] !== before?.['pid']
    })
    await asking.stop()
    expect(new Set(asking.errors.map(({ worker }) => worker))).toEqual(new Set([victim]))
  })
})

describe('max_client_conn of two workers', () => {
  it('B16, B17, B18: each refuses above its share, whole logins at once too; who is in stays', async () => {
    // A password takes several round trips: many are in the middle of their login at once.
    const served = await startWorkers(
      postgres(),
      2,
      ['max_client_conn = 9', 'default_pool_size = 4'],
      { password: 'secret' },
    )
    const outcomes = await Promise.all(Array.from({ length: 30 }, () => tryConnect(served.url)))
    const clients = outcomes.filter((one) => one instanceof pg.Client)
    const refused = outcomes.filter((one) => !(one instanceof pg.Client)) as pg.DatabaseError[]
    // Two shares of four: more than one worker would let in, never more than the total.
    expect(clients).toHaveLength(8)
    for (const error of refused)
      expect(error).toMatchObject({
        severity: 'FATAL',
        code: '53300',
        message: 'no more connections allowed (max_client_conn)',
      })
    for (const client of clients)
      expect((await client.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }])
    // A place that becomes free is found, in whichever worker it is.
    for (let i = 0; i < 6; i++) {
      await clients.shift()?.end()
      const next = await waitFor(async () => {
        const one = await tryConnect(served.url)
        return one instanceof pg.Client ? one : undefined
      })
      clients.push(next)
    }
    await endAll(clients)
  })

  it('B14, B15: nor do all workers together open more servers than max_db_connections', async () => {
    await waitFor(async () => (await serversOf(postgres())) === 0)
    const served = await startWorkers(postgres(), 2, [
      'max_db_connections = 5',
      'default_pool_size = 10',
    ])
    const clients = await Promise.all(Array.from({ length: 12 }, () => openClient(served)))
    let isDone = false
    let most = 0
    const work = Promise.all(clients.map((client) => client.query('SELECT pg_sleep(0.1)'))).then(
      () => {
        isDone = true
      },
    )
    await waitFor(async () => {
      most = Math.max(most, await serversOf(postgres()))
      return isDone
    })
    await work
    expect(most).toBe(4)
    await endAll(clients)
  })
})

describe('the life of the whole', () => {
  it('a limit that cannot be shared gives fewer workers, and says so', async () => {
    const served = await startWorkers(postgres(), 8, ['default_pool_size = 2'])
    expect(await askConsole(served, 'SHOW WORKERS')).toHaveLength(2)
    expect(served.program.stderr).toMatch(/fewer workers than asked for.* asked=8 workers=2 limit=/)
  })

  it('D20: workers of a file are threads elsewhere; processes when workers_mode says so; 0 is one process', async () => {
    const one = await startWorkers(postgres(), 0, ['workers = 3'])
    expect(one.program.stderr).toMatch(/workers are threads in PgDog/)
    expect(await askConsole(one, 'SHOW WORKERS')).toHaveLength(1)
    expect(childrenOf(one.program.pid)).toEqual([])
    await expect(askConsole(one, 'RESTART WORKERS')).rejects.toMatchObject({ code: '0A000' })
    const three = await startWorkers(postgres(), undefined, [
      'workers = 3',
      'workers_mode = "processes"',
    ])
    expect(childrenOf(three.program.pid)).toHaveLength(3)
  })

  it('RELOAD reaches all workers or none', async () => {
    const served = await startWorkers(postgres(), 3, [
      'default_pool_size = 12',
      'max_client_conn = 90',
    ])
    const asking = await AskingClients.start(served, 6)
    const text = readFileSync(served.configPath, 'utf8')
    const write = (from: string, to: string) =>
      writeFileSync(served.configPath, text.replace(from, to))
    const sizes = async () => numbers(await askConsole(served, 'SHOW POOLS'), 'pool_size')

    write('default_pool_size = 12', 'default_pool_size = 6')
    await askConsole(served, 'RELOAD')
    expect(await sizes()).toEqual([2, 2, 2])

    write('max_client_conn = 90', 'max_client_conn = 2')
    await expect(askConsole(served, 'RELOAD')).rejects.toThrow(
      /max_client_conn = 2 cannot be shared by 3 workers/,
    )
    write('default_pool_size = 12', 'default_pool_sise = 6')
    await expect(askConsole(served, 'RELOAD')).rejects.toThrow(/did you mean "default_pool_size"/)
    expect(await sizes()).toEqual([2, 2, 2])

    write('default_pool_size = 12', 'default_pool_size = 9')
    served.program.signal('SIGHUP')
    await waitFor(async () => (await sizes()).every((size) => size === 3))
    // A worker that starts later has the configuration in force.
    process.kill(childrenOf(served.program.pid)[0] ?? 0, 'SIGKILL')
    await waitFor(async () => {
      const rows = await askConsole(served, 'SHOW WORKERS').catch(() => [])
      return rows.some((row) => row['replaced'] === '1' && row['state'] === 'ready')
    })
    expect(await sizes()).toEqual([3, 3, 3])
    const then = asking.total
    await waitFor(() => asking.total > then + 100)
    await asking.stop()
    // Only those of the worker that was killed.
    expect(new Set(asking.errors.map(({ worker }) => worker)).size).toBeLessThanOrEqual(1)
    expect(asking.errors.length).toBeLessThanOrEqual(2)
  })

  it('a reload under load fails no statement', async () => {
    const served = await startWorkers(postgres(), 2, ['default_pool_size = 4'])
    const asking = await AskingClients.start(served, 6)
    for (let i = 0; i < bySize(5, 40); i++) {
      await askConsole(served, i % 2 === 0 ? 'RELOAD' : 'RECONNECT')
      const then = asking.total
      await waitFor(() => asking.total > then + 20)
    }
    await asking.stop()
    expect(asking.errors).toEqual([])
  })

  it('SIGTERM drains all: transactions finish, nobody is left, exit 0', async () => {
    const pidFile = join(tmpdir(), `pgshard-workers-${process.pid}.pid`)
    const served = await startWorkers(postgres(), 2, [], { args: ['--pid-file', pidFile] })
    expect(Number(readFileSync(pidFile, 'utf8'))).toBe(served.program.pid)
    const workers = childrenOf(served.program.pid)
    const clients = await Promise.all(Array.from({ length: 4 }, () => openClient(served)))
    for (const client of clients) {
      await client.query('BEGIN')
    }
    served.program.signal('SIGTERM')
    await served.program.waitForOutput(/shutting down worker=0/)
    for (const client of clients) await client.query('COMMIT')
    const { code } = await served.program.ended
    expect(code).toBe(0)
    expect(workers.filter(isAlive)).toEqual([])
    expect(existsSync(pidFile)).toBe(false)
    expect(served.program.stderr.match(/^listening on/gm)).toHaveLength(1)
  })

  it('a second SIGTERM ends all now, exit 1; SHUTDOWN of the console drains', async () => {
    const served = await startWorkers(postgres(), 2)
    const client = await openClient(served)
    await client.query('BEGIN')
    served.program.signal('SIGTERM')
    await served.program.waitForOutput(/shutting down worker=1/)
    served.program.signal('SIGTERM')
    expect((await served.program.ended).code).toBe(1)
    const other = await startWorkers(postgres(), 2)
    await askConsole(other, 'SHUTDOWN')
    expect((await other.program.ended).code).toBe(0)
  })

  it('workers end with a primary that is killed, and another serve takes the port', async () => {
    const served = await startWorkers(postgres(), 3)
    const client = await openClient(served)
    await client.query('BEGIN')
    const workers = childrenOf(served.program.pid)
    const servers = (await askConsole(served, 'SHOW SERVERS')).map((row) => row['remote_pid'])
    expect(servers.length).toBeGreaterThanOrEqual(3)
    served.program.signal('SIGKILL')
    await waitFor(() => !workers.some(isAlive))
    await waitFor(async () => {
      const rows = await postgres().query('SELECT pid::text FROM pg_stat_activity')
      return !rows.some((row) => servers.includes(row['pid'] as string))
    })
    const again = await startWorkers(postgres(), 3, [], { args: ['--port', String(served.port)] })
    expect(again.port).toBe(served.port)
    expect(await again.query('SELECT 1 AS one')).toEqual([{ one: 1 }])
  })

  it('a port in use is said before any worker is started', async () => {
    const served = await startWorkers(postgres(), 2)
    await expect(
      startWorkers(postgres(), 2, [], { args: ['--port', String(served.port)] }),
    ).rejects.toThrow(/the address is in use/)
  })

  it('a connection that says nothing is counted and let go', async () => {
    const served = await startWorkers(postgres(), 2)
    const sockets = Array.from({ length: 20 }, () => connectSocket(served.port, '127.0.0.1'))
    await Promise.all(
      sockets.map((socket) => new Promise((resolve) => socket.once('connect', resolve))),
    )
    for (const socket of sockets) socket.destroy()
    const clients = await Promise.all(Array.from({ length: 10 }, () => openClient(served)))
    const owners = await Promise.all(clients.map((client) => workerOf(served, client)))
    const ofFirst = owners.filter((owner) => owner === 0).length
    // The kernel knows nothing of who is connected.
    if (!canReusePort()) expect(Math.abs(ofFirst - 5)).toBeLessThanOrEqual(2)
    await endAll(clients)
  })

  it.skipIf(!canReusePort())(
    'B4, B5: on Node 22.12 and later every worker listens, and the kernel deals connections out',
    async () => {
      const served = await startWorkers(postgres(), 4)
      const clients = await Promise.all(Array.from({ length: 80 }, () => openClient(served)))
      const rows = (await askConsole(served, 'SHOW CLIENTS worker')).filter(
        (row) => row['database'] === 'app',
      )
      expect(new Set(rows.map((row) => row['worker'])).size).toBe(4)
      await endAll(clients)
    },
  )
})
