/** Statements of one client over sharded tables: of one shard, of all, gathered, written, in cursors, savepoints, COPY and locks. */
import type { Chooser } from './chooser.js'

/** Objects that the statements name. The same on one PostgreSQL and on each shard. */
export const shardedSchema = `
create table item (k bigint, id int, v text, n numeric, primary key (k, id));
create table note (k bigint, id int, t text, primary key (k, id));
create table loose (k bigint, id int, v text);
create table late (k bigint, id int, unique (k, id) deferrable initially deferred);
create table noisy (k bigint, id int check (id < 1000), v text, primary key (k, id));
create table wide (k bigint, id int, v text);
create table country (code text primary key, name text);
create table ticket (k bigint, id bigserial, v text);
create sequence counter;
create function tell() returns trigger language plpgsql as
$$ begin raise notice 'row % %', new.k, new.id; return new; end $$;
create trigger tell before insert or update on noisy for each row execute function tell();`

export const shardedTables = ['item', 'note', 'loose', 'late', 'noisy', 'wide', 'ticket'] as const

/** Rows as every conversation finds them: `keys` are of several shards, one is empty. */
export const shardedRows = (keys: readonly number[]): Record<string, string[]> => ({
  item: keys.flatMap((k, i) =>
    Array.from({ length: 1 + (i % 3) }, (_, id) => `${k}\t${id}\titem ${k} ${id}\t${k % 5}.5`),
  ),
  note: keys.flatMap((k) => [`${k}\t0\tnote ${k}`, `${k}\t7\t\\N`]),
  loose: [...keys.map((k) => `${k}\t${k % 4}\tloose`), '\\N\t9\tnobody'],
  late: keys.map((k) => `${k}\t1`),
  noisy: keys.map((k) => `${k}\t1\tquiet`),
  wide: keys.map((k) => `${k}\t1\twide`),
})

export const countryRows = ['de\tGermany', 'fr\tFrance', 'it\tItaly']

/** Statements of one kind of conversation: keys come from the test, so that they lie where it wants them. */
export class ShardedStatements {
  readonly #choose: Chooser
  readonly #keys: readonly number[]

  constructor(choose: Chooser, keys: readonly number[]) {
    this.#choose = choose
    this.#keys = keys
  }

  key(): number {
    return this.#choose.pick(this.#keys)
  }

  /** One statement of any kind. */
  any(): string {
    const choose = this.#choose
    let at = choose.below(total)
    for (const [weight, make] of makers) {
      if (at < weight) return make(this, choose)
      at -= weight
    }
    return ''
  }

  /** A read whose rows have one order. */
  ordered(): string {
    const k = this.key()
    return this.#choose.pick([
      `select id, v from item where k = ${k} order by id`,
      `select id, t from note where k = ${k} order by id desc`,
      'select k, id, v from item order by k, id',
      'select k, id, v from item order by k desc, id limit 5',
      'select k, count(*), sum(n) from item group by k order by k',
      'select id, count(*) from item group by id order by id',
      'select count(*), min(k), max(n) from item',
      'select i.k, i.id, c.name from item i join country c on c.code = $$de$$ order by 1, 2',
      `select i.id, n.t from item i join note n on n.k = i.k and n.id = i.id where i.k = ${k} order by 1`,
      'select i.k, n.k from item i join note n on n.id = i.id and n.k <> i.k order by 1, 2 limit 7',
      'select k, id, row_number() over (order by k, id) from item order by 3',
      'select distinct v from loose order by v',
      'select code, name from country order by code',
      'select k, id from item union all select k, id from note order by 1, 2',
      'select k from loose where k is null order by k',
      'select g from generate_series(1, 6) g order by g',
      `select id from item where k = ${k} and id in (select id from note where k = ${k}) order by id`,
      'select k, id from item where k = any (select k from late where id = 1) order by 1, 2',
    ])
  }

  /** A read that one shard can answer, with an order. */
  orderedOnOne(): string {
    const k = this.key()
    return this.#choose.pick([
      `select id, v from item where k = ${k} order by id`,
      `select id, t from note where k = ${k} order by id desc`,
      'select code, name from country order by code',
      'select g from generate_series(1, 6) g order by g',
      `select i.id, n.t from item i left join note n on n.k = i.k and n.id = i.id where i.k = ${k} order by 1`,
    ])
  }
}

type Maker = (of: ShardedStatements, choose: Chooser) => string

const reading: Maker = (of, choose) =>
  choose.chance(0.8)
    ? of.ordered()
    : choose.pick([
        'select k, id from item',
        'select v from loose',
        `select * from item where k in (${of.key()}, ${of.key()})`,
        'select count(*) from late',
        'table country',
        'show work_mem',
        'select 1 as one',
        'values (1, 2), (3, 4)',
        '',
      ])

