/** Reads the shape of a SELECT from its tree and its tokens; see select.ts. Undefined where the two do not fit together. */
import { type ClauseTokens, clauseTokens, type StatementTokens } from './clause-tokens.js'
import { contentsOf, keyOf, outputName, readExpression } from './expression.js'
import { TokenKind } from './lexer.js'
import type { FuncCall, Node, SelectStmt } from './parse.js'
import { readValue, type SlotFinder } from './predicate.js'
import type {
  AggregateFacts,
  ItemFacts,
  LimitValue,
  SelectFacts,
  SortFacts,
  Span,
  TargetFacts,
} from './select.js'
import { stringsOf } from './tree.js'

interface Reader {
  readonly slots: SlotFinder
}

function itemOf(node: Node, span: Span, { slots }: Reader): ItemFacts {
  const expression = readExpression(node)
  const constant = 'A_Const' in node && node.A_Const.ival !== undefined
  const bare = expression.kind === 'column' && expression.use.table === undefined
  return {
    span,
    expression,
    contents: contentsOf({ node }),
    key: keyOf(node),
    ...(constant ? { ordinal: slots.slotAt(node.A_Const.location) } : {}),
    ...(bare ? { bareName: expression.use.column } : {}),
  }
}

function starOf(node: Node): { table?: string } | undefined {
  if (!('ColumnRef' in node)) return undefined
  const fields = node.ColumnRef.fields ?? []
  const last = fields.at(-1)
  if (!last || !('A_Star' in last)) return undefined
  const names = stringsOf(fields.slice(0, -1))
  return names.length === 0 ? {} : { table: names.at(-1)! }
}

/** Where the brackets of a call stand, and what is behind them. */
function bracketsOf(span: Span, { sql, tokens }: Source): { inside: Span; tail: Span } | undefined {
  const symbol = (at: number): string => sql.slice(tokens.starts[at], tokens.ends[at])
  let open = span.first
  while (open < span.last && symbol(open) !== '(') open++
  let depth = 0
  for (let at = open; at < span.last; at++) {
    if (tokens.kinds[at] !== TokenKind.symbol) continue
    if (symbol(at) === '(') depth++
    if (symbol(at) !== ')' || --depth > 0) continue
    const first = symbol(open + 1).toLowerCase() === 'all' ? open + 2 : open + 1
    return { inside: { first, last: at }, tail: { first: at + 1, last: span.last } }
  }
  return undefined
}

function aggregateOf(
  node: Node,
  { contents, span }: ItemFacts,
  source: Source,
): AggregateFacts | undefined {
  if (!contents.hasAggregate || !('FuncCall' in node)) return undefined
  const call: FuncCall = node.FuncCall
  const path = stringsOf(call.funcname)
  const [argument, second] = call.args ?? []
  if (call.over || call.agg_distinct || call.agg_order || call.func_variadic || second)
    return undefined
  if (path.length > 1 && path[0] !== 'pg_catalog') return undefined
  if (contentsOf({ list: call.args, filter: call.agg_filter }).hasAggregate) return undefined
  const name = path.at(-1) ?? ''
  const brackets = bracketsOf(span, source)
  if (!brackets) return undefined
  return { name, ...brackets, ...(argument ? { argument: readExpression(argument) } : {}) }
}

const isWord = (sql: string, list: StatementTokens, at: number, word: string): boolean =>
  sql.slice(list.starts[at], list.ends[at]).toLowerCase() === word

function targetOf(node: Node, span: Span, source: Source): TargetFacts | undefined {
  const target = 'ResTarget' in node ? node.ResTarget : undefined
  if (!target?.val) return undefined
  let { last } = span
  if (target.name !== undefined) {
    last--
    if (isWord(source.sql, source.tokens, last - 1, 'as')) last--
  }
  const own = { first: span.first, last }
  const item = itemOf(target.val, own, source)
  const star = starOf(target.val)
  const aggregate = aggregateOf(target.val, item, source)
  return {
    span: own,
    name: target.name ?? outputName(target.val),
    item,
    ...(star ? { star } : {}),
    ...(aggregate ? { aggregate } : {}),
  }
}

interface SortBy {
  readonly node?: Node
  readonly sortby_dir?: string
  readonly sortby_nulls?: string
  readonly useOp?: Node[]
}

/** Tokens behind the expression of a key: NULLS FIRST, ASC, USING <. */
function tailOf(by: SortBy): number {
  const nulls = (by.sortby_nulls ?? 'SORTBY_NULLS_DEFAULT') === 'SORTBY_NULLS_DEFAULT' ? 0 : 2
  const direction = by.sortby_dir ?? 'SORTBY_DEFAULT'
  if (direction === 'SORTBY_USING') return nulls + 2
  return nulls + (direction === 'SORTBY_DEFAULT' ? 0 : 1)
}

function directionOf(by: SortBy): boolean | undefined {
  if (by.sortby_dir !== 'SORTBY_USING') return by.sortby_dir === 'SORTBY_DESC'
  const [name, schema] = stringsOf(by.useOp)
  if (schema !== undefined) return undefined
  return name === '<' || name === '>' ? name === '>' : undefined
}

