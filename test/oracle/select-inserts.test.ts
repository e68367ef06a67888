/**
 * INSERT … SELECT over four shards and on one plain PostgreSQL, in the three ways of the protocol: whatever shards the rows
 * are read from and belong to, the same answers and the same rows afterwards, each on the shard of its key.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Answer, ask, asMultiset, type Mode, modes } from './ask.js'
import { useOracle } from './targets.js'

const shardSql = `
create schema m; set search_path = m;
create type mood as enum ('sad', 'happy');
create table acct (tenant bigint not null, id int, name varchar(12) default 'none', f float8, m mood default 'sad',
  made timestamptz default now(), n numeric(12, 2), total numeric generated always as (n * 2) stored, primary key (tenant, id));
create table item (tenant bigint, acct int, qty int default 7);
create table town (code text, size int, d date, v numeric);
create table own (id bigserial, v text, n int);
create table kind (code text primary key, rank int not null)`
const setupSql = `${shardSql};
insert into acct (tenant, id, name, f, m, n) select t, i, 'n' || t % 4, t / 7.0, case when t % 2 = 0 then 'happy' else 'sad' end::mood, t * i
  from generate_series(1, 9) t, generate_series(1, 3) i;
insert into item select t, 1 + t % 3, t * 10 from generate_series(1, 9) t;
insert into item values (null, 1, 1);
insert into town select 't' || s, s, date '2024-01-01' + s, s / 3.0 from generate_series(1, 6) s;
insert into town values (null, 0, null, null);
insert into kind values ('n0', 1), ('n1', 2), ('n2', 3)`
const keys: Record<string, string> = { acct: 'tenant', item: 'tenant', town: 'code', own: 'id' }
const tables = [...Object.keys(keys), 'kind']
const sharding = `${Object.entries(keys)
  .map(
    ([name, column]) =>
      `[[sharded_tables]]\ndatabase = "app"\nname = "${name}"\ncolumn = "${column}"\n${column === 'code' ? 'data_type = "text"\n' : ''}`,
  )
  .join('\n')}\n[[omnisharded_tables]]\ndatabase = "app"\ntables = ["kind"]\n`
/** What nobody can compare is left out. */
const shown: Record<string, string> = {
  acct: 'select tenant, id, name, f, m::text, made is null, n, total from acct',
  own: 'select v, n from own',
}

const sorted = (answer: Answer): string[] => asMultiset(answer.rows)

