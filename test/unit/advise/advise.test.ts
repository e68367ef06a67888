/** What `advise` hears from a workload: columns, types of parameters, values of logs; and what it leaves out. */
import { describe, expect, it } from 'vitest'
import { advise } from '../../../src/advise/advise.js'
import { parameterValues } from '../../../src/advise/parameter-values.js'
import { readSchema } from '../../../src/advise/schema/read-schema.js'
import {
  loggedParameters,
  readable,
  readSqlWorkload,
} from '../../../src/advise/workload/read-workload.js'
import { readFacts } from '../../../src/advise/workload/statement-facts.js'

const schema = `create table a (id bigint primary key, name text, state text, at timestamptz);
create table b (id uuid primary key, a_id bigint not null references a, n int, ok boolean);
create table c (code text primary key, label text)`

async function factsOf(sql: string) {
  const { catalog } = await readSchema(schema)
  const facts = readFacts(sql, catalog, ['public'])!
  const short = ({ table, column }: { table: { name: string }; column: string }) =>
    `${table.name}.${column}`
  return {
    pinned: facts.pinned.map(short),
    joined: facts.joined.map(([x, y]) => `${short(x)}=${short(y)}`),
    changed: facts.changed.map(short),
    types: Object.fromEntries(facts.parameterTypes),
  }
}

describe('readFacts', () => {
  it.each([
    ['select * from a where id = 1 and state in ($1, $2)', ['a.id', 'a.state'], []],
    ['select * from a x join b y on y.a_id = x.id where y.id = any($1)', ['b.id'], ['b.a_id=a.id']],
    ['select * from a where id = 1 or state = $1', [], []],
    ['select * from b where (a_id, n) = ($1, 2)', ['b.a_id', 'b.n'], []],
    ['select * from a where id in (select a_id from b where ok = true)', ['b.ok'], ['a.id=b.a_id']],
    ['with x as (select id from a where id = 5) select * from x where id = 6', ['a.id'], []],
    ['select * from a where exists (select 1 from b where b.a_id = a.id)', [], ['b.a_id=a.id']],
    ['delete from b where a_id = -3', ['b.a_id'], []],
    ['select id from a where id > 4 union all select n from b where a_id = 4', ['b.a_id'], []],
  ])('hears from %s', async (sql, pinned, joined) => {
    const { pinned: found, joined: pairs } = await factsOf(sql)
    expect(found.sort()).toEqual([...pinned].sort())
    expect(pairs).toEqual(joined)
  })

  it('knows the types of parameters by the columns beside them', async () => {
    expect((await factsOf('insert into b (id, a_id) values ($1, $2)')).types).toEqual({
      1: 2950,
      2: 20,
    })
    expect((await factsOf('update a set at = $1 where id between $2 and $3')).types).toEqual({
      1: 1184,
      2: 20,
      3: 20,
    })
    expect((await factsOf('select * from a where name like $1 limit $2')).types).toEqual({
      1: 25,
      2: 20,
    })
  })

  it('knows what UPDATE and ON CONFLICT assign', async () => {
    const { changed } = await factsOf('update a set state = $1 from b where b.a_id = a.id')
    expect(changed).toEqual(['a.state'])
    const upsert = "insert into a values (1, 'x') on conflict (id) do update set name = 'y'"
    expect((await factsOf(upsert)).changed).toEqual(['a.name'])
  })
})

describe('parameterValues', () => {
  it('makes values of the right type up, no two alike, and two for a list', async () => {
    const { catalog } = await readSchema(schema)
    const sql = 'select * from b where id = $1 and a_id = any ($2) and n = $3 and $4 = 1'
    expect(parameterValues(sql, readFacts(sql, catalog, ['public']))).toEqual([
      '00000000-0000-4000-8000-000000000001',
      '{102,1102}',
      '103',
      '104',
    ])
    expect(parameterValues("select '$7', $1 -- $9", undefined)).toEqual(['101'])
  })
})

describe('values in logs', () => {
  it.each([
    ["parameters: $1 = '1', $2 = NULL", ['1', null]],
    ["Parameters: $1 = 'it''s, $2 = ''x''', $2 = '3'", ["it's, $2 = 'x'", '3']],
    ["parameters: $1 = 'cut off...", undefined],
    ['other detail', undefined],
  ])('reads %s', (detail, values) => expect(loggedParameters(detail)).toEqual(values))

  it('makes readable what pg_stat_statements wrote', () => {
    expect(readable('select now() - interval $1, DATE $12')).toBe(
      'select now() - $1::interval, $12::date',
    )
  })
})

describe('advise', () => {
  const options = { shards: 4, searchPath: ['public'] }

  it('judges what it cannot hear from, and says what it leaves out', async () => {
    const { catalog } = await readSchema(schema)
    const unreadable = 'delete from b using a where a.id = b.a_id and a.id = 7'
    const text = `begin; select * from b where a_id = 3; select * from b where a_id = 3;
      ${unreadable}; selec 1; update b set n = 1 where a_id = 4; commit`
    const advice = await advise(catalog, readSqlWorkload(text), options)
    expect(advice.workload).toMatchObject({
      statements: 3,
      calls: 4,
      control: 2,
      rejected: [{ sql: 'selec 1' }],
      unread: [unreadable],
    })
    expect(advice.candidates[0]).toMatchObject({ key: 'a_id', score: 1 })
    expect(advice.candidates[0]!.verdict.counts.one).toEqual({ statements: 3, calls: 4 })
  })

  it('never proposes a column that UPDATE assigns, nor time', async () => {
    const { catalog } = await readSchema(schema)
    const text = `select * from a where state = 'x'; update a set state = 'y' where state = 'x';
      select * from a where at = '2026-01-01 00:00:00+00'; select * from a where name = 'n'`
    const advice = await advise(catalog, readSqlWorkload(text), options)
    expect(advice.candidates.map(({ key }) => key)).toEqual(['a.name'])
  })

  it('tells which constraints no shard can keep', async () => {
    const { catalog } = await readSchema(
      `create table t (k int not null, email text unique, id int primary key)`,
    )
    const advice = await advise(
      catalog,
      readSqlWorkload('select * from t where k = 1; insert into t values (1, $1, 2)'),
      options,
    )
    const [best] = advice.candidates
    expect(best!.constraints).toEqual([
      'public.t: unique t_email_key (email)',
      'public.t: unique t_pkey (id)',
    ])
    expect(best!.verdict.counts.refused).toEqual({ statements: 1, calls: 1 })
    expect(best!.verdict.reasons[0]).toMatchObject({ fate: 'refused', calls: 1 })
  })
})
