/** `[rewrite]` may forbid what is done otherwise: inserts that are cut by row, rows that a new key moves. */
import { beforeEach, describe, expect, test } from 'vitest'
import { failure, SHARDS, useShardedRig } from '../session/sharded-rig.js'

describe('rewrite.split_inserts = "error", rewrite.shard_key = "error", omnisharded_sticky', () => {
  const rig = useShardedRig([
    'omnisharded_sticky = true',
    '[rewrite]',
    'split_inserts = "error"',
    'shard_key = "error"',
  ])
  beforeEach(() => rig().everywhere('truncate item'))
  const rows = async () =>
    (await rig().everywhere('select id, v from item')).map((some) => some.length)

  test('D116, D133: rows of several shards are refused whole, those of one are not', async () => {
    const { served, key } = rig()
    const client = await served.connect()
    const values = (...keys: number[]) => keys.map((one, id) => `(${one}, ${id}, 'x')`).join(', ')
    const insert = (...keys: number[]) => client.query(`insert into item values ${values(...keys)}`)
    expect(await failure(insert(key(0), key(1)))).toMatch(
      /^0A000 .*rewrite.split_inserts = "error"/,
    )
    expect(await rows()).toEqual([0, 0, 0])
    await insert(key(1), key(1, 1))
    expect(await rows()).toEqual([0, 2, 0])
    // a row that stays is updated; one that would move is not, nor what stays beside it
    const set = (to: number, where: string) =>
      client.query(`update item set k = ${to} where ${where}`)
    expect((await set(key(1, 2), `k = ${key(1)}`)).rowCount).toBe(1)
    expect(await failure(set(key(2), 'id >= 0'))).toMatch(/^0A000 .*rewrite.shard_key = "error"/)
    expect(await rows()).toEqual([0, 2, 0])
    // statements over several shards that cut nothing go on
    expect((await client.query("update item set v = 'y'")).rowCount).toBe(2)
    expect((await client.query("insert into country values ('it'), ('es')")).rowCount).toBe(2)
    await client.end()
  })

  test('D117: a client reads reference tables on one shard, clients on different ones', async () => {
    const { served, onShard } = rig()
    for (let shard = 0; shard < SHARDS; shard++)
      await onShard(shard, 'insert into country values ($1)', [`#${shard}`])
    const seen: string[] = []
    for (let n = 0; n < 4; n++) {
      const client = await served.connect()
      const codes = new Set<string>()
      for (let i = 0; i < 6; i++) {
        const { rows: found } = await client.query("select code from country where code like '#%'")
        codes.add(found.map(({ code }) => code).join())
      }
      expect([...codes]).toHaveLength(1)
      seen.push(...codes)
      await client.end()
    }
    expect(new Set(seen).size).toBeGreaterThan(1)
  })
})
