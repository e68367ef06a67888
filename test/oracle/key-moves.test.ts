/**
 * UPDATE of the sharding key over four shards and on one plain PostgreSQL, in the three ways of the protocol: the same
 * answers, the same rows afterwards, and every row on the shard of its key.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Answer, ask, asMultiset, type Mode, modes } from './ask.js'
import { useOracle } from './targets.js'

const shardSql = `
create schema m; set search_path = m;
create type mood as enum ('sad', 'happy');
create domain small as int check (value < 1000);
create table acct (tenant bigint, id int not null, name varchar(12) default 'none', f float8, r float4[], d date, b bytea,
  m mood default 'sad', s small, j jsonb, made timestamptz, n numeric(12, 2), total numeric generated always as (n * 2) stored,
  seq int generated always as identity, unique (tenant, id));
create table item (tenant bigint not null, acct int, qty int, foreign key (tenant, acct) references acct (tenant, id));
create table node (tenant bigint not null, id int, parent int, primary key (tenant, id), foreign key (tenant, parent) references node);
create table watched (tenant bigint, v int);
create function noted() returns trigger language plpgsql as 'begin return new; end';
create trigger watch before update on watched for each row execute function noted();
create table part (tenant bigint, k int, v text) partition by list (k);
create table part1 partition of part for values in (1);
create table part2 partition of part for values in (2);
create table rule (old_tenant bigint, new_tenant bigint)`

const partRows = `truncate part; insert into part values ${[1, 2, 3, 4, 5, 6, 7, 8].map((t) => `(${t}, ${1 + (t % 2)}, 'p${t}')`).join(', ')}`

const setupSql = `${shardSql};
insert into acct (tenant, id, name, f, r, d, b, m, s, j, made, n)
  select t, i, 'n' || t, 0.1::float8 + t / 3.0, array[1.1::float4, t], date '2024-01-01' + t, decode(lpad(to_hex(t), 4, '0'), 'hex'),
    case when t % 2 = 0 then 'happy' else 'sad' end::mood, t * i, jsonb_build_object('t', t), timestamptz '2024-01-01 00:00:00+00' + make_interval(secs => t), t / 7.0
  from generate_series(1, 9) t, generate_series(1, 3) i;
insert into acct (tenant, id, name) values (null, 1, 'nobody');
insert into item select t, 1, t from generate_series(1, 3) t;
insert into node select t, i, nullif(i - 1, 0) from generate_series(1, 4) t, generate_series(1, 3) i;
insert into watched values (1, 1), (2, 2);
${partRows};
insert into rule values (4, 104), (5, 105), (6, 106)`

const names = ['acct', 'item', 'node', 'watched', 'part']
const tables = [...names, 'rule']
/** COPY cannot read a partitioned table. */
const copied = tables.filter((name) => name !== 'part')
const sharding = `${names
  .map((name) => `[[sharded_tables]]\ndatabase = "app"\nname = "${name}"\ncolumn = "tenant"\n`)
  .join('\n')}\n[[omnisharded_tables]]\ndatabase = "app"\ntables = ["rule"]\n`

const shown: Record<string, string> = {
  acct: 'select tenant, id, name, f, r, d, b, m::text, s, j, made > to_timestamp(1735689600), n, total, seq is not null from acct',
}

const sorted = (answer: Answer): string[] => asMultiset(answer.rows)

