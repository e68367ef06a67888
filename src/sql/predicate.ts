/**
 * Conditions of a WHERE or ON → what they say of columns. Pure. What is not understood is `unknown`, never left out:
 * under AND it narrows nothing, under OR it widens to all.
 */
import type {
  A_Const,
  A_Expr,
  BoolExpr,
  ColumnRef,
  Node,
  NullTest,
  SelectStmt,
  SubLink,
  TypeName,
} from './parse.js'
import type { ColumnUse, Predicate, Value } from './statement.js'
import { stringOf } from './tree.js'

/** Finds the literal slot of a constant. */
export interface SlotFinder {
  /** Slot of the literal that the parser puts at `location`; -1 when there is none. */
  slotAt(location: number | undefined): number
  /** How often the parameter with this number stands in the statement. */
  usesOf?(number: number): number
}

const unknown: Predicate = { op: 'unknown' }
const never: Predicate = { op: 'never' }

export function readColumn(node: Node | undefined): ColumnUse | undefined {
  if (!node || !('ColumnRef' in node)) return undefined
  return columnOf(node.ColumnRef)
}

function columnOf(ref: ColumnRef): ColumnUse | undefined {
  const path: string[] = []
  for (const field of ref.fields ?? []) {
    const name = stringOf(field)
    if (name === undefined) return undefined
    path.push(name)
  }
  const [first, second, third] = path
  if (path.length === 1) return { column: first! }
  if (path.length === 2) return { table: first!, column: second! }
  return path.length === 3 ? { schema: first!, table: second!, column: third! } : undefined
}

/** The name of a type; undefined for a length or precision, which changes the value. */
function typeOf(type: TypeName | undefined): string | undefined {
  if (!type || type.typmods || type.setof || type.pct_type) return undefined
  const names = (type.names ?? []).map((name) => stringOf(name) ?? '')
  if (names.length > 1 && names[0] !== 'pg_catalog') return undefined
  const name = names.at(-1) ?? ''
  return type.arrayBounds ? `${name}[]` : name
}

function constant(node: A_Const, slots: SlotFinder): Value | undefined {
  if (node.isnull) return { kind: 'null' }
  if (node.boolval) return undefined
  const slot = slots.slotAt(node.location)
  if (slot < 0) return undefined
  const made = (literal: 'integer' | 'number' | 'string' | 'bit', negative: boolean): Value => ({
    kind: 'slot',
    slot,
    negative,
    literal,
  })
  if (node.sval) return made('string', false)
  if (node.ival) return made('integer', (node.ival.ival ?? 0) < 0)
  if (node.fval) return made('number', (node.fval.fval ?? '').startsWith('-'))
  return made('bit', false)
}

function parameter(number: number, slots: SlotFinder): Value {
  const uses = slots.usesOf?.(number) ?? 1
  return { kind: 'parameter', index: number - 1, ...(uses > 1 ? { uses } : {}) }
}

const selectKeys = new Set(['targetList', 'valuesLists', 'limitOption', 'op'])

/** A SELECT or VALUES of plain expressions: nothing of it can take rows away or change them. */
const isBare = (select: SelectStmt): boolean =>
  Object.entries(select).every(
    ([key, value]) =>
      selectKeys.has(key) &&
      (key !== 'op' || value === 'SETOP_NONE') &&
      (key !== 'limitOption' || value === 'LIMIT_OPTION_DEFAULT'),
  )

/** A constant that left a subquery has a type there: a string is text, and a parameter whatever it was declared. */
function settled(node: Node | undefined, slots: SlotFinder): Value | undefined {
  const value = readValue(node, slots)
  if (value?.kind !== 'slot') return value?.kind === 'null' ? value : undefined
  return value.literal === 'string' && value.type === undefined ? { ...value, type: 'text' } : value
}

/** (SELECT constant) */
function selectedConstant(node: Node, slots: SlotFinder): Value | undefined {
  if (!('SubLink' in node) || node.SubLink.subLinkType !== 'EXPR_SUBLINK') return undefined
  const { subselect } = node.SubLink
  if (!subselect || !('SelectStmt' in subselect) || !isBare(subselect.SelectStmt)) return undefined
  const { targetList, valuesLists } = subselect.SelectStmt
  const [target, ...others] = targetList ?? []
  if (!target || others.length > 0 || valuesLists || !('ResTarget' in target)) return undefined
  return settled(target.ResTarget.val, slots)
}

