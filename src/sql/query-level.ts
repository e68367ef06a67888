/**
 * The query levels of a statement: one for each SELECT, VALUES, set operation and data-changing command, with its tables,
 * its conditions, and the levels inside it. Names of CTEs are not tables.
 */
import type { CommonTableExpr, JoinExpr, Node, RangeVar, SelectStmt } from './parse.js'
import { readPredicate, type SlotFinder } from './predicate.js'
import { notPlainBecause } from './select-shape.js'
import type { Conjunct, Level, Predicate } from './statement.js'
import { stringsOf, walkTree } from './tree.js'

/** Names of CTEs in sight, and where literals stand. */
export interface Scope {
  readonly ctes: ReadonlySet<string>
  readonly slots: SlotFinder
}

export function newLevel(kind: Level['kind'], parent: Level | undefined): Level {
  const level: Level = {
    kind,
    relations: [],
    conjuncts: [],
    children: [],
    outerJoins: [],
    merged: new Map(),
    hasDerived: false,
    derived: [],
    hasFullJoin: false,
  }
  if (parent) {
    level.parent = parent
    parent.children.push(level)
  }
  return level
}

/** Reads a data-changing statement into a level; handed in by describe-dml.ts, which builds on this file. */
export type DmlReader = (tag: string, body: unknown, parent: Level, scope: Scope) => boolean

let readDml: DmlReader = () => false

/** Joins the two files: CTEs and queries hold data-changing statements, which hold queries. */
export function useDmlReader(reader: DmlReader): void {
  readDml = reader
}

export function addRelation(level: Level, range: RangeVar, isTarget: boolean): number {
  const name = range.relname ?? ''
  level.relations.push({
    name,
    ...(range.schemaname ? { schema: range.schemaname } : {}),
    alias: range.alias?.aliasname ?? name,
    nullable: false,
    isTarget,
    renamesColumns: range.alias?.colnames !== undefined,
    at: range.location ?? 0,
    only: range.inh !== true,
  })
  return level.relations.length - 1
}

/** ANDs of a condition, each a conjunct. */
export function addConjuncts(
  level: Level,
  condition: Node | undefined,
  scope: Scope,
  relations?: readonly number[],
): void {
  if (!condition) return
  const add = (predicate: Predicate): void => {
    if (predicate.op === 'and') for (const part of predicate.parts) add(part)
    else if (predicate.op !== 'unknown') {
      const conjunct: Conjunct = relations ? { predicate, relations } : { predicate }
      level.conjuncts.push(conjunct)
    }
  }
  add(readPredicate(condition, scope.slots))
}

/** Subqueries anywhere beneath `value` become children of `level`. */
export function addSubqueries(level: Level, value: unknown, scope: Scope): void {
  walkTree(value, (tag, body) => {
    if (tag === 'SelectStmt') {
      readSelect(body as SelectStmt, level, scope)
      return false
    }
    return !readDml(tag, body, level, scope)
  })
}

/** Reads a WITH clause; the scope in which its names stand. */
export function readWith(
  clause: { ctes?: Node[]; recursive?: boolean } | undefined,
  level: Level,
  scope: Scope,
): Scope {
  if (!clause) return scope
  const ctes = (clause.ctes ?? []).flatMap((node): CommonTableExpr[] =>
    'CommonTableExpr' in node ? [node.CommonTableExpr] : [],
  )
  const names = new Set(scope.ctes)
  if (clause.recursive) for (const cte of ctes) names.add(cte.ctename ?? '')
  for (const cte of ctes) {
    addSubqueries(level, { query: cte.ctequery }, { ...scope, ctes: new Set(names) })
    names.add(cte.ctename ?? '')
  }
  return { ...scope, ctes: names }
}

const between = (from: number, to: number): number[] =>
  Array.from({ length: to - from }, (_, i) => from + i)

function readTable(range: RangeVar, level: Level, scope: Scope): void {
  if (range.schemaname || !scope.ctes.has(range.relname ?? '')) addRelation(level, range, false)
  else addDerived(level, range.alias?.aliasname ?? range.relname)
}

function addDerived(level: Level, name: string | undefined): void {
  level.hasDerived = true
  level.derived.push(name ?? '*')
}

