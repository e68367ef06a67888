/** read_your_writes: a replica that lags is not asked by who wrote, or read, what it does not have yet (hard-parts §10). */
import { pipeline } from 'node:stream/promises'
import pg from 'pg'
import { from as copyFrom } from 'pg-copy-streams'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type Served, startServe } from '../../support/serve.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'

describe('read your writes', () => {
  const postgres = usePostgres({ version: 15, replicas: 2 })
  let served: Served
  let nextId = 1

  const onReplica = async (which: number, sql: string) => {
    const { host, port } = postgres().replicas[which]!
    const client = new pg.Client({ host, port, user: 'postgres', database: postgres().database })
    await client.connect()
    try {
      return (await client.query(sql)).rows[0]
    } finally {
      await client.end()
    }
  }
  const everyReplica = (sql: string) => Promise.all([0, 1].map((which) => onReplica(which, sql)))

  const caughtUp = async () => {
    const [row] = await postgres().query('select pg_current_wal_insert_lsn()::text as lsn')
    const sql = `select pg_last_wal_replay_lsn() >= '${String(row?.['lsn'])}' as there`
    await waitFor(async () => (await everyReplica(sql)).every(({ there }) => there === true))
  }

  beforeAll(async () => {
    await postgres().query('create table note (id int primary key)')
    await caughtUp()
    const { servers, replicas, database } = postgres()
    served = await startServe({
      shards: [servers[0]!, ...replicas].map(({ host, port }) => ({
        ...{ host, port, database, shard: 0 },
        role: 'auto' as const,
      })),
      general: [
        'read_your_writes = true',
        'read_write_split = "exclude_primary"',
        'load_balancing_strategy = "round_robin"',
        'lsn_check_interval = 50',
      ],
    })
  })
  afterEach(() => everyReplica('select pg_wal_replay_resume()'))

  const read = async (client: pg.Client, id: number) => {
    const sql = `select pg_is_in_recovery() as r, (select count(*)::int from note where id = ${id}) as n`
    const { rows } = await client.query(sql)
    return rows[0] as { r: boolean; n: number }
  }

  const writes: [string, (client: pg.Client, id: number) => Promise<unknown>][] = [
    ['a statement', (client, id) => client.query(`insert into note values (${id})`)],
    ['with parameters', (client, id) => client.query('insert into note values ($1)', [id])],
    [
      'a transaction',
      async (client, id) => {
        await client.query('begin')
        await client.query('insert into note values ($1)', [id])
        await client.query('commit')
      },
    ],
    [
      'several statements in one',
      (client, id) => client.query(`begin; insert into note values (${id}); commit`),
    ],
    [
      'COPY',
      (client, id) =>
        pipeline(
          [`${id}\n`],
          client.query(copyFrom('copy note from stdin')) as NodeJS.WritableStream,
        ),
    ],
    [
      'a savepoint rolled back',
      async (client, id) => {
        await client.query('begin')
        await client.query('savepoint s')
        await client.query('insert into note values (0)')
        await client.query('rollback to s')
        await client.query('insert into note values ($1)', [id])
        await client.query('commit')
      },
    ],
    [
      'a write between errors',
      async (client, id) => {
        await client.query('select 1/0').catch(() => undefined)
        await client.query('insert into note values ($1)', [id])
        await client.query('insert into nowhere values (1)').catch(() => undefined)
      },
    ],
  ]

  it.each(writes)(
    '%s is seen by its client while the replicas lag, by others not yet',
    async (_what, write) => {
      const [client, other] = [await served.connect(), await served.connect()]
      await everyReplica('select pg_wal_replay_pause()')
      const id = nextId++
      await write(client, id)
      for (let i = 0; i < 3; i++) expect(await read(client, id)).toEqual({ r: false, n: 1 })
      expect(await read(other, id)).toEqual({ r: true, n: 0 })
      await everyReplica('select pg_wal_replay_resume()')
      // when they have it, reads go back to them
      await waitFor(async () => {
        const seen = await read(client, id)
        expect(seen.n).toBe(1)
        return seen.r
      })
      await client.end()
      await other.end()
    },
  )

  it('a read never goes back behind what its client has read', async () => {
    const client = await served.connect()
    await onReplica(1, 'select pg_wal_replay_pause()')
    const id = nextId++
    await postgres().query('insert into note values ($1)', [id])
    await waitFor(async () => (await read(client, id)).n === 1)
    for (let i = 0; i < 20; i++) expect((await read(client, id)).n).toBe(1)
    // the paused one is asked by those who have seen nothing newer
    const seen = new Set<number>()
    for (let i = 0; i < 4; i++) {
      const fresh = await served.connect()
      seen.add((await read(fresh, id)).n)
      await fresh.end()
    }
    expect(seen).toEqual(new Set([0, 1]))
    await client.end()
  })

  it('what the question costs is no statement of the client: tags, rows and errors are its own', async () => {
    const client = await served.connect()
    const result = await client.query('insert into note values ($1) returning id', [nextId++])
    expect(result.command).toBe('INSERT')
    expect(result.rows).toHaveLength(1)
    const several = (await client.query(
      'select 1 as a; select 2 as b',
    )) as unknown as pg.QueryResult[]
    expect(several.map(({ rows }) => rows)).toEqual([[{ a: 1 }], [{ b: 2 }]])
    await expect(client.query('select 1/0')).rejects.toMatchObject({ code: '22012' })
    await client.query('begin')
    await client.query('select 1/0').catch(() => undefined)
    await expect(client.query('select 1')).rejects.toMatchObject({ code: '25P02' })
    expect((await client.query('commit')).command).toBe('ROLLBACK')
    expect((await client.query('select 5 as n')).rows).toEqual([{ n: 5 }])
    await client.end()
  })
})
