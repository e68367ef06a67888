/** A primary and two replicas behind one database with role = auto: what goes where, and a primary that is killed under writing clients. */
import pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.js'
import { requireState } from '../../../src/cluster/cluster-state.js'
import { startInstance } from '../../../src/cluster/instance.js'
import { instanceOf } from '../../../src/cluster/plan-cluster.js'
import { type Served, startServe } from '../../support/serve.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'

const WRITERS = 32
const CHECK_INTERVAL_MS = 300

describe('a primary and two replicas', () => {
  const postgres = usePostgres({ version: 15, replicas: 2 })
  let served: Served

  beforeAll(async () => {
    const { servers, replicas, database } = postgres()
    const hosts = [servers[0]!, ...replicas]
    await postgres().query('create table acked (id text primary key)')
    await postgres().query(
      "create function volatile_one() returns int language plpgsql as 'begin return 1; end'",
    )
    served = await startServe({
      shards: hosts.map(({ host, port }) => ({
        ...{ host, port, database },
        ...({ role: 'auto', shard: 0 } as const),
      })),
      general: [
        'read_write_split = "exclude_primary"',
        `lsn_check_interval = ${CHECK_INTERVAL_MS}`,
      ],
    })
    const [row] = await postgres().query('select pg_current_wal_insert_lsn()::text as lsn')
    for (const { host, port } of replicas) {
      const at = new pg.Client({ host, port, user: 'postgres', database })
      await at.connect()
      await waitFor(async () => {
        const sql = 'select pg_last_wal_replay_lsn() >= $1::pg_lsn as there'
        return (await at.query(sql, [row?.['lsn']])).rows[0].there === true
      })
      await at.end()
    }
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

  const places = async (statements: readonly string[], client?: pg.Client) => {
    const own = client ?? (await quietClient())
    const found: string[] = []
    for (const sql of statements) {
      const results = [await own.query(sql)].flat()
      const rows = results.flatMap((result) => result.rows as { r?: boolean }[])
      for (const row of rows) if (row.r !== undefined) found.push(where(row.r))
    }
    if (!client) await own.end()
    return found
  }

  describe('D3, D84–D89: each statement goes where it can be done', () => {
    it.each([
      ['a read', [`select ${asked}`], 'replica'],
      ['a read of a table', [`select ${asked}, (select count(*) from acked)`], 'replica'],
      ['a read whose text speaks of writing', [`select ${asked}, 'INSERT; for update'`], 'replica'],
      [
        'a locking read',
        [
          `select ${asked} from (select id from acked for update) x right join (select 1) y on true`,
        ],
        'primary',
      ],
      ['a write', [`insert into acked values ('w') returning ${asked}`], 'primary'],
      ['DDL with what follows', [`create table if not exists d (); select ${asked}`], 'primary'],
      [
        'a writing CTE',
        [`with w as (insert into acked values ('cte') returning 1) select ${asked}`],
        'primary',
      ],
      ['a volatile function of a user', [`select ${asked}, volatile_one()`], 'primary'],
      [
        'a function that needs a transaction number',
        [`select ${asked}, txid_current()`],
        'primary',
      ],
      ['a transaction', ['begin', `select ${asked}`, 'commit'], 'primary'],
      [
        'a transaction that only reads',
        ['begin read only', `select ${asked}`, 'commit'],
        'replica',
      ],
      [
        'several statements of which one writes',
        [`update acked set id = id where false; select ${asked}`],
        'primary',
      ],
    ] as [string, string[], string][])('%s', async (_what, statements, place) => {
      expect(await places(statements)).toEqual([place])
    })
  })

  /** Another serve before the same hosts. */
  const other = (...general: string[]) => {
    const { servers, replicas, database } = postgres()
    return startServe({
      shards: [servers[0]!, ...replicas].map(({ host, port }, i) => ({
        ...{ host, port, database, shard: 0 },
        role: i === 0 ? ('primary' as const) : ('replica' as const),
      })),
      general,
    })
  }
  const connectTo = async ({ url }: Served) => {
    const client = new pg.Client({ connectionString: url })
    client.on('error', () => undefined)
    await client.connect()
    return client
  }
  const portsOf = async (
    client: pg.Client,
    count: number,
    sql = 'select inet_server_port() as p',
  ) => {
    const ports: number[] = []
    for (let i = 0; i < count; i++) ports.push((await client.query(sql)).rows[0].p)
    return ports
  }

  it('D90: aggressive: the first statement of a transaction decides where it runs', async () => {
    const aggressive = await other(
      'read_write_strategy = "aggressive"',
      'read_write_split = "exclude_primary"',
    )
    const client = await connectTo(aggressive)
    expect(await places(['begin', `select ${asked}`, `select ${asked}`, 'commit'], client)).toEqual(
      ['replica', 'replica'],
    )
    const insert = `insert into acked values ('aggressive') returning ${asked}`
    expect(await places(['begin', insert, `select ${asked}`, 'commit'], client)).toEqual([
      'primary',
      'primary',
    ])
    expect(await places(['begin read write', `select ${asked}`, 'rollback'], client)).toEqual([
      'primary',
    ])
    await client.query('begin')
    await places([`select ${asked}`], client)
    await expect(client.query(insert)).rejects.toMatchObject({ code: '25006' })
    await client.query('rollback')
    await client.end()
  })

  it('D91: round robin gives each replica exactly half; least active avoids the busy one', async () => {
    const ports = postgres().replicas.map(({ port }) => port)
    const split = 'read_write_split = "exclude_primary"'
    const turns = await connectTo(await other('load_balancing_strategy = "round_robin"', split))
    const seen = await portsOf(turns, 20)
    for (const port of ports) expect(seen.filter((one) => one === port)).toHaveLength(10)
    await turns.end()

    const least = await other('load_balancing_strategy = "least_active_connections"', split)
    const busy = await connectTo(least)
    const { rows } = await busy
      .query('begin read only; select inet_server_port() as p')
      .then((results) => (results as unknown as pg.QueryResult[])[1]!)
    const client = await connectTo(least)
    expect(new Set(await portsOf(client, 10))).toEqual(
      new Set(ports.filter((port) => port !== rows[0].p)),
    )
    await busy.end()
    await client.end()
  })

  it('D92: SHOW STATS counts reads and writes of each host', async () => {
    const admin = new pg.Client({ connectionString: served.adminUrl })
    await admin.connect()
    const client = await quietClient()
    const port = postgres().servers[0]!.port
    const ofPrimary = async () => {
      const { rows } = await admin.query('show stats')
      const row = rows.find((one) => Number(one.port) === port)
      return [Number(row.total_reads), Number(row.total_writes)] as const
    }
    const [reads, writes] = await ofPrimary()
    for (let i = 0; i < 3; i++) await client.query(`insert into acked values ('stats${i}')`)
    await client.query('begin')
    await client.query('select 1')
    await client.query('commit')
    expect(await ofPrimary()).toEqual([reads + 1, writes + 3])
    await client.end()
    await admin.end()
  })

  it('D100: SHOW REPLICATION has the LSN of each host, and it moves', async () => {
    const admin = new pg.Client({ connectionString: served.adminUrl })
    await admin.connect()
    const client = await quietClient()
    const lsns = async () => {
      const { rows } = await admin.query('show replication')
      return new Map(rows.map((row) => [Number(row.port), row]))
    }
    const { servers, replicas } = postgres()
    const before = await lsns()
    expect(before.size).toBe(3)
    expect(before.get(servers[0]!.port)).toMatchObject({ role: 'primary', pg_is_in_recovery: 'f' })
    expect(before.get(replicas[0]!.port)).toMatchObject({ role: 'replica', pg_is_in_recovery: 't' })
    await client.query(`insert into acked select 'lsn' || n from generate_series(1, 1000) n`)
    await waitFor(async () => {
      const now = await lsns()
      return [servers[0]!, ...replicas].every(
        ({ port }) => now.get(port)!.pg_lsn !== before.get(port)!.pg_lsn,
      )
    })
    expect((await lsns()).get(replicas[0]!.port)!.pg_lsn).toMatch(/^[0-9A-F]+\/[0-9A-F]+$/)
    await client.end()
    await admin.end()
  })

  it('D99: the primary is killed under 32 writing clients: each sees at most its own statement fail', async () => {
    const { servers, replicas, database } = postgres()
    const replica = replicas[0]!
    /** Of each writer, in order: when a write that began then was acknowledged, and where it went. */
    const writes = Array.from(
      { length: WRITERS },
      () => [] as { startedMs: number; port: number }[],
    )
    const failures = Array.from({ length: WRITERS }, () => [] as string[])
    let isOver = false
    const writer = async (n: number) => {
      let client: pg.Client | undefined
      for (let i = 0; !isOver; i++) {
        const startedMs = performance.now()
        try {
          client ??= await quietClient()
          const sql = 'insert into acked values ($1) returning inet_server_port() as port'
          const { rows } = await client.query(sql, [`${n}-${i}`])
          writes[n]!.push({ startedMs, port: rows[0].port })
        } catch (error) {
          failures[n]!.push(`${(error as { code?: string }).code}: ${(error as Error).message}`)
          await client?.end().catch(() => undefined)
          client = undefined
        }
      }
      await client?.end()
    }
    const writers = Array.from({ length: WRITERS }, (_, n) => writer(n))
    await waitFor(() => writes.every((own) => own.length > 2))
    process.kill(servers[0]!.pid, 'SIGKILL')
    const at = new pg.Client({ host: replica.host, port: replica.port, user: 'postgres', database })
    at.on('error', () => undefined)
    await at.connect()
    await at.query('select pg_promote()')
    const promotedAt = performance.now()
    const ofNew = (own: (typeof writes)[number]) => own.filter(({ port }) => port === replica.port)
    await waitFor(() => writes.some((own) => ofNew(own).length > 0), { deadlineMs: 20_000 })
    const gapMs = performance.now() - promotedAt
    await waitFor(() => writes.every((own) => ofNew(own).length > 2), { deadlineMs: 20_000 })

    // The old one comes back and still believes that it is the primary.
    const state = requireState(postgres().directory)
    const old = state.instances.find(({ port }) => port === servers[0]!.port)!
    await startInstance(instanceOf(state, old), systemClock)
    const admin = new pg.Client({ connectionString: served.adminUrl })
    await admin.connect()
    const roles = async () => {
      const { rows } = await admin.query('show pools')
      return new Map(rows.map((row) => [Number(row.port), row.role]))
    }
    await waitFor(async () => (await roles()).get(old.port) === 'stale')
    expect((await roles()).get(replica.port)).toBe('primary')
    await admin.end()
    const countOfOld = async () =>
      Number((await postgres().query('select count(*) as n from acked'))[0]?.['n'])
    const before = await countOfOld()
    const seen = writes.map((own) => own.length)
    await waitFor(() => writes.every((own, n) => own.length > seen[n]! + 5))
    isOver = true
    await Promise.all(writers)
    expect(await countOfOld()).toBe(before)

    for (const own of failures) expect(own.length, JSON.stringify(failures)).toBeLessThanOrEqual(1)
    // the rest is what a busy machine adds
    expect(gapMs).toBeLessThan(CHECK_INTERVAL_MS + 2000)
    for (const own of writes) {
      const first = own.findIndex(({ port }) => port === replica.port)
      expect(own.slice(first).every(({ port }) => port === replica.port)).toBe(true)
    }
    const { rows } = await at.query('select count(*)::int as n from acked where id like $1', [
      '%-%',
    ])
    const sure = writes.reduce((sum, own) => sum + ofNew(own).length, 0)
    expect(rows[0].n).toBeGreaterThanOrEqual(sure)
    await at.end()
  }, 90_000)
})
