/** Statements that change or show what a session remembers: settings, transactions, cursors, temporary tables, locks. */
import type { Chooser } from './chooser.js'

/** Objects that the statements name. The same on every target. */
export const sessionSchema = `
create table t (id int primary key, v text);
create table d (id int, v text);
create table def (id int unique deferrable initially immediate);
create schema s2;
create table s2.t (id int, w text, n numeric);
insert into s2.t values (1, 'other', 1.5);
create table log (who text);
create or replace function noisy(text) returns text language plpgsql as
$$ begin raise notice 'noise %', $1; return $1; end $$;
grant usage on schema s2 to session_r1;
grant select on t, s2.t, d to session_r1`

/** Rows as every scenario finds them. */
export const sessionRows = `
truncate t, def, s2.t; insert into s2.t values (1, 'other', 1.5);
insert into t values (1, 'one'), (2, 'two'), (3, 'three'), (4, null);
insert into def values (1), (2);
truncate d; insert into d values (1, 'x'), (2, 'y')`

/** The table that scenarios alter, as new. */
export const freshTable =
  'drop table if exists d; create table d (id int, v text); grant select on d to session_r1; ' +
  "insert into d values (1, 'x'), (2, 'y'); drop table if exists x"

/** `search_path` is left out of the values below where a literal list would be folded. */
const values: Record<string, readonly string[]> = {
  work_mem: ["'5MB'", '3000', "'64kB'", 'default'],
  datestyle: ["'ISO, DMY'", 'German', 'iso, mdy', 'default'],
  timezone: ["'UTC'", "'Europe/Berlin'", "'-03'", 'default'],
  application_name: ["'one'", "''", "'two words'", 'default'],
  search_path: ['s2, public', 'public', "'s2'", '"$user", public', 'default'],
  statement_timeout: ["'1min'", '0', '90000', 'default'],
  extra_float_digits: ['0', '3', '1', 'default'],
  default_transaction_isolation: [
    "'repeatable read'",
    "'read committed'",
    'serializable',
    'default',
  ],
  default_transaction_read_only: ['on', 'off', 'default'],
  'my.var': ["'a'", "'b c'", 'word'],
  intervalstyle: ['postgres_verbose', 'iso_8601', 'default'],
  bytea_output: ['escape', 'hex', 'default'],
  client_min_messages: ['warning', 'notice', 'error', 'default'],
  client_encoding: ["'LATIN1'", 'utf8', 'default'],
  standard_conforming_strings: ['on', 'off'],
  enable_seqscan: ['off', 'on', 'false', 'default'],
  // refused
  no_such_setting: ['1'],
  log_min_duration_statement: ["'nonsense'"],
}
const names = Object.keys(values)

/** Whatever is set, seen at once. */
export const observeSettings =
  "select string_agg(name || '=' || setting, ' ' order by name) as seen from pg_settings where name in (" +
  [...names, 'transaction_isolation', 'transaction_read_only', 'role', 'lock_timeout']
    .filter((name) => !/^(?:my\.var|no_such_setting|log_min)/.test(name))
    .map((name) => `'${name}'`)
    .join(', ') +
  ", 'DateStyle', 'TimeZone', 'IntervalStyle')"

const observers = [
  observeSettings,
  observeSettings,
  'select current_user, session_user',
  "select coalesce(current_setting('my.var', true), '') as var",
  'select * from t order by 1',
  'show work_mem',
  'show search_path',
  'show datestyle',
  "select timestamptz '2024-02-03 04:05:06+00' as at, interval '1 day 2 hours' as span, 0.1::float4::float8 as f",
  'show transaction_isolation',
]

const savepoints = ['a', 'b', '"A b"']

