/** A primary and a replica behind one database with role = auto: what goes where, and a primary that is killed under writing clients. */
import pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Served, startServe } from '../../support/serve.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'

const WRITERS = 8

describe('a primary and a replica', () => {
  const postgres = usePostgres({ version: 15, replicas: 1 })
  let served: Served

  beforeAll(async () => {
    const { servers, replicas, database } = postgres()
    const [primary, replica] = [servers[0]!, replicas[0]!]
    await postgres().query('create table acked (id text primary key)')
    await postgres().query(
      "create function volatile_one() returns int language plpgsql as 'begin return 1; end'",
    )
    served = await startServe({
      shards: [primary, replica].map(({ host, port }) => ({
        ...{ host, port, database },
        ...({ role: 'auto', shard: 0 } as const),
      })),
      general: ['read_write_split = "exclude_primary"', 'lsn_check_interval = 300'],
    })
    const [row] = await postgres().query('select pg_current_wal_insert_lsn()::text as lsn')
    const at = new pg.Client({ host: replica.host, port: replica.port, user: 'postgres', database })
    await at.connect()
    await waitFor(async () => {
      const sql = 'select pg_last_wal_replay_lsn() >= $1::pg_lsn as there'
      return (await at.query(sql, [row?.['lsn']])).rows[0].there === true
    })
    await at.end()
  })

  /** Its connection may end with the server; the next query says so. */
  const quietClient = async () => {
    const client = new pg.Client({ connectionString: served.url })
    client.on('error', () => undefined)
    await client.connect()
    return client
  }

  const where = (isInRecovery: unknown) => (isInRecovery === true ? 'replica' : 'primary')
  const asked = 'pg_is_in_recovery() as r'

  it.each([
    ['a read', [`select ${asked}`], 'replica'],
    ['a read of a table', [`select ${asked}, (select count(*) from acked)`], 'replica'],
    [
      'a locking read',
      [`select ${asked} from (select id from acked for update) x right join (select 1) y on true`],
      'primary',
    ],
    [
      'a writing CTE',
      [`with w as (insert into acked values ('cte') returning 1) select ${asked}`],
      'primary',
    ],
    ['a volatile function of a user', [`select ${asked}, volatile_one()`], 'primary'],
    ['a function that needs a transaction number', [`select ${asked}, txid_current()`], 'primary'],
    ['a transaction', ['begin', `select ${asked}`, 'commit'], 'primary'],
    ['a transaction that only reads', ['begin read only', `select ${asked}`, 'commit'], 'replica'],
    [
      'several statements of which one writes',
      [`update acked set id = id where false; select ${asked}`],
      'primary',
    ],
  ] as [string, string[], string][])(
    '%s goes where it can be done',
    async (_what, statements, place) => {
      const client = await quietClient()
      const found: string[] = []
      for (const sql of statements) {
        const results = [await client.query(sql)].flat()
        const rows = results.flatMap((result) => result.rows as { r?: boolean }[])
        for (const row of rows) if (row.r !== undefined) found.push(where(row.r))
      }
      await client.end()
      expect(found).toEqual([place])
    },
  )

  it('writes go on at the new primary after the old one is killed, none lost', async () => {
    const { servers, replicas, database } = postgres()
    const replica = replicas[0]!
    const acked: string[] = []
    /** Acknowledged, and begun when the replica was the primary: replication cannot have lost them. */
    const sure: string[] = []
    const failures: { code: string | undefined; writer: number }[] = []
    let isOver = false
    let isPromoted = false
    const writer = async (n: number) => {
      let client: pg.Client | undefined
      let written = 0
      let afterwards = 0
      while (!isOver || afterwards === 0) {
        try {
          client ??= await quietClient()
          const id = `${n}-${written++}`
          const isSure = isPromoted
          await client.query('insert into acked values ($1)', [id])
          acked.push(id)
          if (isSure) afterwards = sure.push(id)
        } catch (error) {
          failures.push({ code: (error as { code?: string }).code, writer: n })
          await client?.end().catch(() => undefined)
          client = undefined
        }
      }
      await client?.end()
      return afterwards
    }
    const writers = Array.from({ length: WRITERS }, (_, n) => writer(n))
    await waitFor(() => acked.length > 50)
    // replication is asynchronous: what was acknowledged just before the kill may be lost
    process.kill(servers[0]!.pid, 'SIGKILL')
    const at = new pg.Client({ host: replica.host, port: replica.port, user: 'postgres', database })
    at.on('error', () => undefined)
    await at.connect()
    await at.query('select pg_promote()')
    isPromoted = true
    const promotedAt = performance.now()
    await waitFor(() => sure.length > WRITERS, { deadlineMs: 20_000 })
    const gapMs = performance.now() - promotedAt
    isOver = true
    const afterwards = await Promise.all(writers)
    expect(afterwards.every((count) => count > 0)).toBe(true)
    const { rows } = await at.query('select id from acked where id = any($1)', [sure])
    expect(rows).toHaveLength(sure.length)
    expect(gapMs).toBeLessThan(10_000)
    const perWriter = writers.map((_, n) => failures.filter((one) => one.writer === n).length)
    // its statement in flight, and one more that met the dead host before its role was known (docs/pooling.md)
    expect(Math.max(...perWriter), JSON.stringify(failures)).toBeLessThanOrEqual(2)
    await at.end()
  })
})
