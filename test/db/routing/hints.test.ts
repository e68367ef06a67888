/** Routing by hand: comments, SET, SET LOCAL and startup parameters, under our names and PgDog's; never across the statement. */
import pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { failure, SHARDS, useShardedRig } from '../session/sharded-rig.js'

describe('hints', () => {
  const rig = useShardedRig()
  const where = 'select current_database() as d from item'
  beforeAll(async () => {
    for (let shard = 0; shard < SHARDS; shard++) {
      await rig().onShard(shard, `insert into item values (${rig().key(shard)}, 1, 'here')`)
    }
  })

  const databasesOf = async (client: pg.Client, sql: string, values?: unknown[]) =>
    (await client.query<{ d: string }>(sql, values)).rows.map(({ d }) => d)
  const database = (shard: number) => [rig().databases[shard]]

  async function withClient<T>(
    work: (client: pg.Client) => Promise<T>,
    options?: string,
  ): Promise<T> {
    const { url } = rig().served
    const client = new pg.Client({ connectionString: url, ...(options ? { options } : {}) })
    await client.connect()
    try {
      return await work(client)
    } finally {
      await client.end()
    }
  }

  it.each([
    ['/* pgshard_shard: 1 */ QUERY', 1],
    ['/* pgdog_shard: 2 */ QUERY', 2],
    ['QUERY /* pgdog_shard=1 */', 1],
    ['QUERY -- pgshard_shard: 2', 2],
    ["/* app='x', pgdog_shard: 2 */ QUERY", 2],
    ['/* pgshard_shard: 1 */ QUERY /* pgshard_shard: 2 */', 1],
    ['/* pgshard_sharding_key: KEY2 */ QUERY', 2],
    ["QUERY /* pgdog_sharding_key: 'KEY1' */", 1],
    ['/* pgdog_sharding_key: "KEY0" pgdog_role: primary */ QUERY', 0],
  ])('of a comment: %s', async (form, shard) => {
    const sql = form
      .replace('QUERY', where)
      .replace(/KEY(\d)/, (_, of) => String(rig().key(Number(of))))
    await withClient(async (client) => {
      expect(await databasesOf(client, sql)).toEqual(database(shard))
      const extended = sql.replace('from item', 'from item where $1 = 1')
      expect(await databasesOf(client, extended, [1])).toEqual(database(shard))
    })
  })

  it('of a comment inside a statement count for nothing', async () => {
    await withClient(async (client) => {
      const all = await databasesOf(client, where.replace('from', '/* pgshard_shard: 1 */ from'))
      expect(all).toHaveLength(SHARDS)
      const quoted = await databasesOf(client, `${where} where v <> '/* pgshard_shard: 1 */'`)
      expect(quoted).toHaveLength(SHARDS)
    })
  })

  it.each(['pgshard', 'pgdog'])('of SET, SET LOCAL and RESET: %s', async (prefix) => {
    await withClient(async (client) => {
      await client.query(`set ${prefix}.shard to 2`)
      expect(await databasesOf(client, where)).toEqual(database(2))
      expect(await databasesOf(client, `/* ${prefix}_shard: 0 */ ${where}`)).toEqual(database(0))
      await client.query(`reset ${prefix}.shard`)
      expect(await databasesOf(client, where)).toHaveLength(SHARDS)
      await client.query(`set ${prefix}.sharding_key to '${rig().key(1)}'`)
      expect(await databasesOf(client, where)).toEqual(database(1))
      await client.query('begin')
      await client.query(`set local ${prefix}.sharding_key to '${rig().key(0)}'`)
      expect(await databasesOf(client, where)).toEqual(database(0))
      await client.query('rollback')
      expect(await databasesOf(client, where)).toEqual(database(1))
      await client.query('discard all')
      expect(await databasesOf(client, where)).toHaveLength(SHARDS)
    })
  })

  it.each([
    ['-c pgshard.shard=1', 1],
    ['-c pgdog.shard=2', 2],
    ['-c pgdog.sharding_key=KEY', 1],
  ])('of the startup: %s', async (options, shard) => {
    const written = options.replace('KEY', String(rig().key(1)))
    await withClient(async (client) => {
      expect(await databasesOf(client, where)).toEqual(database(shard))
      expect(await databasesOf(client, `${where} where $1 = 1`, [1])).toEqual(database(shard))
    }, written)
  })

  it('never lead across what the statement says', async () => {
    const key = rig().key(1)
    await withClient(async (client) => {
      const found = await failure(client.query(`/* pgshard_shard: 2 */ ${where} where k = ${key}`))
      expect(found).toMatch(/^22023/)
      const same = await databasesOf(client, `/* pgshard_shard: 1 */ ${where} where k = ${key}`)
      expect(same).toEqual(database(1))
      await client.query('set pgdog.shard to 0')
      const insert = client.query('insert into item values ($1, 9, $2)', [key, 'astray'])
      expect(await failure(insert)).toMatch(/^22023/)
      const update = client.query("update item set v = 'astray' where k = $1", [key])
      expect(await failure(update)).toMatch(/^22023/)
    })
    const rows = await rig().everywhere("select count(*)::int as n from item where v = 'astray'")
    expect(rows.flat()).toEqual(new Array(SHARDS).fill({ n: 0 }))
  })

  it.each([
    '/* pgshard_shard: 7 */ select 1 from item',
    '/* pgdog_shard: all */ select 1 from item',
    '/* pgshard_role: leader */ select 1 from item',
    "/* pgshard_sharding_key: 'no number' */ select 1 from item",
  ])('that cannot be obeyed are an error: %s', async (sql) => {
    await withClient(async (client) => {
      expect(await failure(client.query(sql))).toMatch(/^(?:22023|22P02|0A000)/)
      expect(await databasesOf(client, where)).toHaveLength(SHARDS)
    })
  })
})
