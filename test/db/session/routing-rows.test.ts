/** Routing as clients see it, row by row of the requirements. */
import type pg from 'pg'
import { describe, expect, it } from 'vitest'
import { failure, SHARDS, useShardedRig } from './sharded-rig.js'

describe('routed statements', () => {
  const rig = useShardedRig(['default_pool_size = 2'])

  /** Rows that statements have written on each shard. */
  const counts = async () =>
    (await rig().everywhere('select count(*)::int as n from item')).map(([row]) => row!['n'])

  it('D67: one key reaches one shard', async () => {
    const key = rig().key(1)
    await rig().served.query('insert into item values ($1, 1, $2)', [key, 'one'])
    expect(await counts()).toEqual([0, 1, 0])
    const [row] = await rig().served.query(
      'select current_database() as d, v from item where k = $1',
      [key],
    )
    expect(row).toEqual({ d: rig().databases[1], v: 'one' })
  })

  it('D69: a list of keys of two shards does not reach the third', async () => {
    const keys = [rig().key(0), rig().key(2)]
    const rows = await rig().served.query(
      `explain (costs off) select v from item where k in (${keys.join()})`,
    )
    const shards = rows
      .map((row) => String(row['QUERY PLAN']))
      .filter((line) => /-> {2}Shard/.test(line))
    expect(shards).toEqual(['  ->  Shard 0', '  ->  Shard 2'])
  })

  it('D72: SET and SHOW in a transaction agree, before and behind its first query', async () => {
    const client = await rig().served.connect()
    const shown = async () =>
      (await client.query<{ work_mem: string }>('show work_mem')).rows[0]!.work_mem
    await client.query('begin')
    await client.query("set local work_mem = '7MB'")
    expect(await shown()).toBe('7MB')
    await client.query('select v from item where k = $1', [rig().key(2)])
    expect(await shown()).toBe('7MB')
    await client.query('commit')
    expect(await shown()).not.toBe('7MB')
    await client.end()
  })

  it('D73: a setting of a client is on every server that it gets', async () => {
    const clients: pg.Client[] = []
    for (let i = 0; i < 6; i++) clients.push(await rig().served.connect())
    await Promise.all(
      clients.map((client, i) => client.query(`set statement_timeout = ${10_000 + i}`)),
    )
    for (let round = 0; round < 10; round++) {
      const shown = await Promise.all(
        clients.map(async (client) => {
          const key = rig().key(round % SHARDS)
          const { rows } = await client.query<{ t: string }>(
            "select current_setting('statement_timeout') as t from generate_series(1, 1) left join item on k = $1",
            [key],
          )
          return rows[0]!.t
        }),
      )
      expect(shown).toEqual([...clients.keys()].map((i) => (i === 0 ? '10s' : `${10_000 + i}ms`)))
    }
    await Promise.all(clients.map((client) => client.end()))
  })

  it('D75: what cannot be routed is a clear error, and the session goes on', async () => {
    const client = await rig().served.connect()
    expect(await failure(client.query('select xmin from item'))).toMatch(/^0A000 system column/)
    expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }])
    await client.end()
  })
})
