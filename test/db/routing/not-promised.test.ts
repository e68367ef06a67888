/** What another PostgreSQL would give and several shards do not (docs/limits.md): what happens instead. */
import { execFile } from 'node:child_process'
import pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { findTool, isMissing } from '../../support/tools.js'
import { waitFor } from '../../support/wait-for.js'
import { failure, SHARDS, useShardedRig } from '../session/sharded-rig.js'

describe('not promised over several shards', () => {
  const rig = useShardedRig()
  beforeAll(async () => {
    await rig().everywhere(`
      create sequence drawn;
      create function tell() returns trigger language plpgsql as $$ begin perform pg_notify('told', current_database()); return new; end $$;
      create trigger tells after insert on item for each row execute function tell()`)
    for (let shard = 0; shard < SHARDS; shard++)
      await rig().onShard(shard, `insert into item values (${rig().key(shard)}, 1, 'one')`)
  })
  const rows = (sql: string) => rig().served.query(sql)

  it('D131: all shards work at the same time', async () => {
    const { served, everywhere, databases } = rig()
    const holders = await Promise.all(
      databases.map(async (name) => {
        const holder = new pg.Client({
          host: '127.0.0.1',
          port: rig().plainPort,
          user: 'postgres',
          database: name,
        })
        await holder.connect()
        await holder.query('begin; lock table item in access exclusive mode')
        return holder
      }),
    )
    const answer = served.query('select count(*) from item')
    const waiting = () =>
      everywhere(
        `select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query ilike 'select count%'`,
      )
    try {
      await waitFor(async () => (await waiting()).flat().every(({ n }) => n === 1))
    } finally {
      await Promise.all(holders.map((holder) => holder.end()))
    }
    expect(await answer).toEqual([{ count: String(SHARDS) }])
  })

  it('catalogs and statistics are those of shard 0', async () => {
    await rig().onShard(1, 'create table only_there (a int)')
    expect(await rows("select relname from pg_class where relname = 'only_there'")).toEqual([])
    const [row] = await rows(
      'select datname from pg_stat_database where datname = current_database()',
    )
    expect(row).toEqual({ datname: rig().databases[0] })
    await rig().onShard(1, 'drop table only_there')
  })

  it.each([
    'select ctid from item',
    'select xmin, k from item',
    'select tableoid::regclass from item',
    'select pg_backend_pid(), k from item',
    'select inet_server_port(), k from item',
    'select txid_current(), k from item',
    'select pg_current_snapshot() from item',
    "select currval('drawn')",
    'select lastval()',
    "select nextval('drawn'), k from item",
    "select setval('drawn', 7)",
    "begin; insert into item values (1, 50, 'x'); prepare transaction 'mine'",
    "commit prepared 'mine'",
    "copy item from '/tmp/rows'",
    "copy item from program 'cat'",
    "copy (select * from item) to program 'cat'",
  ])('refused, and the session goes on: %s', async (sql) => {
    const client = await rig().served.connect()
    expect(await failure(client.query(sql))).toMatch(/^0A000/)
    await client.query('rollback')
    expect((await client.query('select count(*)::int as n from item')).rows).toEqual([
      { n: SHARDS },
    ])
    await client.end()
  })

  it.each([
    'select pg_backend_pid() > 0 as ok',
    'select txid_current() > 0 as ok',
    'select pg_current_snapshot() is not null as ok',
    "select nextval('drawn') > 0 as ok",
    'select inet_server_port() > 0 as ok',
  ])('answered by one server where no rows are asked: %s', async (sql) => {
    expect(await rows(sql)).toEqual([{ ok: true }])
  })

  it('large objects live on shard 0', async () => {
    const [made] = await rows("select lo_from_bytea(0, 'large') as oid")
    const [back] = await rows(`select convert_from(lo_get(${made!['oid']}), 'utf8') as text`)
    expect(back).toEqual({ text: 'large' })
    const found = await rig().everywhere('select count(*)::int as n from pg_largeobject_metadata')
    expect(found.flat().map(({ n }) => n)).toEqual([1, ...new Array(SHARDS - 1).fill(0)])
  })

  it('a NOTIFY from a trigger is heard from shard 0 only', async () => {
    const { served, databases, key } = rig()
    const listener = await served.connect()
    const heard: (string | undefined)[] = []
    listener.on('notification', ({ payload }) => heard.push(payload))
    await listener.query('listen told')
    for (const shard of [1, 2, 0])
      await served.query(`insert into item values (${key(shard)}, 2, 'two')`)
    await waitFor(() => heard.length > 0)
    expect(heard).toEqual([databases[0]])
    await listener.end()
    await rig().everywhere('delete from item where id = 2')
  })

  it('logical replication is refused at login', async () => {
    const { url } = rig().served
    const client = new pg.Client({
      connectionString: url,
      replication: 'database',
    } as pg.ClientConfig)
    client.on('error', () => undefined)
    await expect(client.connect()).rejects.toMatchObject({ code: '0A000' })
  })

  it.skipIf(isMissing('pg_dump'))(
    'pg_dump ends with the reason, and writes no half of the rows',
    async () => {
      const { url } = rig().served
      const told = await new Promise<{ code: number; stderr: string; stdout: string }>(
        (resolve) => {
          execFile(findTool('pg_dump') as string, ['--data-only', url], (error, stdout, stderr) =>
            resolve({ code: error ? 1 : 0, stdout, stderr }),
          )
        },
      )
      expect(told.code, told.stderr).toBe(1)
      expect(told.stderr).toMatch(
        /(stays on the shard of its first statement|reading sequence .* over several shards)[\s\S]*HINT/,
      )
      expect(told.stdout).not.toMatch(/^COPY|^INSERT/m)
    },
  )
})