function sortOf(node: Node, span: Span, source: Source): SortFacts | undefined {
  const by = (node as { SortBy?: SortBy }).SortBy
  if (!by?.node) return undefined
  const descending = directionOf(by)
  if (descending === undefined) return undefined
  const own = { first: span.first, last: span.last - tailOf(by) }
  if (own.last <= own.first) return undefined
  const nullsFirst =
    by.sortby_nulls === 'SORTBY_NULLS_FIRST' ||
    (descending && by.sortby_nulls !== 'SORTBY_NULLS_LAST')
  return { ...itemOf(by.node, own, source), descending, nullsFirst }
}

interface Source extends Reader {
  readonly sql: string
  readonly tokens: StatementTokens
}

/** Each node with its tokens; undefined when there are not as many of both. */
function paired<T>(
  nodes: readonly Node[] | undefined,
  spans: readonly Span[],
  read: (node: Node, span: Span) => T | undefined,
): T[] | undefined {
  if ((nodes ?? []).length !== spans.length) return undefined
  const made: T[] = []
  for (const [index, node] of (nodes ?? []).entries()) {
    const one = read(node, spans[index]!)
    if (one === undefined) return undefined
    made.push(one)
  }
  return made
}

/** FETCH FIRST ROW has a number that nobody wrote. */
const unwritten = (node: Node): boolean => 'A_Const' in node && node.A_Const.location === -1

function limitOf(node: Node | undefined, source: Source): LimitValue | undefined {
  if (!node) return undefined
  if (unwritten(node)) return 'one'
  return readValue(node, source.slots) ?? 'unknown'
}

const noSpan: Span = { first: 0, last: 0 }

/** PARTITION BY of the window functions among the output columns and sort keys. */
function partitionsOf(select: SelectStmt, source: Source): (readonly ItemFacts[] | undefined)[] {
  const found: (readonly ItemFacts[] | undefined)[] = []
  const visit = (value: unknown): void => {
    if (value === null || typeof value !== 'object') return
    const { over } = value as {
      over?: { partitionClause?: Node[]; name?: string; refname?: string }
    }
    if (over) {
      const named = over.name !== undefined || over.refname !== undefined
      const nodes = named ? undefined : over.partitionClause
      found.push(nodes?.map((node) => itemOf(node, noSpan, source)))
    }
    for (const inner of Object.values(value)) visit(inner)
  }
  visit(select.targetList)
  visit(select.sortClause)
  return found
}

interface Lists {
  readonly targets: readonly TargetFacts[]
  readonly sort: readonly SortFacts[]
  readonly group: readonly ItemFacts[]
  readonly on: readonly ItemFacts[]
}

function listsOf(select: SelectStmt, clauses: ClauseTokens, source: Source): Lists | undefined {
  const item = (node: Node, span: Span): ItemFacts => itemOf(node, span, source)
  const targets = paired(select.targetList, clauses.targets, (node, span) =>
    targetOf(node, span, source),
  )
  const sort = paired(select.sortClause, clauses.sort, (node, span) => sortOf(node, span, source))
  const group = paired(select.groupClause, clauses.group, (node, span) =>
    'GroupingSet' in node ? undefined : item(node, span),
  )
  const isOn = clauses.distinctOn.length > 0
  const on = paired(isOn ? select.distinctClause : [], clauses.distinctOn, item)
  if (!targets || targets.length === 0 || !sort || !group || !on) return undefined
  return { targets, sort, group, on }
}

const isOneSelect = (select: SelectStmt): boolean =>
  (select.op ?? 'SETOP_NONE') === 'SETOP_NONE' &&
  !select.valuesLists &&
  !select.intoClause &&
  !select.groupDistinct

function distinctOf(select: SelectStmt, { on }: Lists): SelectFacts['distinct'] {
  if (!select.distinctClause) return undefined
  return on.length > 0 ? on : 'all'
}

/** Of one SELECT without set operations; `tokens` are those of the statement. */
export function readSelectFacts(
  select: SelectStmt,
  sql: string,
  tokens: StatementTokens,
  slots: SlotFinder,
): SelectFacts | undefined {
  const clauses = isOneSelect(select) ? clauseTokens(sql, tokens) : undefined
  const source: Source = { sql, tokens, slots }
  const lists = clauses && listsOf(select, clauses, source)
  if (!lists) return undefined
  const limit = limitOf(select.limitCount, source)
  const offset = limitOf(select.limitOffset, source)
  const distinct = distinctOf(select, lists)
  const aggregated = { t: select.targetList, s: select.sortClause, h: select.havingClause }
  return {
    targets: lists.targets,
    ...(distinct ? { distinct } : {}),
    ...(lists.group.length > 0 ? { group: lists.group } : {}),
    sort: lists.sort,
    ...(clauses.limits ? { limitSpan: clauses.limits } : {}),
    targetsEnd: clauses.targetsEnd,
    ...(clauses.sortSpan ? { sortSpan: clauses.sortSpan } : {}),
    sortEnd: clauses.sortEnd,
    count: clauses.count,
    ...(limit === undefined ? {} : { limit }),
    ...(offset === undefined ? {} : { offset }),
    withTies: select.limitOption === 'LIMIT_OPTION_WITH_TIES',
    hasAggregate: contentsOf(aggregated).hasAggregate,
    hasHaving: select.havingClause !== undefined,
    partitions: partitionsOf(select, source),
  }
}
