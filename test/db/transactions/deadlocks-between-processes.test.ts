/** Deadlocks over shards whose transactions belong to several workers or proxies, or to one that is committing. */
import type pg from 'pg'
import { beforeEach, describe, expect, it } from 'vitest'
import { expectNothingLeft } from '../../support/leak-check.js'
import { makeRandom } from '../../support/random.js'
import type { Served } from '../../support/serve.js'
import { bySize } from '../../support/test-size.js'
import { waitFor } from '../../support/wait-for.js'
import { workerOf } from '../../support/workers.js'
import { failure, SHARDS, useShardedRig } from '../session/sharded-rig.js'

const ADD = 'update item set v = (v::int + $1)::text where k = $2 and id = 1'

describe('deadlocks between processes (hard-parts §3.3)', () => {
  // Fifty clients queue for the servers of few: who waits long for one is no matter of deadlocks.
  const rig = useShardedRig([
    'default_pool_size = 8',
    'checkout_timeout = 60000',
    'cross_shard_deadlock_ms = 300',
  ])
  const add = (client: pg.Client, shard: number, amount = 1) =>
    client.query(ADD, [amount, rig().key(shard)])

  beforeEach(async () => {
    await rig().everywhere('truncate item')
    for (let shard = 0; shard < SHARDS; shard++)
      await rig().onShard(shard, 'insert into item values ($1, 1, 100)', [rig().key(shard)])
  }, 20_000)

  const total = async (): Promise<number> => {
    const sums = await rig().everywhere('select sum(v::int)::int as s from item')
    return sums.reduce((sum, rows) => sum + Number(rows[0]?.['s']), 0)
  }

  /** The two wait for each other on shards 0 and 1; the younger is ended. */
  const meet = async (older: pg.Client, younger: pg.Client) => {
    for (const client of [older, younger]) await client.query('begin')
    await add(older, 0)
    await add(younger, 1)
    const waits = add(older, 1)
    expect(await failure(add(younger, 0))).toMatch(/^40P01 deadlock detected over shards/)
    await waits
    expect((await older.query('commit')).command).toBe('COMMIT')
    expect((await younger.query('commit')).command).toBe('ROLLBACK')
  }

  /** Two clients of different workers. */
  const onTwoWorkers = async (served: Served): Promise<pg.Client[]> => {
    const known = new Map<number, pg.Client>()
    await waitFor(
      async () => {
        const client = await served.connect()
        const worker = await workerOf(served, client)
        if (known.has(worker)) await client.end()
        else known.set(worker, client)
        return known.size === 2
      },
      { what: 'clients of two workers' },
    )
    return [...known.values()]
  }

  it('of two proxies end by the younger, wherever it is', async () => {
    const other = await rig().another()
    const here = await rig().served.connect()
    const there = await other.connect()
    await meet(here, there)
    await meet(there, here)
    await Promise.all([here.end(), there.end()])
    await other.program.stop()
  }, 40_000)

  it('of two workers end by the younger; transfers in both orders all end, and the sum stays', async () => {
    const served = await rig().another('--workers', '2')
    const [a, b] = (await onTwoWorkers(served)) as [pg.Client, pg.Client]
    await meet(a, b)
    await meet(b, a)
    await Promise.all([a.end(), b.end()])
    const random = makeRandom(5)
    const until = performance.now() + bySize(3, 60) * 1000
    const outcomes = new Map<string, number>()
    const transfer = async (client: pg.Client) => {
      const from = Math.floor(random() * SHARDS)
      await client.query('begin')
      await add(client, from, -1)
      await add(client, (from + 1 + Math.floor(random() * 2)) % SHARDS, 1)
      return (await client.query('commit')).command
    }
    const before = await total()
    await Promise.all(
      Array.from({ length: bySize(6, 50) }, async () => {
        const client = await served.connect()
        while (performance.now() < until) {
          const end = await transfer(client).catch(async (error) => {
            await client.query('rollback')
            return String(error.code)
          })
          outcomes.set(end, (outcomes.get(end) ?? 0) + 1)
        }
        await client.end()
      }),
    )
    expect([...outcomes.keys()].filter((end) => end !== 'COMMIT' && end !== '40P01')).toEqual([])
    expect(outcomes.get('COMMIT')).toBeGreaterThan(3)
    expect(await total()).toBe(before)
    for (let shard = 0; shard < SHARDS; shard++)
      await expectNothingLeft((sql) => rig().onShard(shard, sql))
    await served.program.stop()
  }, 150_000)

  /** One locks what the other needs for its decision, and then waits for what that one has prepared. */
  const meetAtCommit = async (isCommitterYounger: boolean) => {
    const clients = await Promise.all([rig().served.connect(), rig().served.connect()])
    const [blocker, committer] = clients as [pg.Client, pg.Client]
    const lock = async () => {
      await blocker.query('begin')
      const mode = 'access exclusive mode'
      await blocker.query(`/* pgdog_shard: 0 */ lock table pgshard.decision in ${mode}`)
    }
    if (isCommitterYounger) await lock()
    await committer.query('begin')
    for (const shard of [0, 1]) await add(committer, shard)
    if (!isCommitterYounger) await lock()
    const commit = committer.query('commit')
    await waitFor(
      async () => (await rig().onShard(1, 'select gid from pg_prepared_xacts')).length > 0,
      { what: 'the prepared transaction' },
    )
    return { blocker, committer, commit, wait: add(blocker, 1) }
  }

  it('of one that has prepared and cannot decide end by it when it is the younger', async () => {
    const { blocker, committer, commit, wait } = await meetAtCommit(true)
    expect(await failure(commit)).toMatch(/^40P01 deadlock detected over shards/)
    await wait
    await blocker.query('rollback')
    expect(await total()).toBe(300)
    await Promise.all([blocker.end(), committer.end()])
  }, 40_000)

  it('of one that has prepared and cannot decide end by the other when that is the younger', async () => {
    const { blocker, committer, commit, wait } = await meetAtCommit(false)
    expect(await failure(wait)).toMatch(/^40P01 deadlock detected over shards/)
    await blocker.query('rollback')
    expect((await commit).command).toBe('COMMIT')
    expect(await total()).toBe(302)
    await Promise.all([blocker.end(), committer.end()])
    for (let shard = 0; shard < SHARDS; shard++)
      await expectNothingLeft((sql) => rig().onShard(shard, sql))
  }, 40_000)
})
