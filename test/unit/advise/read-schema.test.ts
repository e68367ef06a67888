/** A schema as text → the catalogue: what pg_dump and people write. */
import { describe, expect, it } from 'vitest'
import { readSchema, withoutData } from '../../../src/advise/schema/read-schema.js'

const tableOf = async (sql: string, name = 't') =>
  (await readSchema(sql)).catalog.find(undefined, name, ['public'])!

describe('readSchema', () => {
  it.each([
    ['a int default 1 + 2 not null', '1 + 2'],
    ["a text default 'x, (y' check (a <> '')", "'x, (y'"],
    ['a timestamptz default NOW()', 'now()'],
    ['a timestamptz default current_timestamp', 'CURRENT_TIMESTAMP'],
    ['a uuid default Gen_Random_Uuid() primary key', 'gen_random_uuid()'],
    [
      'a int default (case when true then 1 else 2 end) references o, b int default 4',
      'case when true then 1 else 2 end',
    ],
    ['a bigserial', "nextval('t_a_seq'::regclass)"],
  ])('knows the default of %s', async (column, text) => {
    const { columns } = await tableOf(`create table t (${column})`)
    expect(columns[0]).toMatchObject({ name: 'a', default: text })
  })

  it('follows what ALTER TABLE makes of a table', async () => {
    const table = await tableOf(`create table t (a int, b varchar(5), c int);
      create table o (id int primary key);
      alter table t add d bigint generated always as identity, drop column c, alter a set not null;
      alter table only t add constraint k unique (a, b), add constraint f foreign key (a) references o on delete cascade;
      create unique index u on t (lower(b), d); alter table t enable row level security;
      create trigger x before insert on t for each row execute function f();`)
    expect(table.columns.map(({ name, notNull, identity }) => [name, notNull, identity])).toEqual([
      ['a', true, false],
      ['b', false, false],
      ['d', true, true],
    ])
    expect(table.columns[1]).toMatchObject({ type: 1043, typmod: 9 })
    expect(table.constraints).toEqual([
      { name: 'k', kind: 'unique', columns: ['a', 'b'] },
      { name: 'u', kind: 'unique', columns: [undefined, 'd'] },
    ])
    expect(table.foreignKeys).toMatchObject([{ name: 'f', targetColumns: ['id'], acts: true }])
    expect(table).toMatchObject({ rowSecurity: true, hasTriggers: true, hasRules: false })
  })

  it('knows partitions, views, functions and the schema in force', async () => {
    const { catalog, unread } = await readSchema(`set search_path = app;
      create table t (k int, v text) partition by hash (k);
      create table t0 partition of t for values with (modulus 2, remainder 0);
      create view w as select * from t join public.o on true;
      create table public.o (id int);
      create function f(int) returns int immutable language sql as 'select 1';
      create tabel broken (x int);`)
    const part = catalog.find('app', 't0', [])!
    expect(catalog.rootOf(part)).toMatchObject({ name: 't', kind: 'partitioned' })
    expect(part.columns.map(({ name }) => name)).toEqual(['k', 'v'])
    const view = catalog.find('app', 'w', [])!
    expect(view.reads.map((oid) => catalog.byOid(oid)?.name)).toEqual(['t', 'o'])
    expect(catalog.functionsNamed('f')).toEqual([
      { schema: 'app', name: 'f', volatility: 'immutable' },
    ])
    expect(unread).toMatchObject([{ line: 7, message: expect.stringContaining('syntax error') }])
  })

  it('leaves out rows of COPY and commands of psql, and keeps the lines', () => {
    expect(
      withoutData('\\restrict x\nCOPY t (a) FROM stdin;\n1;\n\\.\nselect 1;').split('\n'),
    ).toEqual(['', '', '', '', 'select 1;'])
  })

  it('refuses a text that never ends', async () => {
    await expect(readSchema("create table t (a text default 'x)")).rejects.toMatchObject({
      code: 'USAGE',
    })
  })
})
