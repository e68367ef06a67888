/** What a client of `serve` is told when no replica can be used: each is down, or was banned by hand. */
import type pg from 'pg'
import { afterEach, expect, test } from 'vitest'
import { type Served, startServe } from '../../support/serve.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'
import { askConsole } from '../../support/workers.js'

const postgres = usePostgres({ count: 3, own: true })
const clients: pg.Client[] = []

afterEach(async () => {
  for (const client of clients.splice(0)) await client.end().catch(() => undefined)
})

/** Reads go to the replicas alone; nothing asks hosts of its own accord. */
async function start(): Promise<{ served: Served; client: pg.Client }> {
  const shards = postgres().servers.map(({ host, port }, i) => ({
    host,
    port,
    database: postgres().database,
    shard: 0,
    role: i === 0 ? ('primary' as const) : ('replica' as const),
  }))
  const served = await startServe({
    shards,
    general: [
      'min_pool_size = 0',
      'idle_healthcheck_interval = 0',
      'read_write_split = "exclude_primary"',
    ],
  })
  const client = await served.connect()
  client.on('error', () => undefined)
  clients.push(client)
  return { served, client }
}

const failureOf = (work: Promise<unknown>): Promise<{ code: string; message: string }> =>
  work.then(
    () => {
      throw new Error('it did not fail')
    },
    ({ code, message }) => ({ code, message }),
  )

async function replicasOf(served: Served): Promise<Record<string, string>[]> {
  return (await askConsole(served, 'SHOW POOLS')).filter(({ role }) => role === 'replica')
}

test('D211, D215: ManualBan names the ban while every host has one by hand, until UNBAN', async () => {
  const { served, client } = await start()
  await client.query('SELECT 1 AS x')
  const pools = await askConsole(served, 'SHOW POOLS')
  for (const { id } of pools) await askConsole(served, `BAN ${id}`)
  const failure = await failureOf(client.query('SELECT 2 AS x'))
  expect(failure.code).toBe('57P03')
  expect(failure.message).toMatch(/^the pool of .* is banned by an operator$/)
  expect(await askConsole(served, 'SHOW BANS')).toHaveLength(pools.length)
  await askConsole(served, 'UNBAN')
  expect((await client.query('SELECT 3 AS x')).rows).toEqual([{ x: 3 }])
})

test('D211, D214: AllReplicasDown names the hosts when none answers', async () => {
  const { served, client } = await start()
  await client.query('SELECT 1 AS x')
  expect(await replicasOf(served)).toHaveLength(2)
  for (const { pid } of postgres().servers) process.kill(pid, 'SIGKILL')
  // the first may still hear of the server that it had
  let failure = { code: '', message: '' }
  await waitFor(async () => {
    failure = await failureOf(client.query('SELECT 2 AS x'))
    return failure.message.startsWith('all hosts of shard 0 of database "app"')
  })
  expect(failure.code).toBe('08001')
  // those that this attempt had tried: two at least, or it would say what is wrong with the one
  const named = [...failure.message.matchAll(/127\.0\.0\.1:(\d+)/g)].map(([, port]) => Number(port))
  const known = postgres().servers.map(({ port }) => port)
  expect(new Set(named).size).toBeGreaterThanOrEqual(2)
  expect(named.filter((port) => !known.includes(port))).toEqual([])
})