/** A literal or parameter, with casts, or a subquery of one constant; undefined for all else. */
export function readValue(node: Node | undefined, slots: SlotFinder): Value | undefined {
  if (!node) return undefined
  if ('SubLink' in node) return selectedConstant(node, slots)
  if ('A_Const' in node) return constant(node.A_Const, slots)
  if ('ParamRef' in node) return parameter(node.ParamRef.number ?? 0, slots)
  if (!('TypeCast' in node)) return undefined
  const inner = readValue(node.TypeCast.arg, slots)
  const type = typeOf(node.TypeCast.typeName)
  if (!inner || type === undefined) return undefined
  if (inner.kind === 'null') return inner
  // A cast of a cast may change the value ('1.5'::numeric::int). The same type twice does not, nor a string by way of text.
  const viaText = inner.kind === 'slot' && inner.literal === 'string' && inner.type === 'text'
  if (inner.type !== undefined && inner.type !== type && !viaText) return undefined
  return { ...inner, type }
}

const operatorName = (expression: A_Expr): string => {
  const names = (expression.name ?? []).map((name) => stringOf(name) ?? '')
  return names.length === 1 || names[0] === 'pg_catalog' ? (names.at(-1) ?? '') : ''
}

const mirrored: Record<string, string> = { '<': '>', '>': '<', '<=': '>=', '>=': '<=' }

function rangeOf(column: ColumnUse, operator: string, value: Value): Predicate {
  const inclusive = operator.endsWith('=')
  return operator.startsWith('<')
    ? { op: 'range', column, high: value, inclusive }
    : { op: 'range', column, low: value, inclusive }
}

function comparison(operator: string, left: Node, right: Node, slots: SlotFinder): Predicate {
  const leftColumn = readColumn(left)
  const rightColumn = readColumn(right)
  if (leftColumn && rightColumn) {
    return operator === '=' ? { op: 'same', left: leftColumn, right: rightColumn } : unknown
  }
  const column = leftColumn ?? rightColumn
  const value = readValue(leftColumn ? right : left, slots)
  if (!column || !value) return unknown
  if (value.kind === 'null') return never
  if (operator === '=') return { op: 'equal', column, values: [value] }
  return rangeOf(column, leftColumn ? operator : mirrored[operator]!, value)
}

const rowItems = (node: Node | undefined): readonly Node[] | undefined =>
  node && 'RowExpr' in node ? (node.RowExpr.args ?? []) : undefined

function equality(left: Node, right: Node, slots: SlotFinder): Predicate {
  const lefts = rowItems(left)
  const rights = rowItems(right)
  if (!lefts || !rights) return comparison('=', left, right, slots)
  if (lefts.length !== rights.length) return unknown
  return { op: 'and', parts: lefts.map((item, i) => equality(item, rights[i]!, slots)) }
}

/** (a, b) < (x, y): true of no row whose a lies on the wrong side of x. */
function rowOrder(operator: string, left: Node, right: Node, slots: SlotFinder): Predicate {
  const [first] = rowItems(left) ?? []
  const [other] = rowItems(right) ?? []
  if (!first || !other) return comparison(operator, left, right, slots)
  if (rowItems(left)!.length !== rowItems(right)!.length) return unknown
  return comparison(`${operator[0]}=`, first, other, slots)
}

function operation(expression: A_Expr, slots: SlotFinder): Predicate {
  const operator = operatorName(expression)
  const { lexpr, rexpr } = expression
  if (!lexpr || !rexpr) return unknown
  if (operator === '=') return equality(lexpr, rexpr, slots)
  return operator in mirrored ? rowOrder(operator, lexpr, rexpr, slots) : unknown
}

/** col IN (…), col = ANY (ARRAY[…]): NULLs in the list never match. */
function membership(left: Node, items: readonly Node[], slots: SlotFinder): Predicate {
  const column = readColumn(left)
  if (!column) return { op: 'or', parts: items.map((item) => equality(left, item, slots)) }
  const values: Value[] = []
  for (const item of items) {
    const value = readValue(item, slots)
    if (!value) return { op: 'or', parts: items.map((each) => equality(left, each, slots)) }
    if (value.kind !== 'null') values.push(value)
  }
  return values.length === 0 ? never : { op: 'equal', column, values }
}

function inList(expression: A_Expr, slots: SlotFinder): Predicate {
  const { lexpr, rexpr } = expression
  if (operatorName(expression) !== '=' || !lexpr || !rexpr || !('List' in rexpr)) return unknown
  return membership(lexpr, rexpr.List.items ?? [], slots)
}

/** = ANY (ARRAY[…]::type[]): each element takes the cast. */
function castArray(left: Node, right: Node, slots: SlotFinder): Predicate | undefined {
  if (!('TypeCast' in right)) return undefined
  const { arg, typeName } = right.TypeCast
  if (!arg || !('A_ArrayExpr' in arg) || !typeName) return undefined
  const { arrayBounds: _, ...element } = typeName
  const items = (arg.A_ArrayExpr.elements ?? []).map(
    (item): Node => ({ TypeCast: { arg: item, typeName: element } }),
  )
  return membership(left, items, slots)
}