/** Reads one item of FROM; its relations are those added meanwhile. */
export function readFromItem(item: Node, level: Level, scope: Scope): void {
  if ('RangeVar' in item) readTable(item.RangeVar, level, scope)
  else if ('JoinExpr' in item) readJoin(item.JoinExpr, level, scope)
  else if ('RangeTableSample' in item) {
    level.notPlain ??= 'TABLESAMPLE'
    if (item.RangeTableSample.relation) readFromItem(item.RangeTableSample.relation, level, scope)
  } else {
    addDerived(level, 'RangeSubselect' in item ? item.RangeSubselect.alias?.aliasname : undefined)
    addSubqueries(level, item, scope)
  }
}

/** (a JOIN b) AS j: the names a and b are not to be had outside of it. */
function hideNames(level: Level, alias: string, relations: readonly number[]): void {
  for (const index of relations) level.relations[index]!.alias = '\0'
  addDerived(level, alias)
}

function readJoin(join: JoinExpr, level: Level, scope: Scope): void {
  const start = level.relations.length
  if (join.larg) readFromItem(join.larg, level, scope)
  const middle = level.relations.length
  if (join.rarg) readFromItem(join.rarg, level, scope)
  const left = between(start, middle)
  const right = between(middle, level.relations.length)
  const restricted = restrictedBy(join, level, left, right)
  for (const column of stringsOf(join.usingClause)) {
    addUsing(level, join, column, restricted)
  }
  // The merged column of an inner join equals both sides; of an outer one it may be the other side's.
  if (join.isNatural && join.jointype !== 'JOIN_INNER') level.merged.set('*', -1)
  addConjuncts(level, join.quals, scope, restricted)
  addSubqueries(level, { quals: join.quals }, scope)
  if (join.alias) hideNames(level, join.alias.aliasname ?? '*', [...left, ...right])
}

/** Relations whose rows must meet the join's condition to take part; marks those that NULLs may replace. */
function restrictedBy(join: JoinExpr, level: Level, left: number[], right: number[]): number[] {
  const outer = (preserved: number[], nullable: number[]): number[] => {
    level.outerJoins.push({ preserved, nullable })
    for (const index of nullable) level.relations[index]!.nullable = true
    return nullable
  }
  switch (join.jointype) {
    case 'JOIN_LEFT':
      return outer(left, right)
    case 'JOIN_RIGHT':
      return outer(right, left)
    case 'JOIN_FULL':
      outer(left, right)
      outer(right, left)
      level.hasFullJoin = true
      return []
    default:
      return [...left, ...right]
  }
}

/** The relation that an unqualified USING column of a FROM item stands for; -1 when that cannot be said. */
function usingOwner(item: Node | undefined, level: Level, column: string): number {
  if (!item) return -1
  if ('RangeVar' in item) {
    const { alias, relname } = item.RangeVar
    return level.relations.findIndex((use) => use.alias === (alias?.aliasname ?? relname))
  }
  if (!('JoinExpr' in item) || item.JoinExpr.alias) return -1
  const join = item.JoinExpr
  if (!stringsOf(join.usingClause).includes(column) || join.jointype === 'JOIN_FULL') return -1
  return usingOwner(join.jointype === 'JOIN_RIGHT' ? join.rarg : join.larg, level, column)
}

function addUsing(level: Level, join: JoinExpr, column: string, relations: number[]): void {
  const left = usingOwner(join.larg, level, column)
  const right = usingOwner(join.rarg, level, column)
  const full = join.jointype === 'JOIN_FULL'
  level.merged.set(column, full ? -1 : join.jointype === 'JOIN_RIGHT' ? right : left)
  if (left < 0 || right < 0) return
  const use = (index: number) => ({ table: level.relations[index]!.alias, column })
  level.conjuncts.push({ predicate: { op: 'same', left: use(left), right: use(right) }, relations })
}

/** Reads a SELECT, VALUES or set operation as a child of `parent`. */
export function readSelect(select: SelectStmt, parent: Level | undefined, scope: Scope): Level {
  const setOperation = select.op !== undefined && select.op !== 'SETOP_NONE'
  const level = newLevel(setOperation ? 'setop' : select.valuesLists ? 'values' : 'select', parent)
  const inner = readWith(select.withClause, level, scope)
  if (select.withClause) level.notPlain ??= 'WITH'
  if (setOperation) {
    if (select.larg) readSelect(select.larg, level, inner)
    if (select.rarg) readSelect(select.rarg, level, inner)
  }
  for (const item of select.fromClause ?? []) readFromItem(item, level, inner)
  addConjuncts(level, select.whereClause, inner)
  const { fromClause, withClause, larg, rarg, ...rest } = select
  addSubqueries(level, rest, inner)
  const reason = notPlainBecause(select)
  if (reason !== undefined) level.notPlain ??= reason
  return level
}
