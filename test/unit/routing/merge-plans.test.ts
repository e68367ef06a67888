/** What shards are sent in the place of a statement that is merged, and how their rows become one answer. */
import { expect, it } from 'vitest'
import { Catalog, type CatalogColumn } from '../../../src/catalog/catalog.js'
import { textParameters } from '../../../src/routing/describe-route.js'
import { makeQueryPlanner } from '../../../src/routing/query-planner.js'
import { loadParser } from '../../../src/sql/parse.js'
import { routingConfig } from '../../support/routing-config.js'

await loadParser()

const column = (name: string, type: number, more: Partial<CatalogColumn> = {}): CatalogColumn => ({
  name,
  attnum: 0,
  type,
  typmod: -1,
  notNull: false,
  generated: false,
  identity: false,
  ...more,
})

const orders = {
  oid: 20_000,
  schema: 'public',
  name: 'orders',
  kind: 'table' as const,
  isTemporary: false,
  columns: [
    column('tenant', 20),
    column('id', 23),
    column('total', 1700),
    column('weight', 701),
    column('c', 25, { bytewise: true }),
    column('t', 25),
  ],
  constraints: [],
  foreignKeys: [],
  reads: [],
  hasTriggers: false,
  hasRules: false,
  rowSecurity: false,
}

const planner = makeQueryPlanner({
  sharding: routingConfig,
  catalog: new Catalog([orders], []),
})

function planOf(sql: string, values: readonly string[] = []) {
  return planner.plan(sql).statements[0]!.route(textParameters(values), { searchPath: ['public'] })
}

it.each([
  [
    'D120: ORDER BY … LIMIT with its hidden key, comments and literals kept',
    "select /* a */ id, 'x;y' -- b\n from orders order by total desc limit 10 offset 5",
    "select /* a */ id, 'x;y', (total) -- b\n from orders order by total desc LIMIT 15",
    {
      visible: 2,
      limit: 10n,
      offset: 5n,
      order: [{ column: 2, descending: true, nullsFirst: true }],
    },
  ],
  [
    'a star is spread by the catalogue',
    'select *, id + 1 from orders order by c, 7',
    'select *, id + 1 from orders order by c, 7',
    {
      visible: 7,
      order: [
        { column: 4, descending: false, nullsFirst: false, bytewise: true },
        { column: 6, descending: false, nullsFirst: false },
      ],
    },
  ],
  [
    'DISTINCT is ordered by all of its columns',
    'select distinct c, id from orders order by id limit 3',
    'select distinct c, id from orders order by id, 1 LIMIT 3',
    { visible: 2, unique: [0, 1] },
  ],
  [
    'GROUP BY text of any collation, told apart by its bytes',
    'select t, count(*) from orders group by t',
    'select t, count(*) from orders group by t ORDER BY (t) COLLATE "C"',
    { unique: [0], combine: [{ column: 1, by: 'count', parts: [1] }] },
  ],
  [
    'avg by hidden sum and count, with its FILTER',
    'select avg(total) filter (where id > 1) from orders',
    'select avg(total) filter (where id > 1), sum(total) filter (where id > 1), count(total) filter (where id > 1) from orders',
    { visible: 1, unique: [], combine: [{ column: 0, by: 'avg', parts: [1, 2] }] },
  ],
  [
    'groups sorted by an aggregate are limited only when combined',
    'select id, sum(total) from orders group by id order by 2 desc limit 5',
    'select id, sum(total) from orders group by id  ORDER BY 1 ',
    { unique: [0], sort: [{ column: 1, descending: true, nullsFirst: true }], limit: 5n },
  ],
  [
    'groups of the sharding key are whole on their shard',
    'select tenant, count(distinct id) from orders group by tenant having count(*) > 1 order by 2',
    'select tenant, count(distinct id) from orders group by tenant having count(*) > 1 order by 2',
    { visible: 2, combine: [] },
  ],
])('%s', (_, sql, sent, expected) => {
  const plan = planOf(sql)
  expect(plan.error?.message).toBeUndefined()
  expect(plan.how).toBe('merge')
  expect(plan.merge?.sql).toBe(sent)
  expect(plan.merge).toMatchObject(expected)
})

it('takes limits from parameters, and leaves those below zero to PostgreSQL', () => {
  const sql = 'select id from orders order by id limit $1 offset $2'
  expect(planOf(sql, ['7', '3']).merge).toMatchObject({
    sql: 'select id from orders order by id LIMIT 10',
    limit: 7n,
    offset: 3n,
  })
  expect(planOf(sql, ['-1', '3']).how).toBe('relay')
  expect(planOf(sql, ['9223372036854775807', '3']).merge?.sql).toBe(
    'select id from orders order by id ',
  )
})

it('keeps a plan for each text of a template apart', () => {
  for (const [number, column] of [
    [1, 0],
    [2, 1],
    [1, 0],
  ]) {
    const plan = planOf(`select id, total from orders order by ${number} limit ${column! + 3}`)
    expect(plan.merge?.order.map((key) => key.column)).toEqual([column])
    expect(plan.merge?.limit).toBe(BigInt(column! + 3))
  }
})

it.each([
  'select t from orders order by t',
  'select distinct t from orders',
  'select max(t) from orders',
  'select id, sum(total) + 1 from orders group by id',
  'select count(distinct id) from orders',
  'select id, count(*) from orders group by rollup (id)',
  'select id, count(*) from orders group by id having count(*) > 1',
  'select row_number() over (order by id) from orders',
  'select id from orders order by id limit 1 + 1',
  'select tenant from orders union select tenant from orders order by 1',
])('does not merge %s', (sql) => {
  expect(planOf(sql).how).not.toMatch(/merge|concatenate/)
})
