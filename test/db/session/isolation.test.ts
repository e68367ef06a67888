/**
 * The canary: many clients over few servers. Nobody ever sees what is another's, neither rows nor settings, notices,
 * errors or notifications, whatever the others do: cancel, time out, fail in a pipeline, starve, vanish. Afterwards every
 * server is idle and clean. That it would notice is shown by lies told on the way.
 */
import pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { expectNothingLeft } from '../../support/leak-check.js'
import { type Served, startServe } from '../../support/serve.js'
import { startTagForger } from '../../support/tag-forger.js'
import { bySize } from '../../support/test-size.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'
import { WireClient } from '../../support/wire-client.js'
import { Actor } from './isolation-actor.js'
import { deeds, timesPlayed } from './isolation-deck.js'
import { LETTERS, WRITE_LETTERS } from './isolation-reads.js'

const CLIENTS = bySize(24, 64)
const SERVERS = 4
const CHECKOUT_MS = 1500
/** Requests that must have waited in vain in each famine. */
const STARVED = 10
const SECONDS = bySize(10, 60)

const modes = [
  { name: 'with pipelining', workers: 1, general: ['pipeline_depth = 16'] },
  {
    name: 'with two workers',
    workers: 2,
    general: ['workers_mode = "processes"', 'workers = 2', 'pipeline_depth = 16'],
  },
  { name: 'without pipelining', workers: 1, general: ['pipeline_depth = 0'] },
]

describe.each(modes.slice(0, bySize(2, modes.length)))(
  'clients that share servers, $name',
  ({ workers, general }) => {
    const postgres = usePostgres({ version: 15 })
    let served: Served

    beforeAll(async () => {
      const { host, port } = postgres().servers[0]!
      await postgres().query('create table mark (tag text, turn int)')
      await postgres().query(LETTERS)
      await postgres().query(WRITE_LETTERS)
      await postgres().query(
        `create function note(what text) returns text language plpgsql as
       $$ begin raise notice '%', what; return what; end $$`,
      )
      served = await startServe({
        shards: [{ host, port, database: postgres().database }],
        general: [
          `default_pool_size = ${SERVERS}`,
          `checkout_timeout = ${CHECKOUT_MS}`,
          ...general,
        ],
      })
    })

    /** Holds every server until enough of the others had to give up. */
    const famine = async (actors: readonly Actor[]) => {
      const starved = () => actors.reduce((sum, actor) => sum + actor.starved, 0)
      const wanted = starved() + STARVED
      const holders = await Promise.all(
        Array.from({ length: 4 * SERVERS }, () => WireClient.open(served)),
      )
      const holding = holders.map((holder) =>
        holder.rows('begin').then(() => holder.rows('select 1').catch(() => undefined)),
      )
      await waitFor(() => starved() >= wanted, { deadlineMs: 60_000, what: 'starved clients' })
      await Promise.all(holding)
      for (const holder of holders) await holder.end()
    }

    it(
      `D1, D74, D81: ${CLIENTS} over ${SERVERS} servers for ${SECONDS} s see only their own`,
      async () => {
        const end = performance.now() + SECONDS * 1000
        const isOver = () => performance.now() > end
        const actors = Array.from({ length: CLIENTS }, (_, number) => new Actor(number, served))
        const playing = Promise.all(actors.map((actor) => actor.run(isOver)))
        await Promise.race([playing, famine(actors)])
        await playing
        expect(actors.flatMap((actor) => actor.faults).slice(0, 10)).toEqual([])
        for (const deed of deeds) {
          const fewest = Math.min(...actors.map((actor) => actor.played.get(deed) ?? 0))
          expect(fewest, deed).toBeGreaterThanOrEqual(timesPlayed(deed))
        }
        expect(actors.reduce((sum, actor) => sum + actor.starved, 0)).toBeGreaterThanOrEqual(
          STARVED,
        )

        await expectNothingLeft((sql) => postgres().query(sql))
        const rows = await postgres().query('select tag, turn from mark')
        const wanted = actors.flatMap(({ tag, committed }) =>
          committed.map((turn) => `${tag} ${turn}`),
        )
        expect(rows.map(({ tag, turn }) => `${tag} ${turn}`).sort()).toEqual(wanted.sort())
      },
      240_000 + SECONDS * 3000,
    )

    it.each([
      ['D', 'prepared'],
      ['D', 'sharedReads'],
      ['N', 'notice'],
      ['E', 'raise'],
      ['A', 'notify'],
      ['S', 'setting'],
      ['d', 'copyOut'],
    ] as const)('notice a %s with the tag of another (%s)', async (kind, deed) => {
      const forger = await startTagForger(served.port, { kind, from: 'client-98', to: 'client-99' })
      const actor = new Actor(98, { port: forger.port, database: served.database })
      await actor.playOnly(deed)
      await forger.close()
      expect(actor.faults.join('\n')).toMatch(new RegExp(`client-98.*: ${kind} of client-99`))
    })

    it('D74: leave idle servers, no open transaction and no setting', async () => {
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
      expect(pools).toHaveLength(workers)
      const idle = pools.reduce((sum, row) => sum + Number(row.sv_idle), 0)
      expect(idle).toBeLessThanOrEqual(SERVERS)
      await console.end()
      const [backends] = await postgres().query(
        `select count(*)::int as n from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`,
      )
      // each process listens on a connection of its own
      expect(backends?.['n']).toBeGreaterThanOrEqual(idle)
      expect(backends?.['n']).toBeLessThanOrEqual(idle + workers)

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
  },
)
