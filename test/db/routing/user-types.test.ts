/** Types that users made have other numbers on each shard: clients hear and declare those of shard 0, whichever shard works. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ServerConnection } from '../../../src/server/server-connection.js'
import { type AskedParameter, ask, openTarget } from '../../oracle/ask.js'
import { type Served, startServe } from '../../support/serve.js'
import { usePostgres } from '../../support/use-postgres.js'

const SHARDS = 3

describe('types of users', () => {
  const postgres = usePostgres({ version: 15 })
  let served: Served
  let client: ServerConnection
  /** Of shard 0. */
  let mood = 0
  beforeAll(async () => {
    const { host, port } = postgres().servers[0]!
    const databases: string[] = []
    const numbers = new Set<number>()
    for (let shard = 0; shard < SHARDS; shard++) {
      databases.push(await postgres().createDatabase())
      const own = await postgres().connect(0, databases[shard])
      // another type stands where shard 0 has its mood
      await own.query("create type other as enum ('x')")
      await own.query("create type mood as enum ('sad', 'ok'); create table t (k bigint, m mood)")
      const { rows } = await own.query<{ oid: number }>("select 'mood'::regtype::oid as oid")
      numbers.add(rows[0]!.oid)
      if (shard === 0) mood = rows[0]!.oid
      await own.end()
    }
    expect(numbers.size).toBe(SHARDS)
    served = await startServe({
      shards: databases.map((database) => ({ host, port, database })),
      tables: '[[sharded_tables]]\ndatabase = "app"\nname = "t"\ncolumn = "k"',
      general: ['cross_shard_writes = "best_effort"'],
    })
    client = await openTarget({ name: 'sharded', port: served.port, database: 'app' })
  })
  afterAll(() => client?.close())

  const moodOf = (text: string): AskedParameter => ({
    type: mood,
    format: 0,
    bytes: Buffer.from(text),
  })

  it('D11: are declared to each shard in its own numbers', async () => {
    const values = Array.from({ length: 12 }, (_, k) => `(${k}, $1)`).join(', ')
    const inserted = await ask(client, `insert into t values ${values}`, 'extended text', [
      moodOf('ok'),
    ])
    expect(inserted).toMatchObject({ tag: 'INSERT 0 12' })
    for (let k = 20; k < 26; k++) {
      const one = await ask(
        client,
        `insert into t values (${k}, $1) returning m`,
        'extended text',
        [moodOf('sad')],
      )
      expect(one).toMatchObject({ columns: [`m:${mood}`], rows: [['sad']] })
    }
  })

  it.each([
    ['select m from t where m = $1', 12],
    ['select k, m from t where m = $1 order by k', 12],
    ['select m, count(*) from t where m = $1 group by m', 1],
    ['select distinct m from t where k >= (select min(k) from t) and m = $1', 1],
    ['select m from t where m = $1 and k = 3', 1],
    ["update t set m = 'ok' where m = $1", 0],
  ])('D11: are told in those of shard 0: %s', async (sql, rows) => {
    for (const mode of ['extended text', 'extended binary'] as const) {
      const found = await ask(client, sql, mode, [moodOf('ok')])
      expect(found.error).toBeUndefined()
      expect(found.rows).toHaveLength(rows)
      for (const column of found.columns.filter((name) => name.startsWith('m:')))
        expect(column).toBe(`m:${mood}`)
    }
  })
})