describe('INSERT … SELECT over plain and sharded', () => {
  const oracle = useOracle({ setupSql, shardSql, tables, shards: 4, sharding, searchPath: 'm' })
  beforeEach(async () => {
    await ask(oracle().plain, 'begin', 'simple')
    await oracle().reload()
  })
  afterEach(async () => {
    await ask(oracle().plain, 'rollback', 'simple')
    await ask(oracle().sharded, 'rollback', 'simple')
  })

  const sameTable = async (table: string): Promise<void> => {
    const { plain, sharded } = oracle()
    const sql = shown[table] ?? `select * from ${table}`
    const wanted = sorted(await ask(plain, sql, 'simple'))
    const over = await ask(sharded, sql, 'simple')
    expect(over.error, table).toBeUndefined()
    expect(sorted(over), table).toEqual(wanted)
    const key = keys[table]
    if (key === undefined) return
    const counts = await ask(sharded, `select ${key}, count(*) from ${table} group by 1`, 'simple')
    for (const [value, count] of counts.rows) {
      const where = value === null ? 'is null' : `= '${value}'`
      const found = await ask(
        sharded,
        `select count(*) from ${table} where ${key} ${where}`,
        'simple',
      )
      expect(found.rows, `${table} ${value}`).toEqual([[count]])
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
    const plainTypes = (columns: string[]) => columns.map((one) => one.replace(/:\d{5,}$/, ':user'))
    expect(plainTypes(over.columns), sql).toEqual(plainTypes(direct.columns))
    if (/order by/.test(sql)) expect(over.rows, sql).toEqual(direct.rows)
    else expect(sorted(over), sql).toEqual(sorted(direct))
    return over
  }

  const inserts = [
    'insert into item select tenant + 100, id, n from acct',
    'insert into item (tenant, acct) select id, tenant from acct where tenant > 3 returning *',
    'insert into item select g, 1, g * 2 from generate_series(50, 70) g returning tenant, qty',
    'insert into item (acct, qty) select tenant, count(*) from acct group by tenant',
    'insert into item select tenant, max(id), sum(n) from acct group by tenant having sum(n) > 10',
    'insert into item select tenant, id, n from acct order by n desc, tenant, id limit 5 returning tenant, acct, qty',
    'insert into item select distinct n::bigint, 1 from acct',
    'insert into item select a.tenant + 1, i.acct, i.qty from acct a join item i on i.acct = a.id where a.tenant < 3',
    'insert into item select tenant, 0, rank() over (order by qty) from item where tenant is not null',
    'with big as (select tenant, id from acct where n > 9) insert into item select tenant * 2, id, 0 from big',
    'insert into item (tenant) select tenant from acct union select 77 returning tenant, acct, qty',
    'insert into item (select tenant, acct, qty from item)',
    'insert into item table item',
    'insert into item values ((select max(tenant) from acct) + 1, 5, (select count(*) from item))',
    'insert into acct (tenant, id, name) select tenant + 100, id, upper(name) from acct where f < 0.9 returning tenant, name, made is null as missing',
    "insert into acct (tenant, id, m) select '500', 1, 'happy' returning tenant, m::text",
    "insert into acct (tenant, id, name, m) select tenant, id + 5, 'x' || id, m from acct where tenant in (2, 3)",
    'insert into acct (tenant, id, f, n) select size, 9, v, v * 100 from town',
    "insert into town (code, size, d) select name, n, date '2024-02-03' from acct where id = 1 returning *",
    "insert into town select code || 'x', size, d, v from town",
    "insert into town (code, d) select 'lit', '2020-01-01'",
    'insert into town (code, v) select code, rank from kind',
    "insert into kind select distinct name, 9 from acct where name > 'n2' returning code",
    'insert into kind (code, rank) select code, size from town where size > 3',
    'insert into own (v, n) select name, n from acct returning v, n',
    "insert into own (v) select 'a' from generate_series(1, 20)",
    "insert into acct (tenant, id, n) select tenant, id, 1 from acct where tenant > 6 on conflict (tenant, id) do update set n = acct.n + excluded.n, name = 'again' returning tenant, n",
    'insert into acct (tenant, id) select tenant, acct from item where tenant is not null order by qty on conflict do nothing',
    'insert into item select 1, 2, 3 where false returning qty',
    'insert into item select tenant, id, n from acct where tenant = 4',
  ]
  const failing = [
    'insert into acct (tenant, id) select id, id from acct',
    'insert into acct (tenant, id) select acct, null from item',
    'insert into acct (tenant, id) select tenant, 1 from item where tenant is null',
    'insert into item (tenant, acct) select name, 1 from acct',
    'insert into item select tenant, id, n, 4 from acct',
    'insert into item select tenant, 1 / (id - 2), 1 from acct order by id',
    "insert into acct (tenant, id, name) select 1000 + id, 1, 'much too long a name' from acct",
    'insert into acct (tenant, id, total) select 1, 1, 2 from item',
    'insert into acct (tenant, id, n) select t, 7, t from generate_series(1, 3) t, generate_series(1, 2) on conflict (tenant, id) do update set n = 0',
  ]

  it.each(modes)(
    'D116, D117: %s: in a transaction, whatever the source',
    async (mode) => {
      const { plain, sharded } = oracle()
      for (const sql of inserts) {
        await ask(plain, 'savepoint whole', 'simple')
        await ask(sharded, 'begin', 'simple')
        expect((await same(sql, mode)).error, sql).toBeUndefined()
        await sameTable(/insert into (\w+)/.exec(sql)?.[1] ?? '')
        await ask(plain, 'rollback to whole', 'simple')
        await ask(sharded, 'rollback', 'simple')
      }
      for (const table of tables) await sameTable(table)
    },
    120_000,
  )

  it('D116, D117: one after the other they leave the same rows', async () => {
    const { sharded } = oracle()
    for (const sql of inserts) await same(sql, 'simple')
    for (const table of tables) await sameTable(table)
    const ids = await ask(sharded, 'select count(*) - count(distinct id) from own', 'simple')
    expect(ids.rows).toEqual([['0']])
  }, 120_000)

  it.each(modes)('D116, D132: %s: what PostgreSQL refuses leaves every row', async (mode) => {
    for (const sql of failing) {
      expect((await same(sql, mode)).error, sql).toBeDefined()
    }
    for (const table of tables) await sameTable(table)
  })

  it('D63, D116: parameters of the query, in text and in binary form', async () => {
    const { plain, sharded } = oracle()
    const sql =
      'insert into item (tenant, acct, qty) select tenant + $1, $2, qty from item where qty > $3 and tenant is not null returning tenant, acct'
    const four = Buffer.from([0, 0, 0, 4])
    const parameters = [
      { type: 0, format: 0 as const, bytes: Buffer.from('200') },
      { type: 23, format: 1 as const, bytes: four },
      { type: 0, format: 0 as const, bytes: Buffer.from('30') },
    ]
    for (const mode of ['extended text', 'extended binary'] as const) {
      const direct = await ask(plain, sql, mode, parameters)
      const over = await ask(sharded, sql, mode, parameters)
      expect(over.error).toBeUndefined()
      expect(sorted(over)).toEqual(sorted(direct))
      expect(over.tag).toBe(direct.tag)
    }
    await sameTable('item')
  })
})
