/** Reads of all shards: one answer, one error, and no memory however large the answer and slow the client. */
import { readFileSync } from 'node:fs'
import type pg from 'pg'
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest'
import { expectNothingLeft } from '../../support/leak-check.js'
import { sendCancel } from '../../support/send-cancel.js'
import { type Spoiler, startSpoiler } from '../../support/spoiler.js'
import { bySize } from '../../support/test-size.js'
import { waitFor } from '../../support/wait-for.js'
import { failure, RawClient, SHARDS, type ShardedRig, useShardedRig } from './sharded-rig.js'

const ROWS = 3000
const BIG_ROWS = bySize(2_000_000, 6_000_000)
const MAX_GROWTH_KB = 100 * 1024
/** Runs until it is stopped, on every shard. */
const ENDLESS = 'select id from item where pg_sleep(0.01) is not null'

describe('reads of all shards', () => {
  let door: Spoiler
  const rig = useShardedRig(['default_pool_size = 4'], {
    addresses: async (shards) => {
      const last = shards.at(-1)!
      door = await startSpoiler({ host: last.host, port: last.port })
      return [...shards.slice(0, -1), { ...last, port: door.port }]
    },
  })
  let client: pg.Client
  let filled = false

  beforeEach(async () => {
    client = await rig().served.connect()
    client.on('error', () => undefined)
    if (filled) return
    filled = true
    for (let shard = 0; shard < SHARDS; shard++)
      await rig().onShard(
        shard,
        `insert into item select ${rig().key(shard)}, n * ${SHARDS} + ${shard}, 'row ' || n from generate_series(0, ${ROWS / SHARDS - 1}) n`,
      )
  })
  afterEach(async () => {
    await client.end()
    for (let shard = 0; shard < SHARDS; shard++)
      await expectNothingLeft((sql) => rig().onShard(shard, sql))
  })
  afterAll(() => door?.close())

  const all = Array.from({ length: ROWS }, (_, id) => id)
  const sorted = (rows: { id: number }[]) => rows.map(({ id }) => id).sort((a, b) => a - b)

  it('D68, D119, D134: are the rows of every shard, in text and binary, with and without parameters', async () => {
    const read = await client.query('select id, v from item')
    expect(read.command).toBe('SELECT')
    expect(read.rowCount).toBe(ROWS)
    expect(sorted(read.rows)).toEqual(all)
    const named = { name: 'above', text: 'select id from item where id >= $1' }
    for (const from of [0, 1000, ROWS - 1, ROWS]) {
      const some = await client.query({ ...named, values: [from] })
      expect(sorted(some.rows)).toEqual(all.slice(from))
    }
    const binary = { text: 'select id from item where id < $1', values: [10], binary: true }
    expect(sorted((await client.query(binary)).rows)).toEqual(all.slice(0, 10))
  })

  it('see in a transaction what it wrote on each shard', async () => {
    await client.query('begin')
    for (let shard = 0; shard < SHARDS; shard++) {
      const values = [rig().key(shard), ROWS + shard, 'mine']
      await client.query('insert into item values ($1, $2, $3)', values)
    }
    const mine = 'select id from item where v = $1'
    expect(sorted((await client.query(mine, ['mine'])).rows)).toEqual([ROWS, ROWS + 1, ROWS + 2])
    expect(await rig().served.query(mine, ['mine'])).toEqual([])
    await client.query('rollback')
    expect((await client.query(mine, ['mine'])).rows).toEqual([])
  })

  const failing = `select 1 / (id - ${ROWS - 2}) from item`

  it('D132: fail with the error of one shard, which is named, and go on', async () => {
    for (const query of [failing, { text: failing, values: [] }, { name: 'f', text: failing }]) {
      const error = (await client
        .query(query as string)
        .catch((cause) => cause)) as pg.DatabaseError
      expect(error.message).toBe('division by zero')
      expect(error.code).toBe('22012')
      expect(error.detail).toBe(`shard 1 of ${SHARDS}`)
      expect(sorted((await client.query('select id from item')).rows)).toEqual(all)
    }
  })

  it('abort the transaction when one shard fails', async () => {
    await client.query('begin')
    await client.query('savepoint s')
    expect(await failure(client.query(failing))).toBe('22012 division by zero')
    expect(await failure(client.query('select id from item'))).toMatch(/^25P02 /)
    await client.query('rollback to s')
    expect((await client.query('select id from item')).rowCount).toBe(ROWS)
    expect(await failure(client.query(failing))).toBe('22012 division by zero')
    expect((await client.query('commit')).command).toBe('ROLLBACK')
    expect((await client.query('select id from item')).rowCount).toBe(ROWS)
  })

  /** Processes of a shard's server that work at ENDLESS. */
  const working = (shard: number, rigOf: ShardedRig) =>
    rigOf.onShard(
      shard,
      `select pid from pg_stat_activity where datname = current_database() and state = 'active' and query like '%pg_sleep%' and pid <> pg_backend_pid()`,
    )
  const allWork = () =>
    waitFor(async () => {
      const counts = await Promise.all(all.slice(0, SHARDS).map((shard) => working(shard, rig())))
      return counts.every((rows) => rows.length === 1)
    })
  const noneWorks = () =>
    waitFor(async () => {
      const counts = await Promise.all(all.slice(0, SHARDS).map((shard) => working(shard, rig())))
      return counts.every((rows) => rows.length === 0)
    })

  it.each(['outside', 'inside'])(
    'end with one error when a server dies, %s a transaction',
    async (where) => {
      if (where === 'inside') await client.query('begin')
      const read = failure(client.query(ENDLESS))
      await allWork()
      const [victim] = await working(1, rig())
      await rig().onShard(1, 'select pg_terminate_backend($1)', [victim?.['pid']])
      expect(await read).toBe('57P01 terminating connection due to administrator command')
      await noneWorks()
      if (where === 'inside') {
        expect(await failure(client.query('select id from item'))).toMatch(/^25P02 /)
        expect((await client.query('commit')).command).toBe('ROLLBACK')
      }
      expect((await client.query('select id from item')).rowCount).toBe(ROWS)
    },
  )

  it.each(['close', 'reset'] as const)(
    'end with one error when a connection is cut (%s)',
    async (fault) => {
      const read = failure(client.query(ENDLESS))
      await allWork()
      door.strike(fault)
      expect(await read).toMatch(
        new RegExp(`^08006 connection to server 127.0.0.1:${door.port}.* was lost`),
      )
      await waitFor(async () => (await client.query('select id from item')).rowCount === ROWS)
      await noneWorks()
    },
  )

  it.each(['outside', 'inside'])('end on cancel, %s a transaction', async (where) => {
    if (where === 'inside') await client.query('begin')
    const read = failure(client.query(ENDLESS))
    await allWork()
    await sendCancel(client, rig().served.port)
    expect(await read).toBe('57014 canceling statement due to user request')
    await noneWorks()
    if (where === 'inside') expect((await client.query('rollback')).command).toBe('ROLLBACK')
    for (let i = 0; i < 20; i++)
      expect((await client.query('select id from item')).rowCount).toBe(ROWS)
  })

  it('stop when their client vanishes', async () => {
    const lost = await RawClient.open(rig().served.port)
    lost.query(ENDLESS).send()
    await allWork()
    lost.end()
    await noneWorks()
    expect((await client.query('select id from item')).rowCount).toBe(ROWS)
  })
})

