/**
 * Many clients over few servers: nobody ever sees what is another's, neither rows nor settings nor a cancel, whatever
 * the others do: time out, cancel, vanish. Afterwards every server is idle and clean.
 */
import pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { expectNothingLeft } from '../../support/leak-check.js'
import { type Served, startServe } from '../../support/serve.js'
import { bySize } from '../../support/test-size.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'
import { Actor, type Counts } from './isolation-actor.js'

const CLIENTS = 20
const TRANSACTIONS = bySize(200, 1000)
const SERVERS = 3
const CHECKOUT_MS = 500

describe('clients that share servers', () => {
  const postgres = usePostgres({ version: 15 })
  let served: Served

  beforeAll(async () => {
    const { host, port } = postgres().servers[0]!
    await postgres().query('create table mark (tag text, turn int)')
    served = await startServe({
      shards: [{ host, port, database: postgres().database }],
      general: [`default_pool_size = ${SERVERS}`, `checkout_timeout = ${CHECKOUT_MS}`],
    })
  })

  it(
    `${CLIENTS} with ${TRANSACTIONS} transactions each over ${SERVERS} servers see only their own`,
    async () => {
      const actors = Array.from({ length: CLIENTS }, (_, number) => new Actor(number, served))
      await Promise.all(actors.map((actor) => actor.run(TRANSACTIONS)))
      expect(actors.flatMap((actor) => actor.faults)).toEqual([])
      const total = (name: keyof Counts) =>
        actors.reduce((sum, { counts }) => sum + counts[name], 0)
      // all of it has happened
      expect(total('transactions')).toBeGreaterThan(CLIENTS * TRANSACTIONS * 0.8)
      for (const name of ['timeouts', 'cancels', 'vanished'] as const)
        expect(total(name), name).toBeGreaterThan(CLIENTS / 4)

      const rows = await postgres().query('select tag, turn from mark order by tag, turn')
      const found = rows.map(({ tag, turn }) => `${tag} ${turn}`)
      const wanted = actors.flatMap(({ tag, committed }) =>
        committed.map((turn) => `${tag} ${turn}`),
      )
      expect(found.sort()).toEqual(wanted.sort())
    },
    120_000 + TRANSACTIONS * 300,
  )

  it('leaves idle servers, no open transaction and no setting', async () => {
    await expectNothingLeft((sql) => postgres().query(sql))
    const console = new pg.Client({ connectionString: served.adminUrl })
    await console.connect()
    await waitFor(async () => {
      const { rows } = await console.query('show pools')
      return rows.every((row) =>
        ['cl_active', 'cl_waiting', 'sv_active', 'sv_idle_xact'].every(
          (name) => Number(row[name]) === 0,
        ),
      )
    })
    const { rows: pools } = await console.query('show pools')
    expect(pools.map((row) => Number(row.sv_idle))).toEqual([expect.any(Number)])
    expect(Number(pools[0].sv_idle)).toBeLessThanOrEqual(SERVERS)
    await console.end()
    const [backends] = await postgres().query(
      `select count(*)::int as n from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`,
    )
    expect(backends?.['n']).toBe(Number(pools[0].sv_idle))

    const fresh = await Promise.all(Array.from({ length: SERVERS }, () => served.connect()))
    for (const client of fresh) await client.query('begin')
    const seen = await Promise.all(
      fresh.map((client) =>
        client.query(
          "select coalesce(current_setting('test.tag', true), '') as tag, current_setting('work_mem') as memory, current_setting('statement_timeout') as timeout",
        ),
      ),
    )
    await Promise.all(fresh.map((client) => client.end()))
    const clean = { tag: '', memory: '4MB', timeout: '0' }
    expect(seen.map(({ rows }) => rows[0])).toEqual(fresh.map(() => clean))
  })
})
