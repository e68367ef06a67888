/** Shards that write values each in its own way: statements over several say so, until the session decides or they are alike. */
import type pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Served, startServe } from '../../support/serve.js'
import { usePostgres } from '../../support/use-postgres.js'

const tables = '[[sharded_tables]]\ndatabase = "app"\nname = "item"\ncolumn = "k"'

describe('D134: shards that differ', () => {
  const postgres = usePostgres({ version: 15 })
  let hosts: { host: string; port: number; database: string }[]
  const started = async (differing: string): Promise<Served> => {
    const { host, port } = postgres().servers[0]!
    const admin = await postgres().connect()
    const made = await admin.query<{ n: string }>("select 's' || txid_current() as n")
    const name = made.rows[0]!.n
    await admin.query(`create database ${name}_0`)
    await admin.query(`create database ${name}_1 ${differing.startsWith('alter') ? '' : differing}`)
    if (differing.startsWith('alter')) {
      await admin.query(differing.replace('alter', `alter database ${name}_1 set`))
    }
    await admin.end()
    hosts = [0, 1].map((shard) => ({ host, port, database: `${name}_${shard}` }))
    for (const { database } of hosts) {
      const shard = await postgres().connect(0, database)
      await shard.query(
        'create table item (k bigint, at timestamptz); insert into item values (1, now())',
      )
      await shard.end()
    }
    return startServe({ shards: hosts, tables })
  }
  const failure = async (client: pg.Client, sql: string): Promise<string> => {
    try {
      await client.query(sql)
    } catch (error) {
      const { code, message, hint } = error as { code: string; message: string; hint?: string }
      return `${code} ${message} (${hint})`
    }
    return ''
  }

  describe('in a setting', () => {
    let served: Served
    beforeAll(async () => {
      served = await started("alter timezone to 'Asia/Tokyo'")
    })

    it.each([
      'select at::text from item',
      'select at from item order by at limit 1',
      'select count(distinct at) from item',
    ])('are refused by name: %s', async (sql) => {
      const client = await served.connect()
      expect(await failure(client, sql)).toMatch(
        /^0A000 .*their TimeZone differs: ".*" on shard 0, "Asia\/Tokyo" on shard 1 \(SET TimeZone/,
      )
      await client.query("set time zone 'UTC'")
      expect(await failure(client, sql)).toBe('')
      await client.query('begin; reset timezone')
      expect(await failure(client, sql)).toMatch(/^0A000/)
      await client.end()
      expect(served.program.stderr).toMatch(/another TimeZone than shard 0/)
    })

    it('leave statements of one shard alone', async () => {
      expect(await served.query('select count(*)::int as n from item where k = 1')).toHaveLength(1)
    })
  })

  it('in the collation of their databases, which nobody can set', async () => {
    const served = await started(`template template0 encoding 'UTF8' lc_collate 'C' lc_ctype 'C'`)
    const client = await served.connect()
    const found = await failure(client, 'select k from item order by k')
    expect(found).toMatch(/^0A000 .*their default collation differs/)
    expect(found).not.toContain('SET default')
    await client.end()
  })
})
