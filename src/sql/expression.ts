/** What an expression is made of, as far as its type and its equality with another can be told from the text. */
import { aggregateBuiltins } from './builtin-functions.js'
import type { FuncCall, Node, TypeName } from './parse.js'
import { readColumn } from './predicate.js'
import type { Contents, Expression } from './select.js'
import { stringsOf, tagOf, walkTree } from './tree.js'

const other: Expression = { kind: 'other' }
const truth: Expression = { kind: 'boolean' }

const booleanTags = new Set(['BoolExpr', 'NullTest', 'BooleanTest'])
const comparisons = new Set(['=', '<>', '!=', '<', '>', '<=', '>=', '~~', '!~~', '~~*', '!~~*'])

/** The last name of a type, with [] for an array; undefined for what a schema of a user may hold. */
function typeNameOf(type: TypeName | undefined): string | undefined {
  const names = stringsOf(type?.names)
  if (!type || type.setof || (names.length > 1 && names[0] !== 'pg_catalog')) return undefined
  return `${names.at(-1) ?? ''}${type.arrayBounds ? '[]' : ''}`
}

function readOperation(body: Record<string, unknown>): Expression {
  const name = stringsOf(body['name'] as Node[]).at(-1) ?? ''
  if (body['kind'] === 'AEXPR_NULLIF') {
    return { kind: 'choice', args: [readExpression(body['lexpr'] as Node)] }
  }
  if (body['kind'] !== undefined && body['kind'] !== 'AEXPR_OP') return truth
  if (comparisons.has(name)) return truth
  const args = [body['lexpr'], body['rexpr']].filter((one) => one !== undefined) as Node[]
  return { kind: 'operator', name, args: args.map(readExpression) }
}

function readCase(body: { args?: Node[]; defresult?: Node }): Expression {
  const results = (body.args ?? []).map((one) =>
    'CaseWhen' in one ? one.CaseWhen.result : undefined,
  )
  return { kind: 'choice', args: [...results, body.defresult].flatMap(readPresent) }
}

const readPresent = (node: Node | undefined): Expression[] => (node ? [readExpression(node)] : [])

function readConstant(body: Record<string, unknown>): Expression {
  if (body['isnull']) return { kind: 'open' }
  if (body['boolval'] !== undefined) return { kind: 'constant', literal: 'boolean' }
  if (body['ival'] !== undefined) return { kind: 'constant', literal: 'integer' }
  if (body['fval'] !== undefined) return { kind: 'constant', literal: 'number' }
  return body['sval'] === undefined ? other : { kind: 'constant', literal: 'string' }
}

function readCall(call: FuncCall): Expression {
  const path = stringsOf(call.funcname)
  if (call.over || (path.length > 1 && path[0] !== 'pg_catalog')) return other
  return { kind: 'call', name: path.at(-1) ?? '', args: (call.args ?? []).map(readExpression) }
}

interface Tagged {
  readonly arg?: Node
  readonly args?: Node[]
  readonly typeName?: TypeName
  readonly collname?: Node[]
}

export function readExpression(node: Node): Expression {
  const column = readColumn(node)
  if (column) return { kind: 'column', use: column }
  const [tag, body] = tagOf(node)
  if (booleanTags.has(tag)) return truth
  const fields = body as Tagged
  switch (tag) {
    case 'A_Const':
      return readConstant(body as Record<string, unknown>)
    case 'ParamRef':
      return { kind: 'open' }
    case 'TypeCast': {
      const type = typeNameOf(fields.typeName)
      if (type === undefined || !fields.arg) return other
      return { kind: 'cast', type, arg: readExpression(fields.arg) }
    }
    case 'CollateClause': {
      const collation = stringsOf(fields.collname).at(-1) ?? ''
      return fields.arg ? { kind: 'collate', collation, arg: readExpression(fields.arg) } : other
    }
    case 'FuncCall':
      return readCall(body as FuncCall)
    case 'A_Expr':
      return readOperation(body as Record<string, unknown>)
    case 'CaseExpr':
      return readCase(body as { args?: Node[]; defresult?: Node })
    case 'CoalesceExpr':
    case 'MinMaxExpr':
      return { kind: 'choice', args: (fields.args ?? []).map(readExpression) }
    default:
      return other
  }
}

