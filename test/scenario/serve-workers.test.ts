/**
 * `serve --workers`: one port, one console, limits shared, cancels that find their client wherever they land, and
 * processes that may die without the others' clients noticing.
 */
import type pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { canReusePort } from '../../src/net/listener.js'
import { sendCancel } from '../support/send-cancel.js'
import type { Served } from '../support/serve.js'
import { usePostgres } from '../support/use-postgres.js'
import { waitFor } from '../support/wait-for.js'
import {
  AskingClients,
  askConsole,
  askOnce,
  childrenOf,
  cpuMsOf,
  endAll,
  numbers,
  openClient,
  serversOf,
  startWorkers,
  tryConnect,
  workerOf,
} from '../support/workers.js'

const WORKERS = 4
const postgres = usePostgres({ version: 15 })

describe('four workers', () => {
  let served: Served
  beforeAll(async () => {
    served = await startWorkers(postgres(), WORKERS, [
      'default_pool_size = 10',
      'max_client_conn = 100',
      'max_db_connections = 20',
    ])
  })

  it('B3, B13, B14: as many processes as asked for, each with its share of the limits', async () => {
    const rows = await askConsole(served, 'SHOW WORKERS')
    expect(numbers(rows, 'worker')).toEqual([0, 1, 2, 3])
    expect(numbers(rows, 'pid').sort()).toEqual(childrenOf(served.program.pid).sort())
    expect(numbers(rows, 'max_client_conn')).toEqual([25, 25, 25, 25])
    expect(numbers(rows, 'max_db_connections')).toEqual([5, 5, 5, 5])
    const pools = await askConsole(served, 'SHOW POOLS')
    expect(numbers(pools, 'worker')).toEqual([0, 1, 2, 3])
    expect(numbers(pools, 'pool_size')).toEqual([2, 2, 2, 2])
    const [database] = await askConsole(served, 'SHOW DATABASES')
    expect(database?.['pool_size']).toBe('8')
  })

  it('B6: clients have one address, and all workers get some', async () => {
    const clients = await Promise.all(Array.from({ length: 40 }, () => openClient(served)))
    const rows = (await askConsole(served, 'SHOW CLIENTS worker')).filter(
      (row) => row['database'] === 'app',
    )
    const counts = [0, 1, 2, 3].map(
      (worker) => rows.filter((row) => Number(row['worker']) === worker).length,
    )
    expect(counts.reduce((a, b) => a + b)).toBe(40)
    // A console may be connected somewhere; the kernel deals out by chance.
    for (const count of counts) expect(count).toBeGreaterThanOrEqual(canReusePort() ? 1 : 9)
    await endAll(clients)
  })

  it('B15: the sum over all workers never passes a total that they cannot divide', async () => {
    const clients = await Promise.all(Array.from({ length: 40 }, () => openClient(served)))
    const work = Promise.all(clients.map((client) => client.query('SELECT pg_sleep(0.2)')))
    let most = 0
    let isDone = false
    void work.then(() => {
      isDone = true
    })
    await waitFor(async () => {
      most = Math.max(most, await serversOf(postgres()))
      return isDone
    })
    expect(most).toBe(8)
    await endAll(clients)
  })

  it('B7, B9, B10: a cancel ends the query of its client in whichever worker it lands', async () => {
    const seen = new Set<string>()
    const counters = async () => numbers(await askConsole(served, 'SHOW WORKERS'), 'cancels')
    const clients: pg.Client[] = []
    const owners = new Map<number, pg.Client>()
    // the primary may not have heard yet of all that were closed, and spare a worker for a moment
    await waitFor(async () => {
      const client = await openClient(served)
      clients.push(client)
      owners.set(await workerOf(served, client), client)
      return owners.size === WORKERS
    })
    const forwardedBefore = numbers(await askConsole(served, 'SHOW WORKERS'), 'cancels_forwarded')
    let cancels = 0
    for (const [owner, client] of owners) {
      // Whoever has the fewest connections gets the next: turns go round.
      const reached = () => [0, 1, 2, 3].every((receiver) => seen.has(`${owner} ${receiver}`))
      for (let tries = 0; tries < 40 && !reached(); tries++) {
        const before = await counters()
        const query = client.query('SELECT pg_sleep(30)').catch((error: unknown) => error)
        // A server that has not read the query yet would have nothing to cancel.
        await waitFor(async () => {
          const rows = await postgres().query(
            "SELECT 1 FROM pg_stat_activity WHERE state = 'active' AND query = 'SELECT pg_sleep(30)'",
          )
          return rows.length === 1
        })
        await sendCancel(client, served.port)
        cancels++
        expect(await query).toMatchObject({ code: '57014' })
        const after = await counters()
        const receiver = after.findIndex((count, i) => count > (before[i] ?? 0))
        seen.add(`${owner} ${receiver}`)
      }
    }
    expect(seen.size).toBe(WORKERS * WORKERS)
    const forwarded = numbers(await askConsole(served, 'SHOW WORKERS'), 'cancels_forwarded')
    const passed = forwarded.reduce((sum, n, i) => sum + n - (forwardedBefore[i] ?? 0), 0)
    expect(passed).toBeGreaterThanOrEqual(WORKERS * (WORKERS - 1))
    expect(passed).toBeLessThan(cancels)
    await endAll(clients)
  })

  it('B8, B11: a cancel with a key that nobody has given ends nothing', async () => {
    const client = await openClient(served)
    const query = client.query('SELECT pg_sleep(0.5), 1 AS one')
    const { processID, secretKey } = client as unknown as { processID: number; secretKey: number }
    for (let i = 0; i < 40; i++) {
      const stranger = {
        processID: (processID + i * 104_729) & 0x7fff_ffff,
        secretKey: secretKey ^ (i + 1),
      }
      await sendCancel(stranger as unknown as pg.Client, served.port)
    }
    expect((await query).rows).toMatchObject([{ one: 1 }])
    await client.end()
    expect((await askConsole(served, 'SHOW WORKERS')).map((row) => row['state'])).toEqual(
      Array(WORKERS).fill('ready'),
    )
  })

  it('one console shows and commands all workers', async () => {
    const clients = await Promise.all(Array.from({ length: 8 }, () => openClient(served)))
    await Promise.all(clients.map((client) => client.query('SELECT 1')))
    const ids = (await askConsole(served, 'SHOW CLIENTS')).map((row) => row['id'])
    expect(new Set(ids).size).toBe(ids.length)
    expect(ids.length).toBeGreaterThanOrEqual(8)
    const servers = await askConsole(served, 'SHOW SERVERS')
    expect(new Set(servers.map((row) => row['worker'])).size).toBe(WORKERS)

    await askConsole(served, 'PAUSE app')
    const isPaused = async () =>
      (await askConsole(served, 'SHOW POOLS')).map((row) => row['paused'])
    expect(await isPaused()).toEqual(Array(WORKERS).fill(true))
    const waiting = Promise.all(clients.map((client) => client.query('SELECT 2 AS two')))
    await waitFor(async () => {
      const rows = await askConsole(served, 'SHOW POOLS')
      return numbers(rows, 'cl_waiting').reduce((a, b) => a + b) === 8
    })
    await askConsole(served, 'RESUME app')
    expect((await waiting).map(({ rows }) => rows[0].two)).toEqual(Array(8).fill(2))
    expect(await isPaused()).toEqual(Array(WORKERS).fill(false))

    const [victim] = (await askConsole(served, 'SHOW CLIENTS')).filter(
      (row) => row['database'] === 'app',
    )
    await askConsole(served, `KILL_CLIENT ${victim?.['id']}`)
    await waitFor(
      async () =>
        !(await askConsole(served, 'SHOW CLIENTS')).some((row) => row['id'] === victim?.['id']),
    )
    await expect(askConsole(served, 'KILL_CLIENT 999999')).rejects.toMatchObject({ code: '42704' })
    await expect(askConsole(served, 'PAUSE nonsense')).rejects.toMatchObject({ code: '42704' })

    const isBanned = async () =>
      (await askConsole(served, 'SHOW POOLS')).map((row) => row['banned'])
    const [, , third] = await askConsole(served, 'SHOW POOLS')
    await askConsole(served, `BAN ${third?.['id']}`)
    expect(await isBanned()).toEqual(Array(WORKERS).fill(true))
    expect(await askConsole(served, 'SHOW BANS')).toHaveLength(WORKERS)
    await askConsole(served, 'UNBAN')
    expect(await isBanned()).toEqual(Array(WORKERS).fill(false))
    await expect(askConsole(served, 'BAN 999999')).rejects.toMatchObject({ code: '42704' })

    const before = new Set(
      (await askConsole(served, 'SHOW SERVERS')).map((row) => row['remote_pid']),
    )
    await askConsole(served, 'RECONNECT')
    await waitFor(async () => {
      const now = (await askConsole(served, 'SHOW SERVERS')).map((row) => row['remote_pid'])
      return now.length > 0 && now.every((pid) => !before.has(pid))
    })
    await endAll(clients)
  })

  it('a worker that is killed is replaced, and the clients of the others notice nothing', async () => {
    const asking = await AskingClients.start(served, 12)
    const number = asking.workers[0] as number
    const victim = (await askConsole(served, 'SHOW WORKERS'))[number]
    await waitFor(() => asking.total > 200)
    process.kill(Number(victim?.['pid']), 'SIGKILL')
    const replaced = await waitFor(async () => {
      const row = (await askConsole(served, 'SHOW WORKERS').catch(() => []))[number]
      return row?.['state'] === 'ready' && row['pid'] !== victim?.['pid'] ? row : undefined
    })
    expect(replaced['replaced']).toBe('1')
    const then = asking.total
    await waitFor(() => asking.total > then + 200)
    await asking.stop()
    expect(new Set(asking.errors.map(({ worker }) => worker))).toEqual(new Set([number]))
    expect(asking.errors).toHaveLength(asking.workers.filter((one) => one === number).length)
    // What it held is free again, and its share of clients is served by the new one.
    const clients = await Promise.all(Array.from({ length: 8 }, () => openClient(served)))
    await Promise.all(clients.map((client) => client.query('SELECT pg_sleep(0.1)')))
    const owners = await Promise.all(clients.map((client) => workerOf(served, client)))
    expect(owners).toContain(number)
    await endAll(clients)
    expect(served.program.stderr).toMatch(
      /a worker ended and is replaced worker=\d .*signal=SIGKILL/,
    )
  })

  it('a worker that comes later hears of PAUSE', async () => {
    await askConsole(served, 'PAUSE app')
    const before = await askConsole(served, 'SHOW WORKERS')
    process.kill(Number(before[2]?.['pid']), 'SIGKILL')
    await waitFor(async () => {
      const [, , row] = await askConsole(served, 'SHOW WORKERS').catch(() => [])
      return row?.['state'] === 'ready' && row['pid'] !== before[2]?.['pid']
    })
    const paused = (await askConsole(served, 'SHOW POOLS')).map((row) => row['paused'])
    expect(paused).toEqual(Array(WORKERS).fill(true))
    await askConsole(served, 'RESUME')
    expect(await served.query('SELECT 1 AS one')).toEqual([{ one: 1 }])
  })

  it('RESTART WORKERS and SIGUSR2 replace one after the other, and transactions finish', async () => {
    const pids = async () => numbers(await askConsole(served, 'SHOW WORKERS'), 'pid')
    const restarted = async (before: number[], how: () => unknown) => {
      const client = await openClient(served)
      await client.query('BEGIN')
      await client.query('CREATE TEMP TABLE kept (i int) ON COMMIT DROP')
      const begun = how()
      // New clients are served all the while.
      let asked = 0
      await waitFor(
        async () => {
          // Clients that sit on a worker whose turn it is are told to connect again.
          await askOnce(served, 'SELECT 1').catch((error: pg.DatabaseError) => {
            if (error.code !== '57P01' && !/terminated/.test(error.message)) throw error
          })
          asked++
          if (asked === 5) {
            await client.query('INSERT INTO kept VALUES (1)')
            await client.query('COMMIT')
          }
          const now = await pids().catch(() => [])
          return now.length === WORKERS && now.every((pid) => pid > 0 && !before.includes(pid))
        },
        { deadlineMs: 30_000 },
      )
      await begun
      expect(asked).toBeGreaterThan(5)
      await client.end().catch(() => undefined)
    }
    await restarted(await pids(), () => askConsole(served, 'RESTART WORKERS'))
    await restarted(await pids(), () => served.program.signal('SIGUSR2'))
    await waitFor(async () =>
      (await askConsole(served, 'SHOW WORKERS')).every((row) => row['state'] === 'ready'),
    )
  })

  it('logs say which worker speaks', async () => {
    await tryConnect(served.url.replace('/app', '/nonsense'))
    await served.program.waitForOutput(/login refused.* worker=\d /)
  })

  it('B1: no process uses more than one core, and idle ones next to nothing', async () => {
    const workers = childrenOf(served.program.pid)
    const all = [...workers, served.program.pid]
    const before = all.map(cpuMsOf)
    const begun = performance.now()
    await waitFor(() => performance.now() - begun > 1500)
    const elapsed = performance.now() - begun
    for (const [i, pid] of all.entries())
      expect(cpuMsOf(pid) - (before[i] ?? 0)).toBeLessThan(elapsed * 0.2)
  })
})