function anyOf(expression: A_Expr, slots: SlotFinder): Predicate {
  const { lexpr, rexpr } = expression
  if (operatorName(expression) !== '=' || !lexpr || !rexpr) return unknown
  if ('A_ArrayExpr' in rexpr) {
    return membership(lexpr, rexpr.A_ArrayExpr.elements ?? [], slots)
  }
  const cast = castArray(lexpr, rexpr, slots)
  if (cast) return cast
  const column = readColumn(lexpr)
  const array = readValue(rexpr, slots)
  if (!column || !array) return unknown
  return array.kind === 'null' ? never : { op: 'any', column, array }
}

function notDistinct(expression: A_Expr, slots: SlotFinder): Predicate {
  const { lexpr, rexpr } = expression
  const column = readColumn(lexpr) ?? readColumn(rexpr)
  const value = readValue(readColumn(lexpr) ? rexpr : lexpr, slots)
  if (!column || !value) return unknown
  return value.kind === 'null' ? { op: 'null', column } : { op: 'identical', column, value }
}

function between(expression: A_Expr, slots: SlotFinder): Predicate {
  const { lexpr, rexpr } = expression
  const column = readColumn(lexpr)
  if (!column || !rexpr || !('List' in rexpr)) return unknown
  const [low, high] = (rexpr.List.items ?? []).map((item) => readValue(item, slots))
  if (!low || !high) return unknown
  if (low.kind === 'null' || high.kind === 'null') return never
  return { op: 'range', column, low, high, inclusive: true }
}

function expressionPredicate(expression: A_Expr, slots: SlotFinder): Predicate {
  switch (expression.kind) {
    case 'AEXPR_OP':
      return operation(expression, slots)
    case 'AEXPR_IN':
      return inList(expression, slots)
    case 'AEXPR_OP_ANY':
      return anyOf(expression, slots)
    case 'AEXPR_NOT_DISTINCT':
      return notDistinct(expression, slots)
    case 'AEXPR_BETWEEN':
      return between(expression, slots)
    default:
      return unknown
  }
}

function nullTest(node: NullTest): Predicate {
  const column = readColumn(node.arg)
  return column && node.nulltesttype === 'IS_NULL' ? { op: 'null', column } : unknown
}

function boolean(node: BoolExpr, slots: SlotFinder): Predicate {
  if (node.boolop === 'NOT_EXPR') return unknown
  const parts = (node.args ?? []).map((arg) => readPredicate(arg, slots))
  return { op: node.boolop === 'AND_EXPR' ? 'and' : 'or', parts }
}

/** The rows of col IN (VALUES …) or col = ANY (VALUES …). */
function listedRows({ subLinkType, operName, subselect }: SubLink): readonly Node[] | undefined {
  const names = (operName ?? []).map((name) => stringOf(name) ?? '')
  const isEqual = names.length === 0 || (names.length === 1 && names[0] === '=')
  if (subLinkType !== 'ANY_SUBLINK' || !isEqual) return undefined
  if (!subselect || !('SelectStmt' in subselect) || !isBare(subselect.SelectStmt)) return undefined
  return subselect.SelectStmt.valuesLists
}

function onlyItem(row: Node, slots: SlotFinder): Value | undefined {
  const [item, ...others] = 'List' in row ? (row.List.items ?? []) : []
  return others.length === 0 ? settled(item, slots) : undefined
}

/** One literal with a fraction makes all of them numeric, with which integers are compared by value all the same. */
function inValues(link: SubLink, slots: SlotFinder): Predicate {
  const column = readColumn(link.testexpr)
  const rows = listedRows(link)
  if (!column || !rows) return unknown
  const values: Value[] = []
  for (const row of rows) {
    const value = onlyItem(row, slots)
    if (!value) return unknown
    if (value.kind !== 'null') values.push(value)
  }
  return values.length === 0 ? never : { op: 'equal', column, values }
}

function isFalse({ boolval, isnull }: A_Const): boolean {
  return isnull === true || (boolval !== undefined && !boolval.boolval)
}

export function readPredicate(node: Node, slots: SlotFinder): Predicate {
  if ('A_Expr' in node) return expressionPredicate(node.A_Expr, slots)
  if ('BoolExpr' in node) return boolean(node.BoolExpr, slots)
  if ('NullTest' in node) return nullTest(node.NullTest)
  if ('SubLink' in node) return inValues(node.SubLink, slots)
  if ('BooleanTest' in node && node.BooleanTest.booltesttype === 'IS_TRUE') {
    return node.BooleanTest.arg ? readPredicate(node.BooleanTest.arg, slots) : unknown
  }
  return 'A_Const' in node && isFalse(node.A_Const) ? never : unknown
}
