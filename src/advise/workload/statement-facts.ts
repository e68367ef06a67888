/**
 * What the workload says of columns: which are compared with constants, which with each other, which are written. Read from
 * the trees of pgsql-ast-parser. It proposes only: where a statement goes is the router's word.
 */
import {
  type Expr,
  type From,
  parse,
  type SelectStatement,
  type SetStatement,
  type Statement,
  type WithStatementBinding,
} from 'pgsql-ast-parser'
import type { Catalog, CatalogColumn, CatalogRelation } from '../../catalog/catalog.js'

/** A column of a table of users. */
export interface ColumnOf {
  readonly table: CatalogRelation
  readonly column: string
}

export interface StatementFacts {
  /** Columns that are compared with a constant or parameter by equality, IN or ANY. */
  readonly pinned: readonly ColumnOf[]
  /** Columns that INSERT gives values: any of them would keep the row on one shard. */
  readonly inserted: readonly ColumnOf[]
  /** Pairs that are compared with each other by equality. */
  readonly joined: readonly (readonly [ColumnOf, ColumnOf])[]
  /** Columns that UPDATE assigns. */
  readonly changed: readonly ColumnOf[]
  readonly reads: readonly CatalogRelation[]
  readonly writes: readonly CatalogRelation[]
  /** Types (oids) of $1, $2, … as far as the columns beside them tell. */
  readonly parameterTypes: ReadonlyMap<number, number>
}

interface Scope {
  readonly tables: { readonly alias: string; readonly table: CatalogRelation }[]
  readonly outer: Scope | undefined
}

const lists = new Set(['=', 'IN'])
const comparisons = new Set(['=', '!=', '<', '<=', '>', '>=', 'IN', 'NOT IN', 'LIKE', 'ILIKE'])
const int8 = 20

class FactReader {
  readonly pinned: ColumnOf[] = []
  readonly inserted: ColumnOf[] = []
  readonly joined: (readonly [ColumnOf, ColumnOf])[] = []
  readonly changed: ColumnOf[] = []
  readonly reads = new Set<CatalogRelation>()
  readonly writes = new Set<CatalogRelation>()
  readonly parameterTypes = new Map<number, number>()
  readonly #catalog: Catalog
  readonly #searchPath: readonly string[]
  readonly #temporary = new Set<string>()

  constructor(catalog: Catalog, searchPath: readonly string[]) {
    this.#catalog = catalog
    this.#searchPath = searchPath
  }

  statement(statement: Statement | WithStatementBinding, outer?: Scope): void {
    switch (statement.type) {
      case 'insert':
        return this.#insert(statement, outer)
      case 'update':
        return this.#update(statement, outer)
      case 'delete': {
        const scope = this.#scope(outer)
        this.#target(statement.from, scope)
        return this.#condition(statement.where, scope)
      }
      case 'select':
      case 'union':
      case 'union all':
      case 'values':
      case 'with':
      case 'with recursive':
        return this.#query(statement, outer)
      default:
    }
  }

