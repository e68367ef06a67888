/** Who a client is never becomes who another client is, whatever it resets. */
import pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Served, startServe } from '../../support/serve.js'
import { usePostgres } from '../../support/use-postgres.js'

describe('role and session user on a pool of one', () => {
  const postgres = usePostgres({ version: 15 })
  let served: Served

  beforeAll(async () => {
    const { host, port } = postgres().servers[0]!
    const shards = [{ host, port, database: postgres().database }]
    served = await startServe({ shards, general: ['default_pool_size = 1'] })
  })

  const who = 'select current_user::text as role, session_user::text as login'
  const superuser = { role: 'postgres', login: 'postgres' }
  const cases = [
    ['set session authorization pg_monitor', { role: 'pg_monitor', login: 'pg_monitor' }],
    ['set role pg_monitor', { role: 'pg_monitor', login: 'postgres' }],
  ] as const

  it('lets a client with a role become another user, who has none', async () => {
    const [one, other] = [await served.connect(), await served.connect()]
    await one.query('set role pg_read_all_stats')
    await one.query('set session authorization pg_monitor')
    expect((await other.query(who)).rows).toEqual([superuser])
    expect((await one.query(who)).rows).toEqual([{ role: 'pg_monitor', login: 'pg_monitor' }])
    await one.end()
    await other.end()
  })

  it('resets to what the client came with, in the extended protocol too', async () => {
    const client = new pg.Client({ connectionString: served.url, options: '-c work_mem=11MB' })
    await client.connect()
    for (const reset of ['reset work_mem', 'set work_mem = default']) {
      await client.query('set work_mem = 64')
      await client.query({ text: reset, values: [] })
      expect((await client.query('show work_mem')).rows).toEqual([{ work_mem: '11MB' }])
    }
    await client.end()
  })

  for (const [become, expected] of cases) {
    for (const protocol of ['simple', 'extended'] as const) {
      it(`keeps "${become}" to its client through RESET ALL (${protocol})`, async () => {
        const [one, other] = [await served.connect(), await served.connect()]
        await one.query(become)
        await one.query(protocol === 'simple' ? 'reset all' : { text: 'reset all', values: [] })
        expect((await other.query(who)).rows).toEqual([superuser])
        expect((await one.query(who)).rows).toEqual([expected])
        await one.query('discard all')
        expect((await one.query(who)).rows).toEqual([superuser])
        await one.end()
        await other.end()
      })
    }
  }
})
