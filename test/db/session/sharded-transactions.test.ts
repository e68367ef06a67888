/** Transactions of one client over three shards: they look as those of one PostgreSQL, or refuse clearly. */
import type pg from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { expectNothingLeft } from '../../support/leak-check.js'
import { waitFor } from '../../support/wait-for.js'
import { failure, SHARDS, type ShardedRig, useShardedRig } from './sharded-rig.js'

const ABORTED =
  '25P02 current transaction is aborted, commands ignored until end of transaction block'
const INSERT = 'insert into item (k, id, v) values ($1, $2, $3)'

/** A client for each test, whose transaction leaves nothing behind. */
function useClient(rig: () => ShardedRig): () => pg.Client {
  let client: pg.Client | undefined
  beforeEach(async () => {
    await rig().everywhere('truncate item, late')
    client = await rig().served.connect()
  })
  afterEach(async () => {
    await client?.end()
    for (let shard = 0; shard < SHARDS; shard++)
      await expectNothingLeft((sql) => rig().onShard(shard, sql))
  })
  return () => client!
}

/** Rows of `item` on each shard, past the proxy. */
const landed = async (rig: ShardedRig): Promise<unknown[]> =>
  (await rig.everywhere('select id from item order by id')).map((rows) => rows.map(({ id }) => id))