  #update(update: Extract<Statement, { type: 'update' }>, outer: Scope | undefined): void {
    const scope = this.#scope(outer)
    const table = this.#target(update.table, scope)
    if (update.from) this.#from([update.from], scope)
    this.#sets(update.sets, table, scope)
    this.#condition(update.where, scope)
  }

  #sets(sets: readonly SetStatement[], table: CatalogRelation | undefined, scope: Scope): void {
    for (const { column, value } of sets) {
      const written = table && { table, column: column.name }
      if (written) this.changed.push(written)
      this.#typed(value, written)
      this.#expression(value, scope)
    }
  }

  #scope(outer: Scope | undefined): Scope {
    return { tables: [], outer }
  }

  #find(name: { schema?: string; name: string }): CatalogRelation | undefined {
    if (name.schema === undefined && this.#temporary.has(name.name)) return undefined
    const found = this.#catalog.find(name.schema, name.name, this.#searchPath)
    return found && this.#catalog.rootOf(found)
  }

  #target(
    name: { schema?: string; name: string; alias?: string },
    scope: Scope,
  ): CatalogRelation | undefined {
    const table = this.#find(name)
    if (!table) return undefined
    this.writes.add(table)
    scope.tables.push({ alias: name.alias ?? name.name, table })
    return table
  }

  #query(query: SelectStatement | WithStatementBinding, outer: Scope | undefined): void {
    switch (query.type) {
      case 'with':
        for (const { alias } of query.bind) this.#temporary.add(alias.name)
        for (const { statement } of query.bind) this.statement(statement, outer)
        return this.statement(query.in, outer)
      case 'with recursive':
        this.#temporary.add(query.alias.name)
        this.#query(query.bind, outer)
        return this.statement(query.in, outer)
      case 'union':
      case 'union all':
        this.#query(query.left, outer)
        return this.#query(query.right, outer)
      case 'values':
        for (const row of query.values)
          for (const value of row) this.#expression(value, this.#scope(outer))
        return
      case 'select':
        return this.#select(query, outer)
      default:
        return this.statement(query, outer)
    }
  }

  #select(query: Extract<SelectStatement, { type: 'select' }>, outer: Scope | undefined): void {
    const scope = this.#scope(outer)
    this.#from(query.from ?? [], scope)
    this.#condition(query.where, scope)
    const others = [
      ...(query.columns ?? []).map(({ expr }) => expr),
      ...(query.groupBy ?? []),
      ...(query.orderBy ?? []).map(({ by }) => by),
    ]
    for (const one of others) this.#expression(one, scope)
    this.#condition(query.having, scope)
    for (const bound of [query.limit?.limit, query.limit?.offset]) {
      if (bound?.type === 'parameter') this.#parameter(bound.name, int8)
    }
  }

  #from(list: readonly From[], scope: Scope): void {
    for (const from of list) {
      const before = [...scope.tables]
      if (from.type === 'table') {
        const table = this.#find(from.name)
        if (table) {
          this.reads.add(table)
          scope.tables.push({ alias: from.name.alias ?? from.name.name, table })
        }
      } else if (from.type === 'statement') {
        this.#query(from.statement, scope)
      }
      this.#condition(from.join?.on, scope)
      for (const { name } of from.join?.using ?? []) this.#using(name, before, scope)
    }
  }

  #using(column: string, before: Scope['tables'], scope: Scope): void {
    const right = scope.tables.at(-1)?.table
    const left = before.find(({ table }) => table.columns.some(({ name }) => name === column))
    if (left && right)
      this.joined.push([
        { table: left.table, column },
        { table: right, column },
      ])
  }

  #insert(insert: Extract<Statement, { type: 'insert' }>, outer: Scope | undefined): void {
    const scope = this.#scope(outer)
    const table = this.#target(insert.into, scope)
    const names = insert.columns?.map(({ name }) => name) ?? table?.columns.map(({ name }) => name)
    const columns = table ? (names ?? []).map((column) => ({ table, column })) : []
    if (insert.insert.type === 'values') {
      this.#rows(insert.insert.values, columns)
      this.inserted.push(...columns)
    }
    this.#query(insert.insert, outer)
    const conflict = insert.onConflict?.do
    if (typeof conflict === 'object') this.#sets(conflict.sets, table, scope)
  }

  #rows(rows: readonly (readonly Expr[])[], columns: readonly ColumnOf[]): void {
    for (const row of rows) {
      for (const [index, value] of row.entries()) this.#typed(value, columns[index])
    }
  }

  #condition(expression: Expr | null | undefined, scope: Scope): void {
    if (!expression) return
    if (expression.type !== 'binary') return this.#expression(expression, scope)
    const { left, right, op } = expression
    if (op === 'AND') {
      this.#condition(left, scope)
      return this.#condition(right, scope)
    }
    if (comparisons.has(op)) this.#comparison(left, right, op, scope)
    this.#expression(left, scope)
    this.#expression(right, scope)
  }

  #comparison(left: Expr, right: Expr, op: string, scope: Scope): void {
    if (op === '=' && left.type === 'list' && right.type === 'list') {
      left.expressions.forEach((one, index) => {
        const other = right.expressions[index]
        if (other) this.#comparison(one, other, '=', scope)
      })
      return
    }
    const [a, b] = [this.#columnOf(left, scope), this.#columnOf(right, scope)]
    if (a && b) {
      if (op === '=') this.joined.push([a, b])
      return
    }
    const column = a ?? b
    const other = a ? right : left
    if (!column) return
    this.#typed(other, column)
    if (lists.has(op) && isKnown(other)) this.pinned.push(column)
    const selected = op === 'IN' && other.type === 'select' ? other : undefined
    if (selected) this.#semiJoin(column, selected, scope)
  }

  /** `a IN (SELECT b …)` compares a with b. */
  #semiJoin(
    column: ColumnOf,
    query: Extract<SelectStatement, { type: 'select' }>,
    scope: Scope,
  ): void {
    const own = this.#scope(scope)
    for (const from of query.from ?? []) {
      const table = from.type === 'table' ? this.#find(from.name) : undefined
      if (table && from.type === 'table')
        own.tables.push({ alias: from.name.alias ?? from.name.name, table })
    }
    const first = query.columns?.[0]?.expr
    const inner = first && this.#columnOf(first, own)
    if (inner) this.joined.push([column, inner])
  }

  #columnOf(expression: Expr, scope: Scope): ColumnOf | undefined {
    if (expression.type === 'cast') return this.#columnOf(expression.operand, scope)
    if (expression.type !== 'ref' || expression.name === '*') return undefined
    return this.#column(expression.table?.name, expression.name, scope)
  }

  #column(alias: string | undefined, column: string, scope: Scope): ColumnOf | undefined {
    const has = ({ table }: { table: CatalogRelation }) =>
      table.columns.some(({ name }) => name === column)
    for (let at: Scope | undefined = scope; at; at = at.outer) {
      const fits = at.tables.filter(
        (one) => (alias === undefined || one.alias === alias) && has(one),
      )
      if (fits.length === 1) return { table: fits[0]!.table, column }
      if (fits.length > 1) return undefined
    }
    return undefined
  }

  /** A parameter beside a column has its type. */
  #typed(expression: Expr, column: ColumnOf | undefined): void {
    if (!column) return
    const type = typeOf(column)
    if (type === undefined) return
    for (const one of parametersOf(expression)) this.#parameter(one, type)
  }

  #parameter(name: string, type: number): void {
    const number = Number(name.slice(1))
    if (number > 0 && !this.parameterTypes.has(number)) this.parameterTypes.set(number, type)
  }

  /** Queries inside an expression, and what conditions stand in it. */
  #expression(expression: Expr, scope: Scope): void {
    switch (expression.type) {
      case 'select':
      case 'union':
      case 'union all':
      case 'values':
      case 'with':
      case 'with recursive':
        return this.#query(expression, scope)
      case 'ternary': {
        const column = this.#columnOf(expression.value, scope)
        this.#typed(expression.lo, column)
        return this.#typed(expression.hi, column)
      }
      case 'binary':
        if (comparisons.has(expression.op)) {
          this.#typed(expression.right, this.#columnOf(expression.left, scope))
        }
        break
      default:
    }
    for (const inner of partsOf(expression)) this.#expression(inner, scope)
  }
}