const isAggregate = (call: FuncCall): boolean =>
  call.agg_star === true ||
  call.agg_distinct === true ||
  call.agg_filter !== undefined ||
  call.agg_order !== undefined ||
  aggregateBuiltins.has(stringsOf(call.funcname).at(-1) ?? '')

/** What stands anywhere beneath a node, subqueries left out. */
export function contentsOf(node: unknown): Contents {
  const found = {
    hasLiterals: false,
    hasAggregate: false,
    hasWindow: false,
    hasSubquery: false,
    hasColumns: false,
  }
  walkTree(node, (tag, body) => {
    if (tag === 'SubLink') found.hasSubquery = true
    else if (tag === 'A_Const') found.hasLiterals = true
    else if (tag === 'ColumnRef') found.hasColumns = true
    else if (tag === 'JsonObjectAgg' || tag === 'JsonArrayAgg') found.hasAggregate = true
    else if (tag === 'FuncCall' && (body as FuncCall).over) found.hasWindow = true
    else if (tag === 'FuncCall' && isAggregate(body as FuncCall)) found.hasAggregate = true
    return tag !== 'SubLink'
  })
  return found
}

/** The tree without its places, to compare expressions. */
export const keyOf = (node: Node): string =>
  JSON.stringify(node, (name, value) => (name === 'location' ? undefined : value))

/** A name and how much it is worth: one of a cast or CASE (1) gives way to a better one inside (2). */
type Figured = readonly [name: string, strength: 0 | 1 | 2]

const nameless: Figured = ['?column?', 0]

const tagNames: Record<string, string> = {
  CoalesceExpr: 'coalesce',
  A_ArrayExpr: 'array',
  RowExpr: 'row',
  GroupingFunc: 'grouping',
}

/** Tags that PostgreSQL has no name for. */
const withoutName = new Set(['A_Const', 'A_Expr', 'ParamRef', ...booleanTags])

interface Named extends Tagged {
  readonly fields?: Node[]
  readonly funcname?: Node[]
  readonly op?: string
  readonly kind?: string
  readonly defresult?: Node
}

/** `name`, unless the part has a better one. */
function unlessNamed(part: Node | undefined, name: string): Figured | undefined {
  const inner = part ? figure(part) : nameless
  return inner && inner[1] < 2 ? [name, 1] : inner
}

function figureFields(tag: string, fields: Named): Figured | undefined {
  switch (tag) {
    case 'ColumnRef':
      return [stringsOf(fields.fields).at(-1) ?? '', 2]
    case 'FuncCall':
      return [stringsOf(fields.funcname).at(-1) ?? '', 2]
    case 'MinMaxExpr':
      return [fields.op === 'IS_LEAST' ? 'least' : 'greatest', 2]
    case 'CollateClause':
      return fields.arg && figure(fields.arg)
    case 'TypeCast':
      return unlessNamed(fields.arg, stringsOf(fields.typeName?.names).at(-1) ?? '')
    case 'CaseExpr':
      return unlessNamed(fields.defresult, 'case')
    default:
      return undefined
  }
}

/** @see FigureColnameInternal in PostgreSQL's parse_target.c */
function figure(node: Node): Figured | undefined {
  const [tag, body] = tagOf(node)
  const fields = body as Named
  if (fields.kind === 'AEXPR_NULLIF') return ['nullif', 2]
  const name = tagNames[tag]
  if (name !== undefined) return [name, 2]
  return withoutName.has(tag) ? nameless : figureFields(tag, fields)
}

/** The name that PostgreSQL gives to an output column without an alias; undefined where we do not know it. */
export const outputName = (node: Node): string | undefined => figure(node)?.[0]