const writing: Maker = (of, choose) => {
  const k = of.key()
  const other = of.key()
  const id = choose.below(8)
  return choose.pick([
    `insert into item values (${k}, ${id}, 'new', 1.25)`,
    `insert into item (k, id, v) values (${k}, ${id}, 'r') returning k, id, v`,
    `insert into item values (${k}, ${id + 10}, 'a', 1), (${other}, ${id + 20}, 'b', 2)`,
    `insert into item values (${k}, ${id + 10}, 'a', 1), (${other}, ${id}, 'b', 2) returning k, id`,
    `insert into item values (${k}, ${id}, 'up', 3) on conflict (k, id) do update set v = 'upserted'`,
    `insert into item values (${k}, ${id}, 'up', 3), (${other}, ${id}, 'up', 3) on conflict do nothing`,
    `update item set v = v || '+' where k = ${k}`,
    `update item set v = v || '+' where k = ${k} and id = ${id} returning id, v`,
    `update item set n = n + 1 where id = ${choose.below(3)}`,
    'update item set n = n + 1 where id = 0 returning k, n',
    `delete from item where k = ${k} and id = ${choose.below(3)}`,
    'delete from loose where id = 2',
    'delete from note where t is null returning k',
    `insert into loose values (null, ${id}, 'nobody')`,
    `insert into loose (k, id) select k, ${id} from late`,
    `insert into note select k, id + 40, v from item where k = ${k}`,
    `insert into late values (${k}, 1), (${other}, 2)`,
    `delete from late where k = ${k}`,
    `update country set name = upper(name) where code = 'de'`,
    `insert into country values ('x${id}', 'somewhere')`,
    `delete from country where code = 'fr'`,
    `update item set k = ${other} where k = ${k} and id = 0`,
    `insert into noisy values (${k}, ${id + 2}, 'n')`,
    `insert into noisy values (${k}, ${id + 20}, 'n'), (${other}, ${id + 40}, 'n')`,
    `update noisy set v = v || '!' where k = ${k}`,
    "update noisy set v = v || '!' where id = 1",
    `insert into ticket (k, v) values (${k}, 't') returning v`,
    `insert into ticket (k, v) values (${k}, 't'), (${other}, 'u') returning v, id is not null as has`,
    'truncate late',
  ])
}

const failing: Maker = (of, choose) => {
  const k = of.key()
  return choose.pick([
    'select 1/0',
    'select nope from item',
    `select nope from item where k = ${k}`,
    'selec 1',
    'select * from no_such_table',
    `insert into item values (${k}, 0, 'double', 1)`,
    `insert into item values (${k}, null, 'none', 1)`,
    `insert into item values (${k}, 50, 'first', 1), (${of.key()}, 0, 'double', 1)`,
    'select 1/(id - 1) from item order by k, id',
    'update item set n = n / (id - 1)',
    `insert into noisy values (${k}, 5000, 'too large')`,
    `update item set id = 0 where k = ${k}`,
    `insert into country values ('de', 'again')`,
    `select id / 0 from item where k = ${k}`,
    'select sum(1/(id - 1)) from item',
    'select i.k / (n.k - i.k) from item i join note n on n.id = i.id order by 1',
    "select 'x'::int",
  ])
}

const savepoints = ['a', 'b', 'c']

const transaction: Maker = (_, choose) => {
  const name = choose.pick(savepoints)
  return choose.pick([
    ...Array.from({ length: 6 }, () => 'begin'),
    ...Array.from({ length: 3 }, () => 'commit'),
    'rollback',
    'end',
    'begin isolation level repeatable read',
    'begin read only',
    'start transaction',
    'commit and chain',
    'rollback and chain',
    ...Array.from({ length: 5 }, () => `savepoint ${name}`),
    ...Array.from({ length: 5 }, () => `rollback to ${name}`),
    `release ${name}`,
    `release ${name}`,
    'set constraints all immediate',
    'set constraints all deferred',
  ])
}

