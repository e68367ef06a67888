/** Generated statements over the tables of world.ts: one SQL text, with parameters where it has some. */
import type { Chooser } from './chooser.js'
import { keyValue, type Parameter } from './key-values.js'
import { predicate } from './predicates.js'
import { joinedFrom, type Scope, type Source, scopeOf } from './scopes.js'
import { plainLiteral, type TableFacts, tables } from './world.js'

export interface Generated {
  readonly sql: string
  readonly parameters: readonly Parameter[]
  /** ORDER BY makes the order total. */
  readonly ordered: boolean
  readonly writes: boolean
  /** pinned: every sharded table has its key; scatter: one plain level without a key; else free. */
  readonly shape: 'pinned' | 'scatter' | 'free'
  /** The table written. */
  readonly target?: TableFacts
}

const shardedTables = tables.filter((table) => table.key)

/** Conditions that give every key of the scope the same value. */
function pins(scope: Scope, text: string, choose: Chooser): string[] {
  return scope.sources.flatMap(({ alias, table }) =>
    table.key
      ? [
          `${alias}."${table.key.column}" = ${keyValue(table.key.type, choose, scope.parameters, text)}`,
        ]
      : [],
  )
}

function conditions(
  scope: Scope,
  shape: Generated['shape'],
  text: string,
  choose: Chooser,
): string {
  const parts = choose.some(0, 2, () => predicate(scope, choose, 2))
  if (shape === 'pinned') parts.push(...pins(scope, text, choose))
  if (parts.length === 0) return ''
  return ` where ${parts.map((part) => `(${part})`).join(' and ')}`
}

function columnsOf(scope: Scope, choose: Chooser): string[] {
  const all = scope.sources.flatMap(({ alias, table }) =>
    table.columns.map((column) => `${alias}."${column.name}"`),
  )
  return choose.some(1, 4, () => choose.pick(all))
}

function expressions(scope: Scope, choose: Chooser): string[] {
  const columns = columnsOf(scope, choose)
  const { alias } = scope.sources[0]!
  if (choose.chance(0.3)) columns.push(`coalesce(${alias}.id, -1) + 1`)
  if (choose.chance(0.2)) columns.push(`upper(${alias}.label)`)
  if (choose.chance(0.1)) columns.push(`case when ${alias}.done then 'y' else 'n' end`)
  return columns
}

const order = (count: number): string =>
  ` order by ${Array.from({ length: count }, (_, i) => i + 1).join(', ')}`

type Body = { sql: string; ordered: boolean }

function aggregate(scope: Scope, from: string, where: string, choose: Chooser): Body {
  const { alias } = scope.sources[0]!
  const calls = [
    'count(*)',
    `sum(${alias}.id)`,
    `max(${alias}.label collate "C")`,
    `count(distinct ${alias}.day)`,
    `bool_or(${alias}.done)`,
    `avg(${alias}.amount)`,
  ]
  const list = choose.some(1, 3, () => choose.pick(calls)).join(', ')
  if (choose.chance(0.5)) return { sql: `select ${list} ${from}${where}`, ordered: true }
  const having = choose.chance(0.3) ? ' having count(*) > 1' : ''
  return {
    sql: `select ${alias}.done, ${list} ${from}${where} group by ${alias}.done${having}`,
    ordered: false,
  }
}

function selectBody(
  scope: Scope,
  from: string,
  where: string,
  shape: string,
  choose: Chooser,
): Body {
  const columns = expressions(scope, choose)
  const list = columns.join(', ')
  const kind = shape === 'scatter' ? 0 : choose.below(8)
  if (kind === 1) return aggregate(scope, from, where, choose)
  if (kind === 2) return { sql: `select distinct ${list} ${from}${where}`, ordered: false }
  if (kind === 3) {
    const limit = choose.chance(0.5) ? ` limit ${choose.below(6)} offset ${choose.below(3)}` : ''
    return { sql: `select ${list} ${from}${where}${order(columns.length)}${limit}`, ordered: true }
  }
  if (kind === 4) {
    const { alias } = scope.sources[0]!
    const over = `rank() over (partition by ${alias}.done order by ${alias}.id)`
    return { sql: `select ${list}, ${over} ${from}${where}`, ordered: false }
  }
  return { sql: `select ${list} ${from}${where}`, ordered: false }
}