describe('transactions over shards', () => {
  const rig = useShardedRig(['default_pool_size = 4'])
  const client = useClient(rig)
  const key = (shard: number, nth = 0) => rig().key(shard, nth)
  const put = (shard: number, id: number, v = 'x') => client().query(INSERT, [key(shard), id, v])
  const run = async (...statements: string[]) => {
    for (const sql of statements) await client().query(sql)
  }

  /** Shards on which a transaction of the proxy is open. */
  const open = async (): Promise<number[]> => {
    const counts = await rig().everywhere(
      `select count(*)::int as n from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid() and xact_start is not null
       and backend_type = 'client backend'`,
    )
    return counts.flatMap((rows, shard) => (rows[0]?.['n'] === 0 ? [] : [shard]))
  }

  it('begin where their first statement goes', async () => {
    await run('begin')
    expect(await open()).toEqual([])
    await put(1, 1)
    expect(await open()).toEqual([1])
    await client().query('select id from item where k = $1', [key(2)])
    expect(await open()).toEqual([1, 2])
    await run('commit')
    expect(await open()).toEqual([])
    expect(await landed(rig())).toEqual([[], [1], []])
  })

  it('commit on all shards that were written, and roll back on all', async () => {
    await run('begin')
    for (const shard of [0, 1, 2]) await put(shard, shard + 1)
    expect((await client().query('commit')).command).toBe('COMMIT')
    expect(await landed(rig())).toEqual([[1], [2], [3]])
    await run('begin')
    for (const shard of [2, 0]) await put(shard, 9)
    expect((await client().query('rollback')).command).toBe('ROLLBACK')
    expect(await landed(rig())).toEqual([[1], [2], [3]])
  })

  it('commit what they wrote on one shard when others were only read', async () => {
    await run('begin')
    await client().query('select id from item where k = $1', [key(0)])
    await put(2, 1)
    await client().query('select id from item')
    expect((await client().query('commit')).command).toBe('COMMIT')
    expect(await landed(rig())).toEqual([[], [], [1]])
  })

  it('go back to a savepoint also on a shard that joined after it', async () => {
    await run('begin')
    await put(0, 1)
    await run('savepoint s')
    await put(0, 2)
    await put(1, 2)
    await run('rollback to s')
    await put(2, 3)
    await run('release s', 'commit')
    expect(await landed(rig())).toEqual([[1], [], [3]])
  })

  it('keep nested savepoints of the same name apart, over shards', async () => {
    await run('begin', 'savepoint s')
    await put(0, 1)
    await run('savepoint s')
    await put(1, 2)
    await run('rollback to s')
    await put(2, 3)
    await run('release s')
    await put(1, 4)
    await run('rollback to s')
    await put(0, 5)
    await run('commit')
    expect(await landed(rig())).toEqual([[5], [], []])
  })

  it('go on after an error when they go back to a savepoint', async () => {
    await run('begin')
    await put(0, 1)
    await run('savepoint s')
    await put(1, 2)
    expect(await failure(put(1, 2))).toMatch(/^23505 duplicate key/)
    expect(await failure(put(0, 3))).toBe(ABORTED)
    await run('rollback to s')
    await put(2, 4)
    await run('commit')
    expect(await landed(rig())).toEqual([[1], [], [4]])
  })

  it('say that a savepoint is not there as PostgreSQL does', async () => {
    await run('begin')
    expect(await failure(client().query('rollback to nowhere'))).toBe(
      '3B001 savepoint "nowhere" does not exist',
    )
    await run('rollback', 'begin')
    await put(0, 1)
    await put(1, 1)
    expect(await failure(client().query('release savepoint nowhere'))).toBe(
      '3B001 savepoint "nowhere" does not exist',
    )
    expect(await failure(put(0, 2))).toBe(ABORTED)
    await run('rollback')
    expect(await landed(rig())).toEqual([[], [], []])
  })

  it('end as ROLLBACK when COMMIT follows an error, on every shard', async () => {
    await run('begin')
    await put(0, 1)
    await put(1, 1)
    expect(await failure(client().query(`select 1 / 0 from item where k = ${key(0)}`))).toBe(
      '22012 division by zero',
    )
    for (const shard of [0, 1, 2]) expect(await failure(put(shard, 2))).toBe(ABORTED)
    expect(await failure(client().query('select 1'))).toBe(ABORTED)
    expect(await failure(client().query('savepoint s'))).toBe(ABORTED)
    expect((await client().query('commit')).command).toBe('ROLLBACK')
    expect(await landed(rig())).toEqual([[], [], []])
    await put(0, 3)
    expect(await landed(rig())).toEqual([[3], [], []])
  })

  it('refuse what cannot be routed, and then all until ROLLBACK', async () => {
    await run('begin')
    await put(0, 1)
    expect(await failure(client().query('select tableoid from item'))).toMatch(/^0A000 /)
    expect(await failure(put(0, 2))).toBe(ABORTED)
    expect((await client().query('commit')).command).toBe('ROLLBACK')
    expect(await landed(rig())).toEqual([[], [], []])
  })

  it('carry SET and SET LOCAL to shards that join later, and undo them', async () => {
    const shown = async (shard: number, name: string) => {
      const { rows } = await client().query(
        `select current_setting('${name}') as v from item where k = $1 union all select current_setting('${name}') limit 1`,
        [key(shard)],
      )
      return rows[0].v
    }
    await run("set work_mem to '5MB'", 'begin')
    expect(await shown(0, 'work_mem')).toBe('5MB')
    await run("set work_mem to '6MB'", "set local statement_timeout to '77s'")
    for (const shard of [0, 1, 2]) {
      expect(await shown(shard, 'work_mem')).toBe('6MB')
      expect(await shown(shard, 'statement_timeout')).toBe('77s')
    }
    await run("set local work_mem to '7MB'")
    for (const shard of [0, 1, 2]) expect(await shown(shard, 'work_mem')).toBe('7MB')
    await run('commit')
    for (const shard of [0, 1, 2]) {
      expect(await shown(shard, 'work_mem')).toBe('6MB')
      expect(await shown(shard, 'statement_timeout')).toBe('0')
    }
    await run('begin')
    expect(await shown(1, 'work_mem')).toBe('6MB')
    await run("set work_mem to '8MB'")
    expect(await shown(2, 'work_mem')).toBe('8MB')
    await run('rollback')
    for (const shard of [0, 1, 2]) expect(await shown(shard, 'work_mem')).toBe('6MB')
  })

  it('roll back all shards when one refuses at its commit', async () => {
    const late = (shard: number) => client().query('insert into late values ($1, 1)', [key(shard)])
    await late(1)
    for (const order of [
      [0, 1],
      [1, 0],
      [0, 2, 1],
    ]) {
      await run('begin')
      for (const shard of order) await late(shard)
      expect(await failure(client().query('commit'))).toMatch(/^23505 duplicate key/)
      const counts = await rig().everywhere('select n from late')
      expect(counts.map((rows) => rows.length)).toEqual([0, 1, 0])
    }
    // outside a transaction now
    await put(0, 1)
    expect(await landed(rig())).toEqual([[1], [], []])
  })

  it('see one moment of every shard at REPEATABLE READ, from their first statement on', async () => {
    const seen = async () =>
      (await client().query('select id from item order by id')).rows.map((row) => row.id)
    const begins = [
      ['begin isolation level repeatable read'],
      ['begin', 'set transaction isolation level repeatable read'],
      ["set default_transaction_isolation to 'repeatable read'", 'begin'],
      ['begin isolation level repeatable read read only'],
      ['begin isolation level repeatable read', 'savepoint s'],
    ]
    for (const [n, begin] of begins.entries()) {
      await rig().everywhere('truncate item')
      await run('reset default_transaction_isolation', ...begin)
      await client().query('select id from item where k = $1', [key(1)])
      expect(await open()).toEqual([0, 1, 2])
      for (const shard of [0, 1, 2])
        await rig().onShard(shard, INSERT, [key(shard), 10 + shard, 'later'])
      expect(await seen()).toEqual([])
      if (n < 2) {
        await put(2, 1)
        await put(0, 2)
        expect(await seen()).toEqual([1, 2])
      }
      expect((await client().query('commit')).command).toBe('COMMIT')
      expect(await seen()).toEqual(n < 2 ? [1, 2, 10, 11, 12] : [10, 11, 12])
    }
    await run('reset default_transaction_isolation')
    // in one string as well
    await rig().everywhere('truncate item')
    await run(`begin isolation level repeatable read; select id from item where k = ${key(1)}`)
    await rig().onShard(2, INSERT, [key(2), 1, 'later'])
    expect(await seen()).toEqual([])
    await run('rollback')
  })

  it('find that a row has changed since their snapshot, on whichever shard (40001)', async () => {
    await put(0, 1)
    await run('begin isolation level repeatable read')
    await client().query('select id from item where k = $1', [key(1)])
    await rig().onShard(0, "update item set v = 'changed'")
    const late = client().query("update item set v = 'late' where k = $1", [key(0)])
    expect(await failure(late)).toMatch(/^40001 could not serialize access/)
    await run('rollback')
  })

  it('stay on one shard when they are SERIALIZABLE, and say so', async () => {
    const begin = 'begin isolation level serializable'
    await run(begin)
    await client().query('select id from item where k = $1', [key(1)])
    await put(1, 1)
    expect(await failure(put(2, 1))).toMatch(/^0A000 a SERIALIZABLE transaction stays on/)
    expect((await client().query('commit')).command).toBe('ROLLBACK')
    await run(begin)
    expect(await failure(client().query('select id from item'))).toMatch(/^0A000 a SERIALIZABLE/)
    await run('rollback', 'begin', 'set transaction isolation level serializable')
    await put(0, 1)
    expect(await failure(put(1, 1))).toMatch(/^0A000 a SERIALIZABLE/)
    await run('rollback', 'begin isolation level read committed', "set local work_mem to '9MB'")
    await put(2, 1)
    await put(1, 1)
    await run('rollback')
    expect(await landed(rig())).toEqual([[], [], []])
  })

  it('COMMIT AND CHAIN opens the next one, with shards of its own', async () => {
    for (const shards of [[0], [0, 1]]) {
      await rig().everywhere('truncate item')
      await run('begin')
      for (const shard of shards) await put(shard, 1)
      await run('commit and chain')
      await put(0, 2)
      await put(2, 2)
      expect(await landed(rig())).toEqual([[1], shards.includes(1) ? [1] : [], []])
      await run('rollback and chain')
      await put(1, 3)
      await run('rollback')
      expect(await landed(rig())).toEqual([[1], shards.includes(1) ? [1] : [], []])
    }
  })

  it('are rolled back everywhere when their client vanishes', async () => {
    const lost = await rig().served.connect()
    lost.on('error', () => undefined)
    await lost.query('begin')
    for (const shard of [0, 1, 2]) await lost.query(INSERT, [key(shard), 1, 'lost'])
    const { stream } = (lost as unknown as { connection: { stream: { destroy(): void } } })
      .connection
    stream.destroy()
    await waitFor(async () => (await open()).length === 0)
    expect(await landed(rig())).toEqual([[], [], []])
    for (const shard of [0, 1, 2]) await put(shard, 1)
  })
})

