/** Transactions that wait for each other over shards, or in our own pools: one gives way in time, nobody hangs. */
import pg from 'pg'
import { beforeEach, describe, expect, it } from 'vitest'
import { expectNothingLeft } from '../../support/leak-check.js'
import { makeRandom } from '../../support/random.js'
import { bySize } from '../../support/test-size.js'
import { waitFor } from '../../support/wait-for.js'
import { failure, SHARDS, type ShardedRig, useShardedRig } from '../session/sharded-rig.js'

const fill = async (rig: ShardedRig) => {
  await rig.everywhere('truncate item')
  for (let shard = 0; shard < SHARDS; shard++)
    for (const id of [1, 2])
      await rig.onShard(shard, 'insert into item values ($1, $2, $3)', [rig.key(shard), id, '100'])
}

const total = async (rig: ShardedRig): Promise<number> => {
  const sums = await rig.everywhere('select coalesce(sum(v::int), 0)::int as s from item')
  return sums.reduce((sum, rows) => sum + Number(rows[0]?.['s']), 0)
}

const nothingLeft = async (rig: ShardedRig) => {
  for (let shard = 0; shard < SHARDS; shard++)
    await expectNothingLeft((sql) => rig.onShard(shard, sql))
}

const ADD = 'update item set v = (v::int + $1)::text where k = $2 and id = $3'

/** Looks from outside, all the time, for transactions that wait for each other in a circle: how long the longest stood in one. */
function watchCircles(rig: ShardedRig): { stop(): Promise<number> } {
  let isStopped = false
  const since = new Map<string, number>()
  let longest = 0
  const run = async () => {
    const end = performance.now() + 100_000
    while (!isStopped && performance.now() < end) {
      const at = performance.now()
      const stuck = inCircles(await waitsNow(rig))
      for (const name of since.keys()) if (!stuck.has(name)) since.delete(name)
      for (const name of stuck) {
        const from = since.get(name) ?? at
        since.set(name, from)
        longest = Math.max(longest, at - from)
      }
    }
  }
  const running = run()
  return {
    stop: async () => {
      isStopped = true
      await running
      return Math.round(longest)
    },
  }
}

/** Pairs of transactions, by the names that their clients gave them. */
async function waitsNow(rig: ShardedRig): Promise<Map<string, Set<string>>> {
  const waits = new Map<string, Set<string>>()
  const rows = await rig.everywhere(
    `select a.application_name as waiter, b.application_name as blocker
     from pg_stat_activity a, unnest(pg_blocking_pids(a.pid)) p (pid), pg_stat_activity b
     where a.datname = current_database() and a.wait_event_type = 'Lock' and b.pid = p.pid`,
  )
  for (const { waiter, blocker } of rows.flat()) {
    const known = waits.get(String(waiter)) ?? new Set()
    waits.set(String(waiter), known.add(String(blocker)))
  }
  return waits
}

/** Those from which a way leads back to themselves. */
function inCircles(waits: ReadonlyMap<string, ReadonlySet<string>>): Set<string> {
  const comesBack = (start: string): boolean => {
    const seen = new Set<string>()
    const open = [...(waits.get(start) ?? [])]
    for (let name = open.pop(); name !== undefined; name = open.pop()) {
      if (name === start) return true
      if (seen.has(name)) continue
      seen.add(name)
      open.push(...(waits.get(name) ?? []))
    }
    return false
  }
  return new Set([...waits.keys()].filter(comesBack))
}