describe('UPDATE of the sharding key over plain and sharded', () => {
  const oracle = useOracle({
    setupSql,
    shardSql,
    tables: copied,
    shards: 4,
    sharding,
    searchPath: 'm',
  })

  const load = async (): Promise<void> => {
    await oracle().reload()
    await ask(oracle().sharded, partRows, 'simple')
  }
  beforeEach(async () => {
    await ask(oracle().plain, 'begin', 'simple')
    await load()
  })
  afterEach(async () => {
    const { plain, sharded } = oracle()
    await ask(plain, 'rollback', 'simple')
    await ask(sharded, 'rollback', 'simple')
    await ask(sharded, 'reset all; set search_path to m', 'simple')
  })

  const sameContents = async (): Promise<void> => {
    for (const table of tables) await sameTable(table)
    for (const table of names) await rowsAreHome(table)
  }

  const sameTable = async (table: string): Promise<void> => {
    const { plain, sharded } = oracle()
    const sql = shown[table] ?? `select * from ${table}`
    const wanted = sorted(await ask(plain, sql, 'simple'))
    const over = await ask(sharded, sql, 'simple')
    expect(over.error, table).toBeUndefined()
    expect(sorted(over), table).toEqual(wanted)
  }

  /** A row on the wrong shard is found by no search for its key. */
  const rowsAreHome = async (table: string): Promise<void> => {
    const { sharded } = oracle()
    const keys = await ask(sharded, `select tenant, count(*) from ${table} group by 1`, 'simple')
    for (const [key, count] of keys.rows) {
      const where = key === null ? 'is null' : `= ${key}`
      const found = await ask(
        sharded,
        `select count(*) from ${table} where tenant ${where}`,
        'simple',
      )
      expect(found.rows, `${table} ${key}`).toEqual([[count]])
    }
  }

  const same = async (sql: string, mode: Mode): Promise<Answer> => {
    const { plain, sharded } = oracle()
    await ask(plain, 'savepoint one', 'simple')
    const direct = await ask(plain, sql, mode)
    if (direct.error) await ask(plain, 'rollback to one', 'simple')
    const over = await ask(sharded, sql, mode)
    expect(over.error?.sqlstate, `${sql}\n${over.error?.message}`).toBe(direct.error?.sqlstate)
    expect(over.tag, sql).toBe(direct.tag)
    expect(sorted(over), sql).toEqual(sorted(direct))
    const plainTypes = (columns: string[]) => columns.map((one) => one.replace(/:\d{5,}$/, ':user'))
    expect(plainTypes(over.columns), sql).toEqual(plainTypes(direct.columns))
    return over
  }

  const moves = [
    'update acct set tenant = tenant + 100 where tenant > 3',
    'update acct set tenant = tenant + 1 where tenant = 9',
    'update acct set tenant = 77 where tenant = 8 returning *',
    'update acct a set tenant = id * 50 + tenant, n = n + 1 where n > 0.5 and tenant > 3 returning a.tenant, id, total, upper(name) as u',
    'update acct set tenant = 4001 where id = 99 returning tenant, name',
    'update acct set tenant = null where tenant = 3 and id = 3 returning id, tenant',
    'update acct set tenant = 12 where tenant is null',
    'update acct set tenant = default where tenant = 7',
    "update acct set (tenant, name) = (tenant * 1000, 'long ' || id), m = 'happy', d = '2020-02-02' where tenant in (8, 4)",
    "update acct set (tenant, s) = row (tenant * 1000, 3), j = '[1]', b = '\\x00ff' where tenant in (8, 4)",
    'update acct set tenant = 15.4 where tenant = 1 and id = 3',
    "update acct set tenant = '31', f = f / 7, r = r || 0.3::float4 where tenant = 6",
    'update acct set tenant = new_tenant from rule where tenant = old_tenant',
    'update acct set tenant = (select new_tenant from rule where old_tenant = tenant) where tenant = 5',
    'with r as (select * from rule) update acct set tenant = new_tenant from r where tenant = old_tenant',
    "update part set tenant = tenant + 40 where v <> 'p3' returning tenant, k, v",
    'update part set tenant = tenant + 40, k = 3 - k',
    'update node set tenant = tenant + 20',
    'update node set tenant = 90 where tenant = 2 returning id, parent',
    'update acct set tenant = tenant - 30 where tenant is distinct from 1 and tenant > 6 and id = 3',
    'update acct set tenant = 44, made = now() where tenant = 5 and id = 2 returning made is null as missing',
  ]
  const failing = [
    // a unique key that is taken, and one that two rows would share
    'update acct set tenant = 4 where tenant = 5',
    'update acct set tenant = 600 where id = 2 and tenant > 3',
    // referred to by others
    'update acct set tenant = 200 where tenant = 1',
    // refers to what is not there
    'update item set tenant = 300 where tenant = 1',
    'update node set tenant = 9 where tenant = 1 and id = 3',
    "update acct set tenant = 33, name = 'much too long a name' where tenant = 4",
    'update acct set tenant = 33, s = 1000 where tenant = 4',
    'update acct set tenant = 33, total = 4 where tenant = 4',
    'update acct set tenant = name where tenant = 4',
    'update acct set tenant = 10 / (id - 2) where tenant = 4',
    'update acct set tenant = 99999999999999999999 where tenant = 4',
    'update acct set tenant = 1, nothing = 2 where id = 5',
    'update item set tenant = null where tenant = 2',
  ]

  it.each(modes)(
    'D116, D133: %s: in a transaction rows move, and a rollback brings them back',
    async (mode) => {
      const { plain, sharded } = oracle()
      for (const sql of moves) {
        const table = /^(?:with .*\) )?update (\w+)/.exec(sql)?.[1] ?? ''
        await ask(plain, 'savepoint whole', 'simple')
        await ask(sharded, 'begin', 'simple')
        expect((await same(sql, mode)).error, sql).toBeUndefined()
        await sameTable(table)
        await ask(plain, 'rollback to whole', 'simple')
        await ask(sharded, 'rollback', 'simple')
      }
      await sameContents()
    },
    120_000,
  )

  it('D116, D133: one after the other they leave the same rows, each on the shard of its key', async () => {
    for (const sql of moves) await same(sql, 'simple')
    await sameContents()
  }, 120_000)

  it.each(modes)('D116, D132: %s: what PostgreSQL refuses leaves every row', async (mode) => {
    for (const sql of failing) {
      const { sqlstate } = (await same(sql, mode)).error ?? {}
      expect(sqlstate, sql).toBeDefined()
    }
    await sameContents()
  })

  it('D75, D133: what DELETE and INSERT would not do as UPDATE is refused, and changes nothing', async () => {
    const { sharded } = oracle()
    for (const sql of [
      'update watched set tenant = tenant + 1000',
      'update acct set tenant = tenant + (random() * 1000)::int',
      'update acct set tenant = tenant + 1000, seq = default where tenant > 3',
      'update acct set tenant = new_tenant from rule where tenant = old_tenant returning new_tenant',
    ]) {
      const { error } = await ask(sharded, sql, 'simple')
      expect(error?.sqlstate, sql).toBe('0A000')
      expect(error?.hint, sql).toBeTruthy()
    }
    await sameContents()
  })

  it('D80, D132: savepoints: a move that fails leaves what came before it', async () => {
    const { plain, sharded } = oracle()
    const run = async (sql: string) => {
      const direct = await ask(plain, sql, 'simple')
      const over = await ask(sharded, sql, 'simple')
      expect(over.error?.sqlstate, sql).toBe(direct.error?.sqlstate)
      expect(over.tag, sql).toBe(direct.tag)
    }
    await ask(sharded, 'begin', 'simple')
    await run('savepoint a')
    await run('update acct set tenant = tenant + 50 where tenant > 6')
    await run('savepoint b')
    await run('update acct set tenant = 70 where tenant between 4 and 6')
    await run('select 1')
    await run('rollback to b')
    await run('update acct set tenant = tenant + 1 where tenant = 59')
    await run('delete from acct where tenant = 60 and id = 1')
    await ask(sharded, 'commit', 'simple')
    await sameContents()
  })
})