/** A subquery of the same key in the list or, as LATERAL, in FROM. */
function nested(choose: Chooser): Generated {
  const scope = scopeOf(choose, 'pinned', undefined, 1)
  const { alias, table } = scope.sources[0]!
  const family = tables.filter((one) => one.key?.type === table.key!.type)
  const other = choose.chance(0.8) ? choose.pick(family) : tables.find((one) => !one.key)!
  const { column } = table.key!
  const where = conditions(scope, choose.chance(0.8) ? 'pinned' : 'free', scope.text, choose)
  const equal =
    other.key && choose.chance(0.8) ? `s."${other.key.column}" = ${alias}."${column}"` : 'true'
  const aggregate = `select count(*) as c, max(s.id) as m from ${other.name} s where ${equal}`
  const sql = choose.pick([
    `select ${alias}.id, (select count(*) from ${other.name} s where ${equal}) from ${table.name} ${alias}${where}`,
    `select ${alias}.id, l.* from ${table.name} ${alias} cross join lateral (${aggregate}) l${where}`,
    `select ${alias}.id, l.* from ${table.name} ${alias} left join lateral (${aggregate} group by s.done) l on l.c > 1${where}`,
    `select d.* from (select ${alias}.id, ${alias}."${column}" from ${table.name} ${alias}${where}) d`,
  ])
  return { sql, parameters: scope.parameters.list, ordered: false, writes: false, shape: 'free' }
}

function select(choose: Chooser, shape: Generated['shape']): Generated {
  const scope = scopeOf(choose, shape)
  const from = joinedFrom(scope, shape, choose)
  const text = scope.text
  const where = conditions(scope, shape, text, choose)
  const body = selectBody(scope, from, where, shape, choose)
  return { ...body, parameters: scope.parameters.list, writes: false, shape }
}

function combined(choose: Chooser): Generated {
  const one = (): { scope: Scope; sql: string } => {
    const scope = scopeOf(choose, 'pinned', text)
    const where = conditions(scope, 'pinned', scope.text, choose)
    return {
      scope,
      sql: `select ${scope.sources[0]!.alias}.id ${joinedFrom(scope, 'pinned', choose)}${where}`,
    }
  }
  const text = undefined
  const operator = choose.pick(['union', 'union all', 'intersect', 'except', 'except all'])
  const [left, right] = [one(), one()]
  return {
    sql: `${left.sql} ${operator} ${right.sql}`,
    parameters: [],
    ordered: false,
    writes: false,
    shape: 'free',
  }
}

function withCte(choose: Chooser): Generated {
  const scope = scopeOf(choose, 'pinned')
  const from = joinedFrom(scope, 'pinned', choose)
  const where = conditions(scope, 'pinned', scope.text, choose)
  const kind = choose.pick(['', 'materialized ', 'not materialized '])
  const { alias } = scope.sources[0]!
  const inner = `select ${alias}.id as id, ${alias}.label as label ${from}${where}`
  const outer = choose.pick([
    'select * from c',
    'select count(*) from c',
    'select c.id, k.label from c left join kind k on k.id = c.id',
    'select k.id from kind k where exists (select 1 from c where c.id = k.id)',
    'select a.id from c a, c b where a.id = b.id',
  ])
  return {
    sql: `with c as ${kind}(${inner}) ${outer}`,
    parameters: scope.parameters.list,
    ordered: false,
    writes: false,
    shape: 'pinned',
  }
}

function recursive(choose: Chooser): Generated {
  const scope = scopeOf(choose, 'pinned', undefined, 1)
  const [{ alias, table }] = scope.sources as [Source]
  const where = conditions(scope, 'pinned', scope.text, choose)
  const sql = `with recursive r(n) as (select min(${alias}.id) from ${table.name} ${alias}${where} union select n + 1 from r where n < 5) select n from r`
  return { sql, parameters: scope.parameters.list, ordered: false, writes: false, shape: 'pinned' }
}

function tableFree(choose: Chooser): Generated {
  const sql = choose.pick([
    "values (1, 'a'), (2, null)",
    'select 1 + 1, null, true',
    'select * from generate_series(1, 3) g',
    'select k.id, j.label from kind k join kind j using (id)',
    'select count(*) from kind',
    'select * from (values (1), (2)) v(x) left join kind k on k.id = v.x',
    'select k.id from kind k where exists (select 1 from kind j where j.id > k.id)',
    'select label, sum(amount) from kind group by label',
  ])
  return { sql, parameters: [], ordered: false, writes: false, shape: 'pinned' }
}

