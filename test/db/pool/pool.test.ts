import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.js'
import { silentLog } from '../../../src/base/log.js'
import type { HostDefinition, PoolDefinition } from '../../../src/pool/definition.js'
import { Pools } from '../../../src/pool/pool-map.js'
import type { ServerCheckout, ShardPools } from '../../../src/pool/shard-pools.js'
import { openServer } from '../../../src/server/open-server.js'
import { startPostgres, type TestPostgres } from '../../support/postgres.js'
import { waitFor } from '../../support/wait-for.js'
import { defineHost, definePool } from '../../unit/pool/define.js'

let postgres: TestPostgres
let open: Pools[] = []

beforeAll(async () => {
  postgres = await startPostgres({ version: 15, count: 2 })
})
afterAll(() => postgres.stop())
afterEach(async () => {
  for (const pools of open.splice(0)) {
    pools.goOffline()
    await pools.whenDrained()
  }
})

function hostOn(server: number, rest: Parameters<typeof defineHost>[0] = {}): HostDefinition {
  const at = postgres.servers[server]
  if (!at) throw new Error('no such server')
  const target = {
    host: at.host,
    port: at.port,
    user: postgres.user,
    database: postgres.database,
    ...(postgres.password === undefined ? {} : { password: postgres.password }),
    parameters: { application_name: `pool-test-${open.length}` },
  }
  return defineHost({ target, ...rest })
}

function start(definition: PoolDefinition): { pools: Pools; app: ShardPools } {
  const pools = new Pools({
    clock: systemClock,
    random: Math.random,
    log: silentLog,
    openServer,
    roleCheckTimeoutMs: 1000,
  })
  open = [...open, pools]
  pools.apply([definition])
  pools.start()
  const app = pools.shardPools('u', 'app')
  if (!app) throw new Error('no pools')
  return { pools, app }
}

const pidOf = (checkout: ServerCheckout): number => checkout.resource.processId

describe('servers of PostgreSQL', () => {
  it('lends a server, keeps it, and lends it again at once', async () => {
    const { app } = start(definePool([[hostOn(0)]]))
    const first = await app.checkout(0, 'primary')
    const [result] = await first.resource.query('SELECT 41 + 1')
    expect(result?.rows).toEqual([['42']])
    first.release()
    const second = app.checkout(0, 'primary')
    expect(second).not.toBeInstanceOf(Promise)
    const again = await second
    expect(pidOf(again)).toBe(pidOf(first))
    again.release()
  })

  it('D167: does not lend a server whose transaction is open', async () => {
    const { app, pools } = start(definePool([[hostOn(0)]]))
    const first = await app.checkout(0, 'primary')
    await first.resource.query('BEGIN')
    first.release()
    const second = await app.checkout(0, 'primary')
    expect(pidOf(second)).not.toBe(pidOf(first))
    expect([...pools.all()][0]?.pool.counters.outOfSync).toBe(1)
    second.release()
  })

  it('D156: gives a good server without an error after idle backends were killed', async () => {
    const { app, pools } = start(definePool([[hostOn(0, { limits: { checkIntervalMs: 0 } })]]))
    const held = await Promise.all([0, 1, 2].map(() => app.checkout(0, 'primary')))
    const pids = held.map(pidOf)
    for (const one of held) one.release()
    await postgres.query(`SELECT pg_terminate_backend(p) FROM unnest($1::int[]) p`, [pids])
    const after = await app.checkout(0, 'primary')
    expect(pids).not.toContain(pidOf(after))
    expect((await after.resource.query('SELECT 1'))[0]?.rows).toEqual([['1']])
    after.release()
    await waitFor(() => [...pools.all()][0]?.pool.snapshot().total === 1)
  })

  it('names host and port of a dead shard, and never a password', async () => {
    const target = { host: '127.0.0.1', port: 1, user: 'u', database: 'd', password: 'hush' }
    const { app } = start(definePool([[hostOn(0)], [defineHost({ target })]]))
    const failed = await Promise.resolve(app.checkout(1, 'any')).catch((error: unknown) => error)
    expect(failed).toMatchObject({ code: 'POOL_CONNECT_FAILED', sqlstate: '08001' })
    const text = JSON.stringify([String(failed), failed])
    expect(text).toContain('shard 1 of database \\"app\\" at 127.0.0.1:1')
    expect(text).not.toContain('hush')
    const good = await app.checkout(0, 'primary')
    good.release()
  })
})

describe('reload', () => {
  it('D190, D192: keeps backends and open transactions when only the size changes', async () => {
    const host = hostOn(0)
    const { app, pools } = start(definePool([[host]]))
    const idle = await app.checkout(0, 'primary')
    const open = await app.checkout(0, 'primary')
    await open.resource.query('BEGIN')
    idle.release()
    pools.apply([definePool([[{ ...host, limits: { ...host.limits, maxSize: 7 } }]])])
    expect((await open.resource.query('COMMIT'))[0]?.tag).toBe('COMMIT')
    open.release()
    const pids = [await app.checkout(0, 'primary'), await app.checkout(0, 'primary')].map((one) => {
      const pid = pidOf(one)
      one.release()
      return pid
    })
    expect(pids.sort()).toEqual([pidOf(idle), pidOf(open)].sort())
    expect([...pools.all()][0]?.pool.snapshot()).toMatchObject({ total: 2, idle: 2 })
  })

  it('D191, D195: closes the old servers and opens new ones when the address changes; who waits is served', async () => {
    const limits = { ...hostOn(0).limits, maxSize: 1 }
    const { app, pools } = start(definePool([[{ ...hostOn(0), limits }]]))
    const held = await app.checkout(0, 'primary')
    const waiting = app.checkout(0, 'primary')
    pools.apply([definePool([[{ ...hostOn(1), limits }]])])
    const moved = await waiting
    expect(moved.resource.target.port).toBe(postgres.servers[1]?.port)
    held.release()
    expect(held.resource.closed).toBe(true)
    moved.release()
  })

  it('D211: refuses callers of a database that was removed, because its pool is offline', async () => {
    const { app, pools } = start(definePool([[hostOn(0)]]))
    ;(await app.checkout(0, 'primary')).release()
    pools.apply([])
    expect(pools.shardPools('u', 'app')).toBeUndefined()
    await expect(app.checkout(0, 'primary')).rejects.toMatchObject({ code: 'POOL_OFFLINE' })
  })
})

describe('pause', () => {
  it('D171: waits for lent servers, holds callers, and goes on', async () => {
    const { app, pools } = start(definePool([[hostOn(0)]]))
    const held = await app.checkout(0, 'primary')
    let isPaused = false
    const pausing = pools.pause({ database: 'app' }).then(() => {
      isPaused = true
    })
    const waiting = app.checkout(0, 'primary')
    expect(waiting).toBeInstanceOf(Promise)
    expect(isPaused).toBe(false)
    held.release()
    await pausing
    expect([...pools.all()][0]?.pool.snapshot()).toMatchObject({ total: 0, waiting: 1 })
    pools.resume({ database: 'app' })
    ;(await waiting).release()
  })
})