describe('cross_shard_serializable = "per_shard"', () => {
  const rig = useShardedRig(['cross_shard_serializable = "per_shard"'])
  const client = useClient(rig)
  const put = (shard: number, id: number) => client().query(INSERT, [rig().key(shard), id, 'x'])

  it('lets them go over shards, serializable on each', async () => {
    await client().query('begin isolation level serializable')
    await put(1, 1)
    await put(2, 2)
    await rig().onShard(0, INSERT, [rig().key(0), 9, 'later'])
    const { rows } = await client().query('select id from item order by id')
    expect(rows).toEqual([{ id: 1 }, { id: 2 }])
    expect((await client().query('commit')).command).toBe('COMMIT')
    expect(await landed(rig())).toEqual([[9], [1], [2]])
  })
})

describe('cross_shard_writes = "best_effort"', () => {
  const rig = useShardedRig(['cross_shard_writes = "best_effort"'])
  const client = useClient(rig)
  const put = (shard: number, id: number) => client().query(INSERT, [rig().key(shard), id, 'x'])

  it('commits shard by shard, and says so each time', async () => {
    const heard: string[] = []
    client().on('notice', ({ message }) => heard.push(message ?? ''))
    await client().query('begin')
    await put(1, 1)
    await put(2, 2)
    expect((await client().query('commit')).command).toBe('COMMIT')
    expect(heard).toEqual([expect.stringMatching(/^shards 1, 2 were committed one after/)])
    expect(await landed(rig())).toEqual([[], [1], [2]])
  })

  it('says what is committed when a later shard refuses', async () => {
    const late = (shard: number) =>
      client().query('insert into late values ($1, 1)', [rig().key(shard)])
    await late(2)
    await client().query('begin')
    await late(1)
    await late(2)
    expect(await failure(client().query('commit'))).toMatch(
      /^40003 shard 1 committed, but shard 2 did not: duplicate key/,
    )
    const counts = await rig().everywhere('select n from late')
    expect(counts.map((rows) => rows.length)).toEqual([0, 1, 1])
  })
})

