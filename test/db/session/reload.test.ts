/** Clients across a RELOAD that exchanges the shards of their database. */
import { readFileSync, writeFileSync } from 'node:fs'
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { startServe } from '../../support/serve.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'

const sharding =
  '[[sharded_tables]]\ndatabase = "app"\nname = "item"\ncolumn = "id"\ndata_type = "bigint"'

describe('reload', () => {
  const postgres = usePostgres({ version: 15 })

  it('D187: lets requests that waited behind PAUSE run on the new shards', async () => {
    const { host, port } = postgres().servers[0]!
    const at = (database: string) => ({ host, port, database })
    const old = [postgres().database, await postgres().createDatabase()]
    const fresh = [
      await postgres().createDatabase(),
      await postgres().createDatabase(),
      await postgres().createDatabase(),
    ]
    for (const [side, databases] of [
      ['old', old],
      ['new', fresh],
    ] as const) {
      for (const database of databases) {
        const client = await postgres().connect(0, database)
        await client.query('create table item (id bigint primary key, side text)')
        await client.query(`insert into item select n, '${side}' from generate_series(1, 40) n`)
        await client.end()
      }
    }
    const served = await startServe({ shards: old.map(at), tables: sharding })
    const console = new pg.Client({ connectionString: served.adminUrl })
    await console.connect()
    const clients = await Promise.all(Array.from({ length: 4 }, () => served.connect()))
    for (const client of clients) {
      expect((await client.query('select side from item where id = 1')).rows).toEqual([
        { side: 'old' },
      ])
    }

    await console.query('PAUSE app')
    const literal = clients[0]!.query('select side from item where id = 7')
    const parameter = clients[1]!.query('select side from item where id = $1', [8])
    const named = clients[2]!.query({
      name: 'n',
      text: 'select side from item where id = $1',
      values: [9],
    })
    const scattered = clients[3]!.query("select id from item where side = 'new' and id < 4")
    await waitFor(async () => {
      const { rows } = await console.query('SHOW CLIENTS')
      return rows.filter((row: { state: string }) => row.state === 'waiting').length === 4
    })
    const blocks = readFileSync(served.configPath, 'utf8').split('[[databases]]')
    const databases = fresh.map(
      (database, shard) =>
        `[[databases]]\nname = "app"\nhost = "${host}"\nport = ${port}\ndatabase_name = "${database}"\nshard = ${shard}\n`,
    )
    writeFileSync(served.configPath, `${blocks[0]}${databases.join('')}${sharding}\n`)
    await console.query('RELOAD')
    await console.query('RESUME app')

    for (const answer of [literal, parameter, named])
      expect((await answer).rows).toEqual([{ side: 'new' }])
    expect((await scattered).rows.length).toBe(9)
    for (const client of clients) {
      expect((await client.query('select side from item where id = 2')).rows).toEqual([
        { side: 'new' },
      ])
      await client.end()
    }
    await console.end()
  })
})
