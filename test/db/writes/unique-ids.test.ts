/** pgshard.unique_id(): numbers that no two shards give, as defaults, as keys, and for whoever asks. */
import { beforeAll, describe, expect, it } from 'vitest'
import { bySize } from '../../support/test-size.js'
import { failure, SHARDS, useShardedRig } from '../session/sharded-rig.js'

describe('unique ids', () => {
  const rig = useShardedRig()
  beforeAll(async () => {
    const { served } = rig()
    await served.query(
      'drop table big; create table big (k bigint, id bigint default pgshard.unique_id() primary key, v text)',
    )
    await served.query(
      'drop table late2; create table late2 (k bigint default pgshard.unique_id(), v text)',
    )
  })

  it('D24: a million of four connections are all different', async () => {
    const each = bySize(2_000, 250_000)
    const { everywhere } = rig()
    const sql = `select pgshard.unique_id() as id from generate_series(1, ${each})`
    const found = await Promise.all([everywhere(sql), ...(SHARDS < 4 ? [everywhere(sql)] : [])])
    const ids = found.flat(2).map(({ id }) => id)
    expect(new Set(ids).size).toBe(ids.length)
  })

  it('D24: node numbers are leased to shards, each of which knows all of them', async () => {
    const leases = await rig().everywhere('select id, holder from pgshard.node order by id')
    const wanted = Array.from({ length: SHARDS }, (_, i) => ({ id: i, holder: `shard ${i + 1}` }))
    for (const own of leases) expect(own).toEqual(wanted)
  })

  it('D24, D116: as the default of a unique column it passes without local_constraints', async () => {
    const { key, served } = rig()
    const rows = [0, 1, 2, 0].map((shard) => `(${key(shard)}, 'a')`).join(', ')
    const made = await served.query(`insert into big (k, v) values ${rows} returning id`)
    expect(new Set(made.map(({ id }) => id)).size).toBe(4)
    const many = await served.query(
      "insert into big (k, v) select g, 'b' from generate_series(1, 50) g returning id",
    )
    expect(new Set([...made, ...many].map(({ id }) => id)).size).toBe(54)
  })

  it('D24, D116: as the key it is drawn before the row is placed', async () => {
    const { served } = rig()
    for (const sql of [
      "insert into late2 (v) values ('a'), ('b'), ('c') returning k",
      "insert into late2 values (pgshard.unique_id(), 'a'), (pgshard.unique_id(), 'b') returning k",
      "insert into late2 (v) select 'x' from generate_series(1, 5) returning k",
    ]) {
      const rows = await served.query(sql)
      for (const { k } of rows) {
        expect(await served.query(`select v from late2 where k = ${k}`), sql).toHaveLength(1)
      }
    }
  })

  it('D24: alone it is asked of a primary, and reference tables are given one value', async () => {
    const { everywhere, served } = rig()
    const client = await served.connect()
    const [{ id }] = (await client.query('select pgshard.unique_id() as id')).rows
    expect(BigInt(id)).toBeGreaterThan(0n)
    await client.query('alter table country add column n bigint default pgshard.unique_id()')
    await client.query("insert into country (code) values ('it')")
    const copies = await everywhere("select n from country where code = 'it'")
    expect(copies[0]).toHaveLength(1)
    expect(copies[1]).toEqual(copies[0])
    expect(copies[2]).toEqual(copies[0])
    expect(await failure(client.query('update country set n = pgshard.unique_id()'))).toMatch(
      /^0A000 /,
    )
    await client.end()
  })
})