describe('deadlocks over shards', () => {
  // room for every client: whoever does not come to an end waits for locks alone
  const rig = useShardedRig([
    `default_pool_size = ${bySize(8, 50)}`,
    'cross_shard_deadlock_ms = 300',
    'checkout_timeout = 30000',
  ])
  const add = (client: pg.Client, shard: number, amount: number, id = 1) =>
    client.query(ADD, [amount, rig().key(shard), id])

  beforeEach(() => fill(rig()), 20_000)

  it('end by the youngest, who hears 40P01; the other goes on although the victim is still there', async () => {
    const [older, younger] = await Promise.all([rig().served.connect(), rig().served.connect()])
    for (const client of [older, younger]) await client.query('begin')
    await add(older, 0, -10)
    await add(younger, 1, -10)
    const waits = add(older, 1, 10)
    const victim = failure(add(younger, 0, 10))
    const from = performance.now()
    expect(await victim).toMatch(/^40P01 deadlock detected over shards/)
    await waits
    expect(performance.now() - from).toBeLessThan(3000)
    expect(await failure(younger.query('select 1'))).toMatch(/^25P02 /)
    expect((await older.query('commit')).command).toBe('COMMIT')
    expect((await younger.query('commit')).command).toBe('ROLLBACK')
    expect(await total(rig())).toBe(600)
    await add(younger, 0, 0)
    await Promise.all([older.end(), younger.end()])
    await nothingLeft(rig())
  })

  it('are found over three shards, through a transaction of one shard only', async () => {
    const clients = await Promise.all([0, 1, 2, 3].map(() => rig().served.connect()))
    for (const client of clients) await client.query('begin')
    const [a, b, c, single] = clients as [pg.Client, pg.Client, pg.Client, pg.Client]
    await add(a, 0, 1)
    await add(b, 1, 1)
    await add(c, 2, 1)
    await add(single, 2, 1, 2)
    // single waits for c on shard 2, a for b, b for single, c for a
    const ends = [add(single, 2, 1), add(a, 1, 1), add(b, 2, 1, 2), add(c, 0, 1)].map((one) =>
      one.then(
        () => 'ok',
        (error) => error.code,
      ),
    )
    expect(await Promise.race(ends)).toBe('40P01')
    await Promise.all(clients.map((client) => client.end()))
    await Promise.all(ends)
  })

  it('leave to the client what it locked before a savepoint', async () => {
    const [older, younger] = await Promise.all([rig().served.connect(), rig().served.connect()])
    for (const client of [older, younger]) await client.query('begin')
    await add(older, 0, -10)
    await add(younger, 1, -10)
    await younger.query('savepoint s')
    const waits = add(older, 1, 10)
    expect(await failure(add(younger, 0, 10))).toMatch(/^40P01 /)
    await younger.query('rollback to s')
    await add(younger, 2, 10)
    await younger.query('commit')
    await waits
    await older.query('commit')
    expect(await total(rig())).toBe(600)
    await Promise.all([older.end(), younger.end()])
  })

  it('do not end a statement that only waits long', async () => {
    const [holder, waiter] = await Promise.all([rig().served.connect(), rig().served.connect()])
    for (const client of [holder, waiter]) await client.query('begin')
    await add(holder, 0, 1)
    await add(holder, 1, 1)
    await add(waiter, 2, 1)
    const waits = add(waiter, 0, 1)
    await holder.query('select pg_sleep(1)')
    await holder.query('commit')
    await waits
    await waiter.query('commit')
    await Promise.all([holder.end(), waiter.end()])
  })

  it('in both orders by many clients: each ends in time, and the sum stays', async () => {
    const until = performance.now() + bySize(4, 60) * 1000
    const random = makeRandom(41)
    const outcomes = new Map<string, number>()
    const circles = watchCircles(rig())
    const transfer = async (client: pg.Client, name: string, count: number) => {
      // names a transaction on each of its servers
      await client.query(`set application_name to '${name}.${count}'`)
      const from = Math.floor(random() * SHARDS)
      const to = (from + 1 + Math.floor(random() * (SHARDS - 1))) % SHARDS
      const end = await (async () => {
        await client.query('begin')
        await add(client, from, -1)
        await add(client, to, 1)
        await client.query('commit')
        return 'COMMIT'
      })().catch(async (error) => {
        await client.query('rollback')
        return String(error.code)
      })
      outcomes.set(end, (outcomes.get(end) ?? 0) + 1)
    }
    await Promise.all(
      Array.from({ length: bySize(8, 50) }, async (_, number) => {
        const client = await rig().served.connect()
        for (let i = 0; performance.now() < until; i++) await transfer(client, `c${number}`, i)
        await client.end()
      }),
    )
    const longestMs = await circles.stop()
    console.log(`${JSON.stringify(Object.fromEntries(outcomes))}, longest deadlock ${longestMs} ms`)
    expect([...outcomes.keys()].sort()).toEqual(
      outcomes.size > 1 ? ['40P01', 'COMMIT'] : ['COMMIT'],
    )
    expect(outcomes.get('COMMIT')).toBeGreaterThan(5)
    // three seconds where the machine is the test's own
    expect(longestMs).toBeLessThan(bySize(15_000, 3000))
    expect(await total(rig())).toBe(600)
    await nothingLeft(rig())
  }, 120_000)
})

