/** Tables with keys that the server stores, compares or names otherwise than a statement seems to say, and their rows. */

const keyed: Record<string, string> = {
  acct: 'bigint',
  item: 'bigint',
  small: 'int4',
  person: 'text',
  code: 'varchar(3)',
  price: 'numeric(6,1)',
  zip: 'char(4)',
  tick: 'timestamp(0)',
  dom_code: 'hole.short',
  dom_acct: 'hole.tenant_id',
  loose: 'text collate hole.nocase',
  floaty: 'float8',
  watched: 'varchar(8)',
}
const dataTypes: Record<string, string> = {
  acct: 'bigint',
  item: 'bigint',
  small: 'bigint',
  person: 'text',
  code: 'varchar',
  price: 'numeric',
  zip: 'bpchar',
  tick: 'timestamp',
  dom_code: 'varchar',
  dom_acct: 'bigint',
  loose: 'text',
  floaty: 'bigint',
  watched: 'varchar',
}

export const schema = [
  'create schema hole',
  'create schema postgres',
  "create collation hole.nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
  'create domain hole.short as varchar(3)',
  'create domain hole.tenant_id as bigint check (value < 1000000)',
  ...Object.entries(keyed).map(
    ([name, type]) =>
      `create table hole.${name} (k ${type}, id int, n numeric, b bpchar, f float8)`,
  ),
  'create table hole.kind (id int, label text)',
  'create table hole.pg_kind (id int, label text)',
  'create table postgres.shadow (k bigint, id int)',
  'create table hole.shadow (k bigint, id int)',
  "create function hole.count_acct() returns bigint stable language sql as 'select count(*) from hole.acct'",
  "create function hole.lower(bigint) returns bigint stable language sql as 'select count(*) from hole.acct where k <= $1'",
  "create function hole.is_like(bigint, int) returns boolean stable language sql as 'select $1 <= (select count(*) from hole.acct)'",
  'create operator hole.<+> (leftarg = bigint, rightarg = int, function = hole.is_like)',
  "create function hole.any_case(varchar, varchar) returns boolean immutable language sql as 'select pg_catalog.lower($1::text) operator(pg_catalog.=) pg_catalog.lower($2::text)'",
].join(';\n')

export const keys = [...Array(24).keys()]
export const rows = [
  ...['acct', 'item', 'small', 'dom_acct'].map(
    (name) =>
      `insert into hole.${name} select g, g % 5, g, 'x' || g, g from generate_series(0, 23) g`,
  ),
  ...['person', 'loose', 'watched'].map(
    (name) =>
      `insert into hole.${name} select 'x' || g, g, g, 'x' || g, g from generate_series(0, 23) g`,
  ),
  ...['code', 'zip', 'dom_code'].map(
    (name) =>
      `insert into hole.${name} select chr(97 + g), g, g, 'x', g from generate_series(0, 23) g`,
  ),
  'insert into hole.price select g + 0.5, g, g, null, g from generate_series(0, 23) g',
  "insert into hole.tick select timestamp '2024-01-01' + g * interval '1 hour', g from generate_series(0, 23) g",
  "insert into hole.kind values (1, 'one'), (2, 'two')",
  "insert into hole.pg_kind values (1, 'one')",
  'insert into hole.shadow values (1, 1); insert into postgres.shadow values (1, 2)',
  'insert into hole.floaty select g, g from generate_series(0, 23) g',
].join(';\n')

export const loadable = Object.keys(keyed).filter((name) => !['loose', 'floaty'].includes(name))

export const sharding = [
  ...Object.entries(dataTypes).map(
    ([name, type]) =>
      `[[sharded_tables]]\ndatabase = "app"\nname = "${name}"\nschema = "hole"\ncolumn = "k"\ndata_type = "${type}"\n`,
  ),
  '[[sharded_tables]]\ndatabase = "app"\nname = "shadow"\ncolumn = "k"\ndata_type = "bigint"\n',
].join('\n')