describe('a large answer for a slow client', () => {
  const rig = useShardedRig()
  let reader: RawClient | undefined
  // a server that waits for it would hold up DROP DATABASE
  afterEach(() => reader?.end())

  it(`does not grow serve by ${BIG_ROWS} rows`, async () => {
    for (let shard = 0; shard < SHARDS; shard++) {
      const rows = Math.floor(BIG_ROWS / SHARDS) + (shard < BIG_ROWS % SHARDS ? 1 : 0)
      await rig().onShard(
        shard,
        `insert into big select ${rig().key(shard)}, n from generate_series(1, ${rows}) n`,
      )
    }
    const client = await RawClient.open(rig().served.port, false)
    reader = client
    const { pid } = rig().served.program
    const before = residentKb(pid)
    let peak = before
    const look = () => {
      peak = Math.max(peak, residentKb(pid))
    }
    client.socket.pause()
    client.query('select k, n from big').send()
    // every buffer on the way is full: the servers are held up, and nothing moves
    await waitFor(
      async () => {
        look()
        return (await waitingServers(rig())) === SHARDS
      },
      { deadlineMs: 30_000, what: 'servers that wait for the client' },
    )
    client.socket.resume()
    let burst = 0
    await waitFor(
      () => {
        look()
        if (client.bytesHeard - burst > 4_000_000) {
          burst = client.bytesHeard
          client.socket.pause()
          setTimeout(() => client.socket.resume(), 10)
        }
        return client.heard.some((one) => one.startsWith('Z'))
      },
      { deadlineMs: 100_000, intervalMs: 2, what: 'the end of the answer' },
    )
    expect(client.heard.filter((one) => one !== 'T')).toEqual([`C SELECT ${BIG_ROWS}`, 'Z I'])
    expect(peak - before).toBeLessThan(MAX_GROWTH_KB)
  }, 240_000)
})

const residentKb = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])

/** Shards whose server waits until its answer is taken. */
async function waitingServers(rig: ShardedRig): Promise<number> {
  const counts = await rig.everywhere(
    `select 1 from pg_stat_activity where datname = current_database() and wait_event = 'ClientWrite'`,
  )
  return counts.filter((rows) => rows.length > 0).length
}