describe('cross_shard_writes = "error"', () => {
  const rig = useShardedRig(['cross_shard_writes = "error"'])
  const client = useClient(rig)
  const put = (shard: number, id: number) => client().query(INSERT, [rig().key(shard), id, 'x'])

  it('lets a transaction write one shard and read all', async () => {
    await client().query('begin')
    await put(1, 1)
    await client().query('select id from item')
    await put(1, 2)
    expect((await client().query('commit')).command).toBe('COMMIT')
    expect(await landed(rig())).toEqual([[], [1, 2], []])
  })

  it('does not take SET and SAVEPOINT for writes', async () => {
    await client().query('begin')
    await client().query("set local work_mem to '9MB'")
    await client().query('select id from item')
    await client().query('savepoint s')
    await put(2, 1)
    expect((await client().query('commit')).command).toBe('COMMIT')
    expect(await landed(rig())).toEqual([[], [], [1]])
  })

  it('D78, D80: refuses the second shard before anything is written there', async () => {
    await client().query('begin')
    await put(1, 1)
    expect(await failure(put(0, 2))).toBe(
      '0A000 the transaction would write shard 0 after it wrote shard 1',
    )
    expect(await failure(put(1, 3))).toBe(ABORTED)
    expect((await client().query('commit')).command).toBe('ROLLBACK')
    expect(await landed(rig())).toEqual([[], [], []])
  })
})