const cursor: Maker = (of, choose) => {
  const name = choose.pick(['c1', 'c1', 'c2', 'c3'])
  const declare = choose.chance(0.85) ? of.orderedOnOne() : of.ordered()
  return choose.pick([
    `declare ${name} cursor for ${declare}`,
    `declare ${name} scroll cursor for ${declare}`,
    `declare ${name} cursor for ${declare}`,
    `declare ${name} scroll cursor for ${declare}`,
    `declare ${name} no scroll cursor for ${declare}`,
    `declare ${name} cursor with hold for ${declare}`,
    `declare ${name} binary cursor for select code from country order by code`,
    `fetch ${name}`,
    `fetch 2 from ${name}`,
    `fetch 2 from ${name}`,
    `fetch all from ${name}`,
    `fetch backward 1 from ${name}`,
    `fetch first from ${name}`,
    `fetch last from ${name}`,
    `fetch absolute 2 from ${name}`,
    `fetch relative 0 from ${name}`,
    `fetch backward all from ${name}`,
    `move 1 in ${name}`,
    `move backward all in ${name}`,
    `close ${name}`,
    'close all',
    `update item set v = 'here' where current of ${name}`,
  ])
}

const copy: Maker = (of, choose) =>
  choose.pick([
    `copy (${of.ordered()}) to stdout`,
    `copy (${of.ordered()}) to stdout (format csv, header)`,
    'copy item to stdout',
    'copy item (k, v) to stdout (format csv)',
    'copy country to stdout',
    `copy (select 1/(id - 1) from item order by k, id) to stdout`,
    `copy (update item set v = 'c' where k = ${of.key()} returning id) to stdout`,
  ])

const locks: Maker = (of, choose) =>
  choose.pick([
    'select pg_advisory_lock(1)',
    'select pg_try_advisory_lock(2)',
    'select pg_advisory_unlock(1)',
    'select pg_advisory_unlock(2)',
    'select pg_advisory_unlock_all()',
    'select pg_advisory_xact_lock(3)',
    'select pg_try_advisory_xact_lock(4)',
    `select pg_advisory_xact_lock(k) from item where k = ${of.key()} and id = 0`,
    'lock table item in share mode',
    'lock table item in access exclusive mode',
    `select id from item where k = ${of.key()} order by id for update`,
    'listen ch',
    'unlisten ch',
    'unlisten *',
    `notify ch, 'said'`,
    'notify ch',
    `select pg_notify('ch', 'by function')`,
  ])

const sequences: Maker = (_, choose) =>
  choose.pick([
    `select nextval('counter')`,
    `select nextval('counter')`,
    `select currval('counter')`,
    'select lastval()',
    `select setval('counter', 50)`,
    `select nextval('counter') from country`,
  ])

const settings: Maker = (_, choose) =>
  choose.pick([
    "set work_mem to '5MB'",
    "set local work_mem to '6MB'",
    'reset work_mem',
    'show work_mem',
    'show work_mem',
    "set local statement_timeout to '2min'",
    'set client_min_messages to warning',
    'reset client_min_messages',
    "set timezone to 'Asia/Tokyo'",
    'reset all',
    'discard all',
    'discard plans',
    "select set_config('work_mem', '7MB', true)",
    'set no_such_setting to 1',
    'set search_path to public',
    'show transaction_isolation',
    'show transaction_read_only',
  ])

const prepared: Maker = (of, choose) => {
  const name = choose.pick(['q1', 'q2'])
  const k = of.key()
  return choose.pick([
    `prepare ${name} as select id, v from item where k = ${k} order by id`,
    `prepare ${name} (int) as select id from item where k = ${k} and id >= $1 order by id`,
    `prepare ${name} (bigint) as select id from item where k = $1 order by id`,
    `prepare ${name} as select k, id from item order by k, id`,
    `prepare ${name} as select * from wide where k = ${k} order by id`,
    `prepare ${name} as insert into item values (${k}, 77, 'prepared', 1)`,
    `execute ${name}`,
    `execute ${name}`,
    `execute ${name} (1)`,
    `execute ${name} (${k})`,
    `deallocate ${name}`,
    'deallocate all',
  ])
}

const schema: Maker = (of, choose) =>
  choose.pick([
    'alter table wide add column more int default 7',
    'alter table wide drop column if exists more',
    'alter table wide alter column v type varchar(30)',
    `select * from wide where k = ${of.key()} order by id`,
    'select * from wide order by k, id',
    'create table fresh (k bigint)',
    'drop table if exists fresh',
    'create index on wide (id)',
    'create temp table tt (x int)',
    'insert into tt values (1), (2)',
    'select * from tt order by x',
    'drop table if exists tt',
    "do $$ begin raise notice 'from a block'; end $$",
    'explain (costs off) select 1',
    'analyze late',
  ])

/** Makers by weight. */
const makers: readonly (readonly [number, Maker])[] = [
  [20, reading],
  [22, writing],
  [9, failing],
  [26, transaction],
  [14, cursor],
  [4, copy],
  [5, locks],
  [3, sequences],
  [5, settings],
  [4, prepared],
  [2, schema],
]
const total = makers.reduce((sum, [weight]) => sum + weight, 0)