const typeOf = ({ table, column }: ColumnOf): number | undefined =>
  table.columns.find(({ name }: CatalogColumn) => name === column)?.type

const isNode = (value: unknown): value is Expr =>
  typeof value === 'object' &&
  value !== null &&
  typeof (value as { type?: unknown }).type === 'string'

/** The expressions directly inside one. */
function partsOf(expression: Expr): Expr[] {
  return Object.values(expression).flatMap((value: unknown): Expr[] => {
    if (isNode(value)) return [value]
    return Array.isArray(value) ? value.filter(isNode) : []
  })
}

/** Parameters that stand for the whole value, or for members of a list of values. */
function parametersOf(expression: Expr): string[] {
  if (expression.type === 'parameter') return [expression.name]
  if (expression.type === 'list') return expression.expressions.flatMap(parametersOf)
  return []
}

const constants = new Set(['parameter', 'integer', 'numeric', 'string', 'boolean', 'constant'])

/** A value, a list of values or ANY of a value. */
function isKnown(expression: Expr): boolean {
  if (constants.has(expression.type)) return true
  if (expression.type === 'cast') return isKnown(expression.operand)
  if (expression.type === 'unary') return expression.op === '-' && isKnown(expression.operand)
  if (expression.type === 'list' || expression.type === 'array')
    return expression.expressions.every(isKnown)
  if (expression.type !== 'call') return false
  const [first] = expression.args
  return expression.function.name === 'any' && first !== undefined && isKnown(first)
}

/** Undefined where pgsql-ast-parser does not read the text. */
export function readFacts(
  sql: string,
  catalog: Catalog,
  searchPath: readonly string[],
): StatementFacts | undefined {
  const statements = parsed(sql)
  if (!statements) return undefined
  const reader = new FactReader(catalog, searchPath)
  for (const statement of statements) reader.statement(statement)
  const { pinned, inserted, joined, changed, parameterTypes } = reader
  const [reads, writes] = [[...reader.reads], [...reader.writes]]
  return { pinned, inserted, joined, changed, reads, writes, parameterTypes }
}

function parsed(sql: string): Statement[] | undefined {
  try {
    return parse(sql)
  } catch {
    return undefined
  }
}
