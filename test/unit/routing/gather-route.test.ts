/** What is copied for a statement, and with which text it finishes. */
import { beforeAll, describe, expect, it } from 'vitest'
import { Catalog, type CatalogRelation } from '../../../src/catalog/catalog.js'
import type { Plan, QueryPlanner, RouteContext } from '../../../src/plan/plan.js'
import { textParameters } from '../../../src/routing/describe-route.js'
import { openQueryPlanner } from '../../../src/routing/query-planner.js'
import { routingConfig } from '../../support/routing-config.js'

const INT8 = 20
const TEXT = 25

let nextOid = 100

function relation(
  name: string,
  columns: Record<string, number>,
  more: Partial<CatalogRelation> = {},
): CatalogRelation {
  return {
    oid: nextOid++,
    schema: 'public',
    name,
    kind: 'table',
    isTemporary: false,
    columns: Object.entries(columns).map(([column, type], i) => ({
      name: column,
      attnum: i + 1,
      type,
      typmod: -1,
      notNull: false,
      generated: false,
      identity: false,
    })),
    constraints: [],
    foreignKeys: [],
    reads: [],
    hasTriggers: false,
    hasRules: false,
    rowSecurity: false,
    ...more,
  }
}

const orders = relation(
  'orders',
  { tenant: INT8, id: INT8, total: INT8, note: TEXT, extra: TEXT },
  { constraints: [{ name: 'orders_pkey', kind: 'primary', columns: ['tenant', 'id'] }] },
)
const items = relation('items', { tenant: INT8, order_id: INT8, price: INT8, note: TEXT })
const ref = relation('ref', { code: TEXT, label: TEXT })
const other = relation('other', { id: INT8, x: TEXT })
const view = relation(
  'totals',
  { order_id: INT8, sum: INT8 },
  {
    kind: 'view',
    reads: [orders.oid, ref.oid],
    definition:
      ' SELECT orders.id AS order_id, 1 AS sum FROM (public.orders JOIN public.ref ON true);',
  },
)

let planner: QueryPlanner
beforeAll(async () => {
  const hidden = {
    relations: new Set<number>(),
    domains: new Set<string>(),
    operators: new Set<string>(),
    everywhere: false,
  }
  const functions = [
    { schema: 'public', name: 'slug', volatility: 'immutable' as const },
    { schema: 'public', name: 'peek', volatility: 'stable' as const },
  ]
  planner = await openQueryPlanner({
    sharding: routingConfig,
    catalog: new Catalog([orders, items, ref, other, view], functions, [], [], hidden),
    gatherFunctions: ['random'],
  })
})

function route(sql: string, values: string[] = [], context: Partial<RouteContext> = {}): Plan {
  const [statement] = planner.plan(sql).statements
  return statement!.route(textParameters(values), { searchPath: ['public'], ...context })
}

function gathered(sql: string, values: string[] = [], context: Partial<RouteContext> = {}) {
  const plan = route(sql, values, context)
  expect(plan.error).toBeUndefined()
  expect(plan.how).toBe('gather')
  return plan.gather!
}

const refusedFor = (sql: string): string => {
  const plan = route(sql)
  expect(plan.how).toBe('refuse')
  return plan.error!.message
}

const join = 'select o.total from orders o join items i on i.order_id = o.id'