/** Values of a row; the key's is `key`. */
function rowOf(table: TableFacts, key: string, choose: Chooser): string {
  const cells = table.columns.map((column) =>
    column.name === table.key?.column ? key : plainLiteral(column.type, choose),
  )
  return `(${cells.join(', ')})`
}

function insert(choose: Chooser): Generated {
  const table = choose.pick(shardedTables)
  const scope = scopeOf(choose, 'pinned', undefined, 1)
  const key = () =>
    choose.chance(0.08)
      ? choose.pick(['null', 'default'])
      : keyValue(table.key!.type, choose, scope.parameters, choose.chance(0.7) ? undefined : 'odd')
  const names = table.columns.map((column) => `"${column.name}"`).join(', ')
  const list = choose.chance(0.5) ? ` (${names})` : ''
  const rows = choose.some(1, choose.chance(0.2) ? 3 : 1, () => rowOf(table, key(), choose))
  const returning = choose.chance(0.7) ? ' returning *' : ''
  const conflict = choose.chance(0.2) ? ' on conflict do nothing' : ''
  const sql = `insert into ${table.name}${list} values ${rows.join(', ')}${conflict}${returning}`
  return {
    sql,
    parameters: scope.parameters.list,
    ordered: false,
    writes: true,
    shape: 'free',
    target: table,
  }
}

function insertSelect(choose: Chooser): Generated {
  const scope = scopeOf(choose, 'pinned', undefined, 1)
  const [{ alias, table }] = scope.sources as [Source]
  const targets = shardedTables.filter((one) => one.key!.type === table.key?.type)
  const target = targets.length > 0 ? choose.pick(targets) : table
  const where = conditions(scope, 'pinned', scope.text, choose)
  const key = table.key?.column ?? 'id'
  const sql = `insert into ${target.name} ("${target.columns[0]!.name}", id) select ${alias}."${key}", ${alias}.id from ${table.name} ${alias}${where} returning *`
  return {
    sql,
    parameters: scope.parameters.list,
    ordered: false,
    writes: true,
    shape: 'free',
    target,
  }
}

function assignment({ table }: Source, scope: Scope, choose: Chooser): string {
  const { key } = table
  return choose.pick([
    'id = id + 1',
    "label = 'new'",
    'amount = amount * 2, done = not done',
    ...(key
      ? [`"${key.column}" = ${keyValue(key.type, choose, scope.parameters, scope.text)}`]
      : []),
  ])
}

function change(choose: Chooser): Generated {
  const scope = scopeOf(choose, 'pinned', undefined, 1)
  const source = scope.sources[0]!
  const { alias, table } = source
  const pinned = choose.chance(0.8)
  const where = conditions(scope, pinned ? 'pinned' : 'free', scope.text, choose)
  const joined = choose.chance(0.2)
  const join = joined ? `${where === '' ? ' where ' : ' and '}kind.id = ${alias}.id` : ''
  const returning = choose.chance(0.7) ? ` returning ${alias}.*` : ''
  const set = assignment(source, scope, choose)
  const sql = choose.chance(0.6)
    ? `update ${table.name} ${alias} set ${set}${joined ? ' from kind' : ''}${where}${join}${returning}`
    : `delete from ${table.name} ${alias}${joined ? ' using kind' : ''}${where}${join}${returning}`
  const shape = pinned && table.key && !set.startsWith('"') ? 'pinned' : 'free'
  return {
    sql,
    parameters: scope.parameters.list,
    ordered: false,
    writes: true,
    shape,
    target: table,
  }
}

const writers = [insert, insert, insertSelect, change, change]

export function statement(choose: Chooser): Generated {
  const kind = choose.below(20)
  if (kind < 5) return select(choose, 'pinned')
  if (kind < 8) return select(choose, 'scatter')
  if (kind < 12) return select(choose, 'free')
  if (kind === 12) return combined(choose)
  if (kind === 13) return choose.chance(0.5) ? withCte(choose) : nested(choose)
  if (kind === 14) return choose.chance(0.5) ? recursive(choose) : tableFree(choose)
  return choose.pick(writers)(choose)
}
