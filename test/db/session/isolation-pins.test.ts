/** What keeps a client its server, what ends that, and what the others see meanwhile. */
import pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Served, startServe } from '../../support/serve.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'

const SERVERS = 3
const CHECKOUT_MS = 500

describe('clients that must keep their server', () => {
  const postgres = usePostgres({ version: 15 })
  let served: Served
  let console: pg.Client

  beforeAll(async () => {
    const { host, port } = postgres().servers[0]!
    served = await startServe({
      shards: [{ host, port, database: postgres().database }],
      general: [
        `default_pool_size = ${SERVERS}`,
        `checkout_timeout = ${CHECKOUT_MS}`,
        // LISTEN keeps its server, too
        'pub_sub_channel_size = 0',
      ],
    })
    console = new pg.Client({ connectionString: served.adminUrl })
    await console.connect()
    return () => console.end()
  })

  /** Why clients keep servers, as SHOW CLIENTS has it. */
  const pins = async (): Promise<string[]> => {
    const { rows } = await console.query('show clients')
    return rows.filter(({ locked }) => locked).map((row) => row.pinned_by)
  }
  const pidOf = async (client: pg.Client): Promise<number> =>
    (await client.query('select pg_backend_pid() as pid')).rows[0].pid
  /** Others use every server that is free, at once. */
  const useOthers = async (work: (client: pg.Client) => Promise<unknown>) => {
    const others = await Promise.all(Array.from({ length: 6 }, () => served.connect()))
    await Promise.all(others.map(work))
    await Promise.all(others.map((client) => client.end()))
  }

  it('hear notifications while they LISTEN, and no longer', async () => {
    const listener = await served.connect()
    const heard: string[] = []
    listener.on('notification', ({ channel, payload, processId }) => {
      expect(processId).toBeGreaterThan(0)
      heard.push(`${channel} ${payload}`)
    })
    await listener.query('listen news')
    expect(await pins()).toEqual(['listen'])
    const pid = await pidOf(listener)
    await useOthers((client) => client.query("select pg_notify('news', 'a')"))
    await waitFor(() => heard.length === 6)
    expect(new Set(heard)).toEqual(new Set(['news a']))
    expect(await pidOf(listener)).toBe(pid)

    await listener.query('unlisten *')
    expect(await pins()).toEqual([])
    await useOthers((client) => client.query("notify news, 'unheard'"))
    for (let i = 0; i < 2 * SERVERS; i++) await pidOf(listener)
    expect(heard).toHaveLength(6)
    await listener.end()
  })

  it('keep temporary tables to themselves until DISCARD, or their end', async () => {
    for (const end of ['discard all', 'discard temp', 'close']) {
      const owner = await served.connect()
      await owner.query('create temp table mine (n int)')
      await owner.query('insert into mine values (1)')
      expect(await pins()).toEqual(['temporary object'])
      await useOthers(async (client) => {
        const missing = client.query('select * from mine')
        await expect(missing).rejects.toMatchObject({ code: '42P01' })
      })
      expect((await owner.query('select n from mine')).rows).toEqual([{ n: 1 }])
      if (end === 'close') await owner.end()
      else await owner.query(end)
      await waitFor(async () => (await pins()).length === 0)
      await useOthers(async (client) => {
        await client.query('begin')
        await expect(client.query('select * from mine')).rejects.toMatchObject({ code: '42P01' })
        await client.query('rollback')
      })
      if (end !== 'close') await owner.end()
    }
  })

  it('keep advisory locks until they end, when others get them', async () => {
    for (const end of ['discard all', 'close']) {
      const owner = await served.connect()
      await owner.query('select pg_advisory_lock(77)')
      expect(await pins()).toEqual(['advisory lock'])
      const attempt = async (client: pg.Client) => {
        await client.query('begin')
        const { rows } = await client.query('select pg_try_advisory_xact_lock(77) as got')
        await client.query('rollback')
        return rows[0].got as boolean
      }
      const got: boolean[] = []
      await useOthers(async (client) => got.push(await attempt(client)))
      expect(got).toEqual(Array.from({ length: 6 }, () => false))
      if (end === 'close') await owner.end()
      else await owner.query(end)
      await waitFor(async () => (await pins()).length === 0)
      const other = await served.connect()
      await waitFor(() => attempt(other))
      await other.end()
      if (end !== 'close') await owner.end()
    }
  })

  it('leave the others a clear error when all servers are kept', async () => {
    const keepers = await Promise.all(Array.from({ length: SERVERS }, () => served.connect()))
    for (const [n, client] of keepers.entries()) await client.query(`listen channel_${n}`)
    const other = await served.connect()
    await expect(other.query('select 1')).rejects.toMatchObject({
      code: '53300',
      message: expect.stringMatching(/^timed out after 500 ms waiting for a server connection/),
      hint: expect.stringContaining('SHOW CLIENTS'),
    })
    await keepers[0]!.query('unlisten *')
    expect((await other.query('select 1 as one')).rows).toEqual([{ one: 1 }])
    await Promise.all([other, ...keepers].map((client) => client.end()))
    await waitFor(async () => (await pins()).length === 0)
  })
})
