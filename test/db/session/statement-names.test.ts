/** Prepared statements of SQL and the protocol under one set of names a client, on servers that clients share. */
import pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Served, startServe } from '../../support/serve.js'
import { usePostgres } from '../../support/use-postgres.js'
import { fieldsOf, rowsOf, say, WireClient } from '../../support/wire-client.js'

describe('names of prepared statements', () => {
  const postgres = usePostgres({ version: 15 })
  let one: Served
  let three: Served

  beforeAll(async () => {
    const { host, port } = postgres().servers[0]!
    const shards = [{ host, port, database: postgres().database }]
    const general = (size: number) => [
      `default_pool_size = ${size}`,
      'min_pool_size = 0',
      'checkout_timeout = 20000',
    ]
    one = await startServe({ shards, general: general(1) })
    three = await startServe({ shards, general: general(3) })
  })

  const failure = async (client: WireClient, ...messages: Buffer[]) => {
    const answers = await client.ask(messages)
    const error = answers.flat().find(({ tag }) => tag === 'E')
    return error && `${fieldsOf(error)['C']} ${fieldsOf(error)['M']}`
  }

  it('D176, D180: SQL PREPARE keeps no server, and EXECUTE finds its statement on every one', async () => {
    const client = await WireClient.open(three)
    await client.rows('prepare plus (int) as select $1 + 1')
    const seen = new Set<string>()
    // holders take servers in turn, so that the client meets all three
    for (let round = 0; round < 12; round++) {
      const holders = await Promise.all([WireClient.open(three), WireClient.open(three)])
      const taken = round % 3
      for (const holder of holders.slice(0, taken)) await holder.rows('begin; select 1')
      await client.rows('begin')
      const [[sum], [pid]] = [
        (await client.rows(`execute plus (${round})`))[0]!,
        (await client.rows('select pg_backend_pid()'))[0]!,
      ]
      await client.rows('commit')
      expect(sum).toBe(String(round + 1))
      seen.add(String(pid))
      for (const holder of holders) await holder.end()
    }
    expect(seen.size).toBeGreaterThan(1)
    await client.end()
  })

  it('D177: are each client’s own, in SQL as in the protocol', async () => {
    const first = await WireClient.open(one)
    const second = await WireClient.open(one)
    await first.rows("prepare s as select 'first'")
    await second.ask([say.parse('s', "select 'second'"), say.sync()])
    for (let i = 0; i < 30; i++) {
      expect(await first.rows('execute s')).toEqual([['first']])
      expect(await second.rows('execute s')).toEqual([['second']])
      const [answer = []] = await first.ask([say.bind('s'), say.execute(), say.sync()])
      expect(rowsOf(answer)).toEqual([['first']])
    }
    await second.rows('deallocate s')
    expect(await failure(second, say.query('execute s'))).toBe(
      '26000 prepared statement "s" does not exist',
    )
    expect(await first.rows('execute s')).toEqual([['first']])
    expect(await failure(first, say.query('prepare s as select 3'))).toBe(
      '42P05 prepared statement "s" already exists',
    )
    await Promise.all([first.end(), second.end()])
  })

  it('D181: may be closed and used again for another text', async () => {
    const client = await WireClient.open(one)
    await client.ask([say.parse('a', 'select 1'), say.sync()])
    await client.ask([say.close('a'), say.parse('a', 'select 2'), say.sync()])
    const [answer = []] = await client.ask([say.bind('a'), say.execute(), say.sync()])
    expect(rowsOf(answer)).toEqual([['2']])
    expect(await failure(client, say.parse('a', 'select 3'), say.sync())).toBe(
      '42P05 prepared statement "a" already exists',
    )
    await client.end()
  })

  it('D178: are not shared by clients that read the text differently', async () => {
    const open = (DateStyle: string) => WireClient.open({ ...one, parameters: { DateStyle } })
    const [day, month] = await Promise.all([open('ISO, DMY'), open('ISO, MDY')])
    const sql = "select date '01/02/2024'::text"
    const ask = async (client: WireClient) => {
      const [answer = []] = await client.ask([
        say.parse('d', sql),
        say.bind('d'),
        say.execute(),
        say.close('d'),
        say.sync(),
      ])
      return rowsOf(answer)
    }
    for (let i = 0; i < 2; i++) {
      expect(await ask(day)).toEqual([['2024-02-01']])
      expect(await ask(month)).toEqual([['2024-01-02']])
    }
    await Promise.all([day.end(), month.end()])
  })

  it('keep the meaning that a text had when it was prepared', async () => {
    const client = await WireClient.open({ ...one, parameters: { DateStyle: 'ISO, DMY' } })
    await client.ask([say.parse('d', "select date '01/02/2024'::text"), say.sync()])
    await client.rows("prepare e as select date '01/02/2024'::text")
    await client.rows("set datestyle to 'ISO, MDY'")
    // the server forgets both
    const other = await WireClient.open(one)
    await other.rows('discard all')
    const [answer = []] = await client.ask([say.bind('d'), say.execute(), say.sync()])
    expect(rowsOf(answer)).toEqual([['2024-02-01']])
    await other.rows('discard all')
    await client.rows('begin')
    expect(await client.rows('execute e')).toEqual([['2024-02-01']])
    expect(await client.rows('show datestyle')).toEqual([['ISO, MDY']])
    await client.rows('commit')
    await Promise.all([client.end(), other.end()])
  })

  it('take 65,535 parameters', async () => {
    const client = await WireClient.open(one)
    const places = Array.from({ length: 65_535 }, (_, i) => `$${i + 1}::int`)
    const sql = `select sum(n) from unnest(array[${places.join(',')}]) n`
    const [answer = []] = await client.ask([
      say.parse('many', sql),
      say.bind(
        'many',
        places.map(() => '2'),
      ),
      say.execute(),
      say.sync(),
    ])
    expect(rowsOf(answer)).toEqual([['131070']])
    await client.end()
  })

  it('D182: are counted, those that a server had and those that it had to prepare', async () => {
    const counted = async () => {
      const console_ = new pg.Client({ connectionString: one.adminUrl })
      await console_.connect()
      const { rows } = await console_.query<Record<string, string>>('show stats')
      await console_.end()
      const app = rows.find(({ database }) => database === 'app')!
      return [Number(app['total_prepared_hits']), Number(app['total_prepared_misses'])]
    }
    const client = await WireClient.open(one)
    const use = [say.bind('counted'), say.execute(), say.sync()]
    const [hits = 0, misses = 0] = await counted()
    // in transactions, where no server is shared at the same time
    await client.rows('begin')
    await client.ask([say.parse('counted', "select 'counted'"), ...use])
    await client.ask(use)
    await client.ask(use)
    await client.rows('commit')
    expect(await counted()).toEqual([hits + 2, misses + 1])
    await client.end()
  })

  it('give a server back when its last advisory lock was given back', async () => {
    const locker = await WireClient.open(one)
    const other = await WireClient.open(one)
    await locker.rows('select pg_advisory_lock(1), pg_advisory_lock(2)')
    const waiting = other.rows('select 7')
    await locker.rows('select pg_advisory_unlock(1)')
    expect(await Promise.race([waiting, locker.rows('select 8')])).toEqual([['8']])
    await locker.rows('select pg_advisory_unlock(2)')
    expect(await waiting).toEqual([['7']])
    await locker.ask([
      say.parse('', 'select pg_advisory_lock(3)'),
      say.bind(''),
      say.execute(),
      say.sync(),
    ])
    const again = other.rows('select 9')
    await locker.ask([
      say.parse('', 'select pg_advisory_unlock_all()'),
      say.bind(''),
      say.execute(),
      say.sync(),
    ])
    expect(await again).toEqual([['9']])
    await Promise.all([locker.end(), other.end()])
  })
})