describe.each([1, 2])('pools of %i servers and 20 clients', (size) => {
  const rig = useShardedRig([
    `default_pool_size = ${size}`,
    'cross_shard_deadlock_ms = 300',
    'checkout_timeout = 30000',
  ])

  it('never hang: transactions over shards in any order, and scatters', async () => {
    await fill(rig())
    const random = makeRandom(97 + size)
    const outcomes = new Map<string, number>()
    const one = async (client: pg.Client) => {
      if (random() < 0.3) {
        await client.query('select id from item')
        return 'READ'
      }
      await client.query('begin')
      const first = Math.floor(random() * SHARDS)
      for (let i = 0; i < 2; i++)
        await client.query(ADD, [i === 0 ? -1 : 1, rig().key((first + i) % SHARDS), 1])
      if (random() < 0.3) await client.query('select id from item')
      await client.query('commit')
      return 'COMMIT'
    }
    const until = performance.now() + bySize(3, 30) * 1000
    await Promise.all(
      Array.from({ length: 20 }, async () => {
        const client = await rig().served.connect()
        while (performance.now() < until) {
          const end = await one(client).catch(async (error) => {
            await client.query('rollback')
            return String(error.code)
          })
          outcomes.set(end, (outcomes.get(end) ?? 0) + 1)
        }
        await client.end()
      }),
    )
    console.log(`pools of ${size}: ${JSON.stringify(Object.fromEntries(outcomes))}`)
    const known = ['READ', 'COMMIT', '40P01', '40001']
    expect([...outcomes.keys()].filter((end) => !known.includes(end))).toEqual([])
    expect(outcomes.get('COMMIT') ?? 0).toBeGreaterThan(5)
    expect(await total(rig())).toBe(600)
    await nothingLeft(rig())
  }, 120_000)
})

describe('pools of one server', () => {
  const rig = useShardedRig(['default_pool_size = 1', 'checkout_timeout = 20000'])
  beforeEach(() => fill(rig()), 20_000)

  const isWaiting = async (admin: pg.Client, count = 1) => {
    const { rows } = await admin.query('show clients')
    return rows.filter(({ state }) => state === 'waiting').length >= count
  }

  it('scatters take their servers all or none: a transaction gets what one has not used', async () => {
    const admin = new pg.Client(rig().served.adminUrl)
    await admin.connect()
    const [writer, reader] = await Promise.all([rig().served.connect(), rig().served.connect()])
    await writer.query('begin')
    await writer.query(ADD, [-1, rig().key(2), 1])
    const read = reader.query('select id from item')
    await waitFor(() => isWaiting(admin), { what: 'the scatter in line for the last shard' })
    for (const shard of [1, 0]) await writer.query(ADD, [1, rig().key(shard), 1])
    expect((await writer.query('commit')).command).toBe('COMMIT')
    expect((await read).rows).toHaveLength(SHARDS * 2)
    await Promise.all([writer.end(), reader.end(), admin.end()])
  })

  it('the sweep does not wait for a server whose client waits for the lock of what is swept', async () => {
    const [{ id, cluster_id: cluster } = {}] = await rig().onShard(
      1,
      'select id, cluster_id from pgshard.shard where is_here',
    )
    const gid = `pgshard_${cluster}_${id}_${'cd'.repeat(16)}_${id}`
    await rig().onShard(1, 'begin')
    await rig().onShard(1, 'update item set v = v')
    await rig().onShard(1, `prepare transaction '${gid}'`)
    const client = await rig().served.connect()
    await client.query(ADD, [1, rig().key(1), 1])
    await client.end()
    await nothingLeft(rig())
  }, 30_000)
})