function setting(choose: Chooser): string {
  const name = choose.pick(names)
  const value = choose.pick(values[name]!)
  switch (choose.below(12)) {
    case 0:
      return `reset ${name}`
    case 1:
      return 'reset all'
    case 2:
    case 3:
      return `set local ${name} to ${value}`
    case 4:
      return `set session ${name} = ${value}`
    case 5: {
      const text = value === 'default' ? "'x'" : value.startsWith("'") ? value : `'${value}'`
      return `select set_config('${name}', ${text}, ${choose.pick(['true', 'false'])})`
    }
    case 6:
      return choose.pick([
        "set time zone 'America/New_York'",
        'set time zone local',
        'set time zone -5',
        "set names 'UTF8'",
        "set schema 's2'",
        'set session characteristics as transaction isolation level repeatable read',
        'set session characteristics as transaction read only',
        'set session characteristics as transaction isolation level read committed, read write',
        'set constraints all deferred',
        'set constraints all immediate',
      ])
    default:
      return `set ${name} to ${value}`
  }
}

function identity(choose: Chooser): string {
  return choose.pick([
    'set role session_r1',
    'set local role session_r1',
    'reset role',
    'set role none',
    'set session authorization session_r1',
    'reset session authorization',
    'set session authorization default',
    'set role no_such_role',
  ])
}

function transaction(choose: Chooser): string {
  const name = choose.pick(savepoints)
  return choose.pick([
    'begin',
    'begin',
    'begin',
    'commit',
    'commit',
    'rollback',
    'rollback',
    'end',
    'abort',
    'start transaction read only',
    'begin isolation level repeatable read',
    'begin isolation level serializable, read only, deferrable',
    'begin read write',
    'commit and chain',
    'rollback and chain',
    `savepoint ${name}`,
    `savepoint ${name}`,
    `rollback to ${name}`,
    `rollback to ${name}`,
    `release ${name}`,
    'set transaction isolation level repeatable read',
    'set transaction read only',
    'set transaction_read_only to on',
    "set local transaction_isolation to 'serializable'",
  ])
}

function rows(choose: Chooser): string {
  const id = 1 + choose.below(9)
  return choose.pick([
    `insert into t values (${id}, 'new')`,
    `insert into t (id) values (${id}) returning *`,
    `update t set v = v || '+' where id = ${id}`,
    `delete from t where id = ${id}`,
    'insert into def values (1)',
    'delete from def where id = 1',
    `select v from t where id = ${id}`,
    'select count(*) from def',
    'select * from d order by 1',
    'select v from t order by id for update',
  ])
}

function failing(choose: Chooser): string {
  return choose.pick([
    'select 1/0',
    'select nope',
    'selec 1',
    'select * from no_such_table',
    "select 'x'::int",
    'insert into t values (1, null)',
    "select 'unterminated",
    'select noisy(1/0::text)',
  ])
}

function cursors(choose: Chooser): string {
  return choose.pick([
    'declare c1 cursor for select * from generate_series(1, 5) g',
    'declare c1 scroll cursor for select id from t order by id',
    'declare h1 cursor with hold for select * from generate_series(1, 7) g',
    'fetch 2 from c1',
    'fetch 2 from h1',
    'fetch all from h1',
    'fetch backward 1 from c1',
    'move 1 in c1',
    'close c1',
    'close h1',
    'close all',
    'fetch 1 from p1',
    'close p1',
  ])
}

function temporary(choose: Chooser): string {
  return choose.pick([
    'create temp table tt (x int)',
    'create temp table tt (x int) on commit drop',
    'create temp table tt (x int) on commit delete rows',
    'insert into tt values (1), (2)',
    'select * from tt',
    'drop table tt',
    'create temp table t as select 99 as id',
    'create temp view tv as select 1 as one',
    'select * from tv',
    'drop view if exists tv',
  ])
}

function locks(choose: Chooser): string {
  return choose.pick([
    'select pg_advisory_lock(1)',
    'select pg_try_advisory_lock(2)',
    'select pg_advisory_unlock(1)',
    'select pg_advisory_unlock(2)',
    'select pg_advisory_unlock_all()',
    'select pg_advisory_xact_lock(3)',
    'select pg_advisory_lock_shared(1)',
    'select pg_advisory_unlock_shared(1)',
  ])
}