describe('what is copied', () => {
  it('only the columns whose names stand in the statement, in the order of the table', () => {
    const { tables } = gathered(join)
    expect(tables.map(({ name, columns }) => [name, columns.map((one) => one.name)])).toEqual([
      ['orders', ['id', 'total']],
      ['items', ['order_id']],
    ])
    const [all] = gathered(join.replace('o.total', 'o.*')).tables
    expect(all!.columns).toHaveLength(5)
    const [whole] = gathered('select count(o) from orders o join items i on i.price = o.id').tables
    expect(whole!.columns).toHaveLength(5)
    const [renamed] = gathered('select x from orders o(x) join items i on i.price = x').tables
    expect(renamed!.columns).toHaveLength(5)
  })

  it('D101: what an aggregate needs whose partial values of this type are not combined', () => {
    for (const sql of ['bit_or(total::bit(8))', 'bit_and(total::varbit)', "sum(interval '1 day')"])
      expect(route(`select ${sql} from orders`).how, sql).toBe('gather')
    expect(route('select bit_or(total), bit_xor(id), sum(id) from orders').how).toBe('merge')
  })

  it('D64: text that is cast to name, which keeps the collation of the text', () => {
    expect(route('select id from orders order by note::name, id').how).toBe('gather')
    expect(route('select max(note::name) from orders').how).toBe('gather')
    expect(route('select id from orders order by (note collate "C")::name').how).toBe('merge')
  })

  it('a column only of the table before whose name it stands', () => {
    const columns = (sql: string) =>
      gathered(sql).tables.map(({ columns: all }) => all.map(({ name }) => name).join())
    const both = 'select o.note from orders o join items i on i.order_id = o.id'
    expect(columns(both)).toEqual(['id,note', 'order_id'])
    expect(columns(`${both} where i.tenant > 1`)).toEqual(['id,note', 'tenant,order_id'])
    // bare it may be of either; behind the name of a join of any in it
    expect(columns(`${both} group by o.note, price`)).toEqual(['id,note', 'order_id,price'])
    expect(columns('select j.note from (orders o join items i on i.order_id = o.id) j')).toEqual([
      'id,note',
      'order_id,note',
    ])
    expect(columns('select public.items.note from orders o join items on order_id = o.id')).toEqual(
      ['id', 'order_id,note'],
    )
  })

  it('a table that joins a filtered one as far as it joins it', () => {
    const joins = (sql: string) =>
      gathered(sql).tables.map(({ name, joined }) =>
        joined ? `${name}.${joined.column} = ${joined.to}.${joined.theirs}` : name,
      )
    const filtered = `${join} where o.total = 5`
    expect(joins(filtered)).toEqual(['orders', 'items.order_id = orders.id'])
    expect(joins(filtered.replace('join', 'left join'))).toEqual([
      'orders',
      'items.order_id = orders.id',
    ])
    expect(joins(`${join} where i.price = 5`)).toEqual(['orders.id = items.order_id', 'items'])
    // all rows of what an outer join keeps matter, and all where nothing is left out
    expect(joins(join)).toEqual(['orders', 'items'])
    const kept =
      'select o.total from orders o left join items i on i.order_id = o.id and i.price = 5'
    expect(joins(kept)).toEqual(['orders', 'items'])
    const full =
      'select o.total from orders o full join items i on i.order_id = o.id where o.total = 5'
    expect(joins(full)).toEqual(['orders', 'items'])
    // read twice, once without the join; either of two conditions; other types
    expect(joins(`${filtered} and 3 < (select max(price) from items)`)).toEqual(['orders', 'items'])
    const either = filtered.replace('on i.order_id = o.id', 'on (i.order_id = o.id or i.price = 1)')
    expect(joins(either)).toEqual(['orders', 'items'])
    expect(joins(filtered.replace('i.order_id = o.id', 'i.note = o.id'))).toEqual([
      'orders',
      'items',
    ])
    const inner = `select o.total, (select count(*) from items i where i.order_id = o.id) from orders o where o.total = 5`
    expect(joins(inner)).toEqual(['orders', 'items.order_id = orders.id'])
  })

  it('only the rows that its own conditions keep, with the values of this text', () => {
    const filters = (sql: string, values: string[] = [], types: number[] = []) =>
      gathered(sql, values, { parameterTypes: types }).tables.map(({ filter }) => filter)
    const where = (condition: string) => `${join} where ${condition}`
    expect(filters(where("o.note = 'it''s' and i.price between 3 and -4"))).toEqual([
      `"note" = 'it''s'`,
      '"price" >= 3 AND "price" <= (-4)',
    ])
    expect(filters(where('o.total > $1 and i.note = $2'), ['5', "a'b\\"], [INT8, TEXT])).toEqual([
      `"total" > '5'::pg_catalog."int8"`,
      `"note" = E'a''b\\\\'::pg_catalog."text"`,
    ])
    expect(filters(where('o.total = 1 or o.total is null'))).toEqual([
      '("total" = 1 OR "total" IS NULL)',
      undefined,
    ])
    // what is not understood widens, and volatile or foreign things are never sent
    expect(filters(where('o.total = 1 or o.total = o.id'))).toEqual([undefined, undefined])
    expect(filters(where('o.total = i.price'))).toEqual([undefined, undefined])
    expect(filters(where("o.note = U&'d!0061' uescape '!'"))).toEqual([undefined, undefined])
  })

  it('nothing is left out beneath an outer join, or of a table that is read twice', () => {
    const filters = (sql: string) => gathered(sql).tables.map(({ filter }) => filter)
    const left = 'select 1 from orders o left join items i on i.order_id = o.id and i.price = 7'
    expect(filters(`${left} where i.note is null and o.total = 1`)).toEqual([
      '"total" = 1',
      '"price" = 7',
    ])
    const twice = 'select 1 from orders a, orders b where a.total = b.id and a.total = 1'
    expect(filters(twice)).toEqual([undefined])
    expect(filters(`${twice} and b.note = 'x'`)).toEqual([`("total" = 1) OR ("note" = 'x')`])
  })

  it('each table from the shards where its rows can matter', () => {
    const { tables } = gathered(`${join} where o.tenant = 1`)
    expect(tables.map(({ shards }) => shards)).toEqual([
      { kind: 'some', shards: [expect.any(Number)] },
      { kind: 'all' },
    ])
    const mixed = gathered('select 1 from orders o join other x on x.id = o.total')
    expect(mixed.tables[1]).toMatchObject({ livesOn: 3, shards: { kind: 'some', shards: [3] } })
  })

  it('with the primary key where a GROUP BY may lean on it', () => {
    const sql =
      'select o.tenant, o.id, o.note, count(*) from orders o join items i on i.price = o.id'
    expect(gathered(`${sql} group by o.tenant, o.id`).tables[0]!.primaryKey).toEqual([
      'tenant',
      'id',
    ])
    expect(gathered(join).tables[0]!.primaryKey).toBeUndefined()
  })
})

