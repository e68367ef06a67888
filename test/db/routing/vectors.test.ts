/** Vectors as sharding keys through serve: rows go to the shard of the nearest centre, whichever way they come. */
import { once } from 'node:events'
import { from as copyFrom } from 'pg-copy-streams'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Served, startServe } from '../../support/serve.js'
import { usePostgres } from '../../support/use-postgres.js'

/** A stand-in for the extension's type, which this machine need not have: the same name, the same text. */
const schema = `create domain vector as text; create table doc (id int, v vector)`

describe('vectors', () => {
  const postgres = usePostgres({ version: 15 })
  let served: Served
  const databases: string[] = []
  beforeAll(async () => {
    const { host, port } = postgres().servers[0]!
    for (let shard = 0; shard < 3; shard++) {
      databases.push(await postgres().createDatabase())
      const client = await postgres().connect(0, databases[shard])
      await client.query(schema)
      await client.end()
    }
    served = await startServe({
      shards: databases.map((database) => ({ host, port, database })),
      general: ['cross_shard_writes = "best_effort"'],
      tables:
        '[[sharded_tables]]\ndatabase = "app"\nname = "doc"\ncolumn = "v"\ndata_type = "vector"\ncentroids = [[0, 0], [10, 10], [-10, 10]]',
    })
  })
  const onShard = async (shard: number): Promise<number[]> => {
    const client = await postgres().connect(0, databases[shard])
    const { rows } = await client.query<{ id: number }>('select id from doc order by id')
    await client.end()
    return rows.map(({ id }) => id)
  }

  it('D107: lie where their nearest centre says, by literal, parameter and COPY', async () => {
    const client = await served.connect()
    await client.query("insert into doc values (1, '[1,1]')")
    await client.query('insert into doc values ($1, $2)', [2, '[9,8.5]'])
    await client.query('insert into doc (v, id) values ($1, 3)', ['[-7, 12]'])
    const copy = client.query(copyFrom('copy doc from stdin'))
    copy.end('4\t[0.5,-1]\n5\t[11,11]\n')
    await once(copy, 'finish')
    expect([await onShard(0), await onShard(1), await onShard(2)]).toEqual([[1, 4], [2, 5], [3]])
    // a search looks at every shard: the nearest need not be where the asked vector would lie
    const { rows } = await client.query('select id from doc order by id limit 4')
    expect(rows.map(({ id }) => id)).toEqual([1, 2, 3, 4])
    const { rows: equal } = await client.query('select id from doc where v = $1', ['[9,8.5]'])
    expect(equal).toEqual([{ id: 2 }])
    const wrong = client.query("insert into doc values (6, '[1,2,3]')")
    await expect(wrong).rejects.toMatchObject({ code: '22000' })
    await client.end()
  })
})
