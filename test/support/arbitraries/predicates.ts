/** Conditions of generated statements: of keys mostly, nested in AND, OR and NOT, with subqueries. */
import type { Chooser } from './chooser.js'
import { keyValue } from './key-values.js'
import type { Scope, Source } from './scopes.js'
import { keyTexts, plainLiteral, quoted, tables } from './world.js'

const literalsOnly = { allowed: false, list: [] }

function ofKey(source: Source, scope: Scope, choose: Chooser): string {
  const { column, type } = source.table.key!
  const name = `${source.alias}."${column}"`
  const value = () =>
    keyValue(
      type,
      choose,
      scope.parameters,
      choose.chance(0.4) ? scope.text : choose.chance(0.3) ? 'odd' : undefined,
    )
  const literal = () => keyValue(type, choose, literalsOnly, undefined)
  const array = () =>
    choose.some(0, 3, () =>
      choose.chance(0.2) ? 'NULL' : `"${choose.pick(keyTexts[type]).replace(/(["\\])/g, '\\$1')}"`,
    )
  switch (choose.below(14)) {
    case 0:
      return `${name} in (${choose.some(1, 3, value).join(', ')})`
    case 1:
      return `${name} = any(array[${choose.some(1, 3, literal).join(', ')}]::${type === 'bpchar' ? 'bpchar' : type}[])`
    case 2:
      return `${name} = any(${quoted(`{${array().join(',')}}`)})`
    case 3:
      return `${name} is null`
    case 4:
      return `${name} is not distinct from ${choose.chance(0.3) ? 'null' : value()}`
    case 5:
      return `${name} between ${literal()} and ${literal()}`
    case 6:
      return `${name} ${choose.pick(['<', '>', '<=', '>=', '<>'])} ${value()}`
    case 7:
      return `(${name}, ${source.alias}.id) = (${value()}, ${choose.below(5)})`
    case 8:
      return `(${name}, ${source.alias}.id) in ((${literal()}, 1), (${literal()}, 2))`
    case 9:
      return `${name} not in (${choose.some(1, 2, literal).join(', ')})`
    case 10:
      return `(${name} = ${value()}) is ${choose.pick(['true', 'not false', 'unknown', 'not true'])}`
    case 11:
      return `${value()} = ${name}`
    default:
      return `${name} = ${value()}`
  }
}

function ofPlain(source: Source, choose: Chooser): string {
  const column = choose.pick(
    source.table.columns.filter((one) => one.name !== source.table.key?.column),
  )
  const name = `${source.alias}."${column.name}"`
  switch (choose.below(6)) {
    case 0:
      return `${name} is ${choose.chance(0.5) ? 'not ' : ''}null`
    case 1:
      return column.type === 'bool' ? name : `${name} <> ${plainLiteral(column.type, choose)}`
    case 2:
      return `${name} in (${plainLiteral(column.type, choose)}, ${plainLiteral(column.type, choose)})`
    case 3:
      return choose.pick(['true', 'false', 'null::boolean', '1 = 1'])
    default:
      return `${name} = ${plainLiteral(column.type, choose)}`
  }
}

function subquery(outer: Source, scope: Scope, choose: Chooser): string {
  const family = tables.filter((one) => one.key?.type === outer.table.key?.type)
  const table = choose.chance(0.8) ? choose.pick(family) : choose.pick(tables)
  const inner: Source = { alias: 's', table }
  const parts: string[] = []
  if (table.key && outer.table.key?.type === table.key.type && choose.chance(0.6)) {
    parts.push(`s."${table.key.column}" = ${outer.alias}."${outer.table.key.column}"`)
  }
  if (table.key && choose.chance(0.4)) parts.push(ofKey(inner, scope, choose))
  if (choose.chance(0.4)) parts.push(ofPlain(inner, choose))
  const where = parts.length > 0 ? ` where ${parts.join(' and ')}` : ''
  switch (choose.below(5)) {
    case 0:
      return `${outer.alias}.id in (select s.id from ${table.name} s${where})`
    case 1:
      return `exists (select 1 from ${table.name} s${where})`
    case 2:
      return `not exists (select 1 from ${table.name} s${where})`
    case 3:
      return `${outer.alias}.id not in (select s.id from ${table.name} s${where})`
    default:
      return `${outer.alias}.id < (select count(*) from ${table.name} s${where})`
  }
}

export function predicate(scope: Scope, choose: Chooser, depth: number): string {
  const source = choose.pick(scope.sources)
  const kind = choose.below(10)
  if (depth > 0 && kind === 0) {
    return `(${predicate(scope, choose, depth - 1)} or ${predicate(scope, choose, depth - 1)})`
  }
  if (depth > 0 && kind === 1) {
    return `(${predicate(scope, choose, depth - 1)} and ${predicate(scope, choose, depth - 1)})`
  }
  if (depth > 0 && kind === 2) return `not (${predicate(scope, choose, depth - 1)})`
  if (kind === 3) return subquery(source, scope, choose)
  return source.table.key && kind < 8 ? ofKey(source, scope, choose) : ofPlain(source, choose)
}