describe('the text that finishes', () => {
  it('has no schema before copied tables, at the same places, and keeps all else', () => {
    const sql =
      'select public . orders.total, public.ref.label from public /* x */ . "orders", public.ref, items where items.price = public.orders.id'
    const { sql: text, sqlWithReferences, references } = gathered(sql)
    expect(text).toBe(
      'select          orders.total, public.ref.label from                  "orders", public.ref, items where items.price =        orders.id',
    )
    expect(sqlWithReferences).toContain('       ref.label from')
    expect(references.map(({ name }) => name)).toEqual(['ref'])
    expect(text).toHaveLength(sql.length)
  })

  it('says pg_temp where a CTE bears the name of a copied table', () => {
    const sql =
      'with orders as (select 1) select count(*) from orders, public.orders o, items i where i.price = o.id'
    expect(gathered(sql).sql).toContain('from orders, pg_temp.orders o, items i')
  })

  it('is made from this text, not from another of its template', () => {
    const of = (value: string) =>
      gathered(`select count(distinct note) from public.orders where note = '${value}'`)
    expect(of('a').tables[0]!.filter).toBe(`"note" = 'a'`)
    expect(of('bcd').sql).toBe("select count(distinct note) from        orders where note = 'bcd'")
  })

  it('a view over sharded tables is made anew over their copies', () => {
    const { tables, references, views } = gathered('select sum from public.totals')
    expect(tables.map(({ name, columns, filter }) => [name, columns.length, filter])).toEqual([
      ['orders', 5, undefined],
    ])
    expect(references.map(({ name }) => name)).toEqual(['ref'])
    expect(views).toEqual([
      {
        name: 'totals',
        sql: ' SELECT orders.id AS order_id, 1 AS sum FROM (       orders JOIN public.ref ON true)',
        sqlWithReferences:
          ' SELECT orders.id AS order_id, 1 AS sum FROM (       orders JOIN        ref ON true)',
      },
    ])
  })
})

describe('what is refused by name', () => {
  it.each([
    [`${join} for update of o`, 'a locking clause'],
    ['select xmin, count(distinct id) from orders group by 1', 'system column xmin'],
    ['select count(distinct id), peek() from orders', 'function peek()'],
    ['select count(distinct id), pg_relation_size(1) from orders', 'function pg_relation_size()'],
    ['select count(distinct id), txid_current() from orders', 'function txid_current()'],
    ["select count(distinct id), 'a'::regclass from orders", 'a cast to regclass'],
    ['select count(distinct o.id) from orders o, pg_class', 'system catalog "pg_class"'],
    ['select array_agg(o) from orders o join items i on i.price = o.id', 'a whole row of "orders"'],
    ['select o from orders o join items i on i.price = o.id', 'a whole row of "orders"'],
    ['select count(distinct id) from orders tablesample system (1)', 'TABLESAMPLE'],
    ['select count(distinct a.id) from orders a, only orders b', 'with and without ONLY'],
    [
      'with d as (delete from orders where tenant = 1 returning id) select count(distinct o.id) from orders o, d',
      'writes',
    ],
  ])('%s', (sql, reason) => {
    expect(refusedFor(sql)).toContain(reason)
  })

  it('functions that are immutable or named in gather_functions pass', () => {
    gathered('select count(distinct slug(note)), random() from orders')
    gathered("select string_agg(note, ',' order by id), date_trunc('day', now()) from orders")
  })

  it('cross_shard_gather = off refuses with the reason of the simpler ways', async () => {
    const off = await openQueryPlanner({ sharding: routingConfig, gathers: false })
    const [statement] = off.plan('select count(distinct id) from orders').statements
    expect(statement!.route(undefined, { searchPath: ['public'] }).how).toBe('refuse')
  })
})
