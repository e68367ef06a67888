/** Three shards on one PostgreSQL 15 behind serve, with tables whose sums are asked for while they change. */
import type pg from 'pg'
import { afterAll, beforeAll, expect } from 'vitest'
import { runCli } from '../../support/run-cli.js'
import { type Served, startServe, writeServeConfig } from '../../support/serve.js'
import { usePostgres } from '../../support/use-postgres.js'

export const SHARDS = 3

const sharded = ['purse', 'chest', 'wide', 'odd']
const tables = [
  ...sharded.map((name) => `[[sharded_tables]]\ndatabase = "app"\nname = "${name}"\ncolumn = "k"`),
  '[[omnisharded_tables]]\ndatabase = "app"\ntables = ["coin"]',
].join('\n')

const schema = `
create table purse (k bigint, id int, amount int, note text, primary key (k, id));
create table chest (k bigint, id int, amount int, kept timestamptz, primary key (k, id));
create table wide (k bigint, v text);
create type mood as enum ('sad', 'ok');
create table odd (k bigint, m mood, tags text[], blank char(4), raw bytea, span interval, f float8, j jsonb, x xml, z timestamptz);
create table coin (code text primary key, worth int);
insert into coin values ('cent', 1), ('dime', 10);
create view pair as select p.k, p.id, p.note, c.amount + p.amount as held from purse p join chest c on c.id = p.id;
create view rich as select note, sum(held) as held, (select max(worth) from coin) as worth from pair group by note;
create view shy as select id from purse where pg_sleep(0) is not null`

export interface GatherRig {
  readonly served: Served
  readonly databases: readonly string[]
  /** Straight to a shard. */
  onShard(shard: number, sql: string): Promise<Record<string, unknown>[]>
  everywhere(sql: string): Promise<Record<string, unknown>[][]>
  /** Nothing of ours is left on any server: no open transaction, no temporary relation. */
  expectClean(): Promise<void>
}

export function useGatherRig(
  general: readonly string[] = [],
  user: readonly string[] = [],
): () => GatherRig {
  const postgres = usePostgres({ version: 15, settings: { max_prepared_transactions: '20' } })
  let rig: GatherRig | undefined
  const clients: pg.Client[] = []
  beforeAll(async () => {
    const { host, port } = postgres().servers[0]!
    const databases: string[] = []
    for (let shard = 0; shard < SHARDS; shard++) {
      databases.push(await postgres().createDatabase())
      clients.push(await postgres().connect(0, databases[shard]))
      await clients[shard]!.query(schema)
    }
    const setup = {
      shards: databases.map((database) => ({ host, port, database })),
      tables,
      general,
      user,
    }
    const files = writeServeConfig(setup)
    const done = await runCli(['setup', '-c', files.configPath, '-u', files.usersPath])
    if (done.code !== 0) throw new Error(`setup failed: ${done.stderr}`)
    const onShard: GatherRig['onShard'] = async (shard, sql) =>
      (await clients[shard]!.query(sql)).rows as Record<string, unknown>[]
    const everywhere: GatherRig['everywhere'] = (sql) =>
      Promise.all(databases.map((_, shard) => onShard(shard, sql)))
    rig = {
      served: await startServe(setup),
      databases,
      onShard,
      everywhere,
      expectClean: async () => {
        const open = await everywhere(
          `select count(*)::int as n from pg_stat_activity where datname = current_database() and state like 'idle in%'`,
        )
        const left = await everywhere(
          `select count(*)::int as n from pg_class where relpersistence = 't' and pg_table_is_visible(oid) is not null`,
        )
        expect([...open, ...left].flat().map(({ n }) => n)).toEqual(new Array(2 * SHARDS).fill(0))
      },
    }
  })
  afterAll(() => Promise.all(clients.map((client) => client.end().catch(() => undefined))))
  return () => rig!
}

/** A client that leaves with the test. */
export async function withClient<T>(
  served: Served,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = await served.connect()
  try {
    return await work(client)
  } finally {
    await client.end().catch(() => undefined)
  }
}

/** `SQLSTATE message` of what must fail, and its hint. */
export async function failureOf(
  work: Promise<unknown>,
): Promise<{ code: string; message: string; hint: string | undefined }> {
  try {
    await work
  } catch (error) {
    const { code = '', message, hint } = error as { code?: string; message: string; hint?: string }
    return { code, message, hint }
  }
  throw new Error('it did not fail')
}
