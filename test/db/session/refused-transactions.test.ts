/** Transactions on one server that the proxy itself has refused to go on with: they end as PostgreSQL's would. */
import type pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Served, startServe } from '../../support/serve.js'
import { usePostgres } from '../../support/use-postgres.js'

describe('transactions that the proxy has failed', () => {
  const postgres = usePostgres({ version: 15 })
  let served: Served

  beforeAll(async () => {
    const { host, port } = postgres().servers[0]!
    served = await startServe({
      shards: [{ host, port, database: postgres().database }],
      general: ['default_pool_size = 1', 'checkout_timeout = 1000'],
    })
    await postgres().query('create table item (id int)')
  })

  const ways = {
    simple: (client: pg.Client, sql: string) => client.query(sql),
    extended: (client: pg.Client, sql: string) =>
      client.query({ text: sql, values: [], queryMode: 'extended' } as pg.QueryConfig),
  }

  it.each(['simple', 'extended'] as const)(
    'end without a server when none came (%s)',
    async (way) => {
      const ask = ways[way]
      const [keeper, client] = await Promise.all([served.connect(), served.connect()])
      await keeper.query('begin')
      await keeper.query('select 1')
      for (const end of ['rollback', 'commit']) {
        await ask(client, 'begin')
        await expect(ask(client, 'insert into item values (1)')).rejects.toMatchObject({
          code: '53300',
        })
        await expect(ask(client, 'insert into item values (2)')).rejects.toMatchObject({
          code: '25P02',
        })
        expect((await ask(client, end)).command).toBe('ROLLBACK')
      }
      await keeper.query('commit')
      expect((await ask(client, 'select id from item')).rows).toEqual([])
      await Promise.all([keeper.end(), client.end()])
    },
  )

  it.each(['simple', 'extended'] as const)(
    'do not commit what went before a refusal (%s)',
    async (way) => {
      const ask = ways[way]
      const client = await served.connect()
      await ask(client, 'begin')
      await ask(client, 'insert into item values (3)')
      await expect(client.query("set pgshard.shard to 'none'")).rejects.toMatchObject({
        code: '22023',
      })
      await expect(ask(client, 'insert into item values (4)')).rejects.toMatchObject({
        code: '25P02',
      })
      expect((await ask(client, 'commit')).command).toBe('ROLLBACK')
      expect((await ask(client, 'select id from item')).rows).toEqual([])
      await client.end()
    },
  )
})
