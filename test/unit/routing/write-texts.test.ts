/** Writes cut at their clauses by the client's own characters. */
import { describe, expect, it } from 'vitest'
import { cutInsert } from '../../../src/routing/writes/insert-text.js'
import { cutMergeRows } from '../../../src/routing/writes/merge-statement-text.js'
import { cutUpdate } from '../../../src/routing/writes/update-text.js'

describe('UPDATE', () => {
  it.each([
    [
      "update t set k = 'a, from', v = (select max(x) from u where y = 1) where k = 2 returning *",
      { target: 't', from: undefined, where: 'k = 2', returning: 'returning *' },
      ["'a, from'", '(select max(x) from u where y = 1)'],
    ],
    [
      'with u as (update x set y = 1 returning 1) update only s."T" as set2 set k = k is distinct from 3, v = default from a, b',
      { target: 'only s."T" as set2', from: 'a, b', where: undefined, returning: '' },
      ['k is distinct from 3', 'default'],
    ],
    [
      'update t set (k, v) = (1, f(2, 3)), w = row(4).where where t.from = 5',
      { target: 't', from: undefined, where: 't.from = 5', returning: '' },
      ['1', 'f(2, 3)', 'row(4).where'],
    ],
    [
      'update t set (k, v) = row (1, 2) /* where */ -- from\n where k = 1',
      { target: 't', from: undefined, where: 'k = 1', returning: '' },
      ['1', '2'],
    ],
  ])('D59, D133: %s', (sql, wanted, values) => {
    const cut = cutUpdate(sql, true)
    expect(cut).toMatchObject(wanted)
    expect(cut?.assigned.map(({ value }) => value)).toEqual(values)
  })

  it.each([
    'update t set (k, v) = (select 1, 2)',
    'update t set k[1] = 2',
    'update t set k = 1 where current of c',
  ])('D59: %s is not cut', (sql) => {
    expect(cutUpdate(sql, true)).toBeUndefined()
  })
})

describe('INSERT … SELECT', () => {
  it.each([
    ['insert into t (a, b) select 1, 2', 'select 1, 2', ''],
    ['insert into t (select 1) returning a', '(select 1)', ' returning a'],
    [
      'with x as (select 1) insert into s.t as z (a) with y as (select 2) table y on conflict (a) do nothing',
      'with x as (select 1) (with y as (select 2) table y)',
      ' on conflict (a) do nothing',
    ],
    [
      'insert into t overriding system value values (1), ((select 2)) returning *',
      'values (1), ((select 2))',
      ' returning *',
    ],
    [
      'insert into t select a.x from a join b on conflict.x = b.y',
      'select a.x from a join b on conflict.x = b.y',
      '',
    ],
  ])('D59, D116: %s', (sql, query, tail) => {
    expect(cutInsert(sql, true)).toMatchObject({ query, tail })
  })
})

describe('MERGE', () => {
  it('D59, D133: rows are numbered, and the others stay for the types of their columns', () => {
    const sql = "merge into t using (values (1, f('a')), (2, ')')) as v (k, s) on t.k = v.k"
    expect(cutMergeRows(sql, 2, 2, true)?.([1])).toBe(
      "merge into t using (SELECT column1, column2 FROM (VALUES (1, f('a'), 0), (2, ')', 1)) AS pgshard_rows (column1, column2, pgshard_row) WHERE pgshard_row IN (1)) as v (k, s) on t.k = v.k",
    )
    expect(cutMergeRows(sql, 3, 2, true)).toBeUndefined()
    expect(cutMergeRows('merge into t using u on t.k = u.k', 1, 1, true)).toBeUndefined()
  })
})