function schema(choose: Chooser): string {
  return choose.pick([
    'alter table d add column c1 int default 7',
    'alter table d drop column if exists c1',
    'alter table d add column c2 text',
    'alter table d alter column v type varchar(20)',
    'create table x (id int)',
    'drop table if exists x',
    'create table if not exists d (id int)',
  ])
}

function discarding(choose: Chooser): string {
  return choose.pick([
    'discard all',
    'discard all',
    'discard plans',
    'discard temp',
    'discard sequences',
  ])
}

function sundry(choose: Chooser): string {
  return choose.pick([
    'select 1 as one',
    '',
    ';',
    '/* nothing */',
    "do $$ begin raise notice 'from a block'; end $$",
    "select noisy('x')",
    'table t',
    'values (1, 2), (3, 4)',
    'drop table if exists nowhere',
    'explain (costs off) select 1',
    'copy (select id from t order by 1) to stdout',
    'select generate_series(1, 4) as g',
    'with w as (select 1 as n) select * from w',
    'lock table t in share mode',
    'analyze def',
  ])
}

function prepared(choose: Chooser): string {
  const name = choose.pick(['s1', 's2', 'S1'])
  return choose.pick([
    `prepare ${name} as select 5 as five`,
    `prepare ${name} as select * from d order by 1`,
    `prepare ${name} (int) as select $1 + 1 as more`,
    `prepare ${name} as select id from t where id > $1 order by 1`,
    `prepare ${name} (int, text) as insert into t values ($1, $2)`,
    `prepare ${name} as selec`,
    `execute ${name}`,
    `execute ${name}`,
    `execute ${name} (1)`,
    `execute ${name} (2)`,
    `execute ${name} (7, 'seven')`,
    `execute ${name} ('x')`,
    `execute ${name} (1 + 1)`,
    `explain (costs off) execute ${name}`,
    `deallocate ${name}`,
    `deallocate prepare ${name}`,
    'deallocate all',
    `create temp table tt as execute ${name}`,
  ])
}

type Maker = (choose: Chooser) => string

const observer: Maker = (choose) => choose.pick(observers)

/** Makers by weight. */
const makers: readonly (readonly [number, Maker])[] = [
  [22, setting],
  [4, identity],
  [20, transaction],
  [10, rows],
  [5, failing],
  [6, cursors],
  [5, temporary],
  [4, locks],
  [3, schema],
  [2, discarding],
  [7, sundry],
  [10, prepared],
  [14, observer],
]

const total = makers.reduce((sum, [weight]) => sum + weight, 0)

/** One statement. */
export function sessionStatement(choose: Chooser): string {
  let at = choose.below(total)
  for (const [weight, make] of makers) {
    if (at < weight) return make(choose)
    at -= weight
  }
  return ''
}

/** What a neighbour does on the same servers: requests one after the other, at whose end it holds none. */
export function neighbourRequests(choose: Chooser): readonly string[] {
  return choose.pick([
    ["set work_mem to '9MB'"],
    ["set datestyle to 'SQL, DMY'"],
    ['set search_path to pg_catalog'],
    ["set my.var to 'foreign'"],
    ['set role session_r1'],
    ['reset all'],
    ['reset role'],
    ['discard all'],
    ["select set_config('timezone', 'Asia/Tokyo', false)"],
    ['select 1'],
    ["select 'noisy'"],
    ['select pg_advisory_xact_lock(99)'],
    ["begin; set local statement_timeout to '2min'; select 1; commit"],
    ['begin; savepoint a; select 1/0', 'rollback'],
    ['create temp table tt (y text)', 'discard all'],
    ['select 1/0'],
    ["set application_name to 'neighbour'"],
    ["set client_encoding to 'LATIN1'"],
    ['prepare s1 as select 666', 'execute s1', 'deallocate all'],
    ['declare h1 cursor with hold for select 13', 'close h1', 'discard all'],
    ["do $$ begin set work_mem to '11MB'; end $$"],
  ])
}
