/**
 * A schema as SQL text (pg_dump --schema-only, or migrations put together) → the catalogue that the router is asked with.
 * Read by PostgreSQL's own parser, because a column misread here would be a statement judged wrongly.
 */
import type { Catalog } from '../../catalog/catalog.js'
import { engineError } from '../../errors/engine-error.js'
import {
  type CreateDomainStmt,
  type CreateFunctionStmt,
  type CreateTableAsStmt,
  isSyntaxError,
  loadParser,
  type Node,
  parseStatements,
  type RangeVar,
  type VariableSetStmt,
  type ViewStmt,
} from '../../sql/parse.js'
import { splitStatements } from '../../sql/template.js'
import { tagOf } from '../../sql/tree.js'
import { columnType } from './column-types.js'
import {
  readAlterTable,
  readCreateTable,
  readIndex,
  type StatementText,
  tableName,
} from './read-table.js'
import { SchemaBuilder, type TableName } from './schema-builder.js'

export interface ReadSchema {
  readonly catalog: Catalog
  /** Statements that PostgreSQL's parser rejects. */
  readonly unread: readonly { readonly line: number; readonly message: string }[]
}

/** Without the data of COPY and psql's own commands; lines keep their numbers. */
export function withoutData(text: string): string {
  let inData = false
  const lines = text.split('\n').map((line) => {
    if (inData) {
      if (line.trimEnd() === '\\.') inData = false
      return ''
    }
    if (/^COPY\b.*\bFROM\s+stdin\b.*;\s*$/i.test(line)) {
      inData = true
      return ''
    }
    return line.startsWith('\\') ? '' : line
  })
  return lines.join('\n')
}

const lastName = (nodes: readonly Node[] | undefined): string[] =>
  (nodes ?? []).flatMap((node) => ('String' in node ? (node.String.sval ?? '') : []))

const volatilities = ['immutable', 'stable', 'volatile'] as const

function readFunction(made: CreateFunctionStmt, builder: SchemaBuilder): void {
  const path = lastName(made.funcname)
  const written = (made.options ?? []).flatMap((node) => {
    const option = 'DefElem' in node ? node.DefElem : undefined
    const value = option?.arg && 'String' in option.arg ? option.arg.String.sval : undefined
    return option?.defname === 'volatility' && value !== undefined ? [value] : []
  })
  builder.functions.push({
    schema: path.length > 1 ? path[0]! : builder.currentSchema,
    name: path.at(-1) ?? '',
    volatility: volatilities.find((name) => name === written[0]) ?? 'volatile',
  })
}

/** Every table that a query names. */
function tablesIn(tree: unknown, builder: SchemaBuilder): TableName[] {
  if (tree === null || typeof tree !== 'object') return []
  return Object.entries(tree).flatMap(([key, value]) =>
    key === 'RangeVar' ? [tableName(value, builder)] : tablesIn(value, builder),
  )
}

type Reader = (body: never, builder: SchemaBuilder, text: StatementText) => void

function readView(view: ViewStmt, builder: SchemaBuilder): void {
  const made = builder.make(tableName(view.view, builder), 'view')
  made.reads = tablesIn(view.query, builder)
}

function readMaterialized(made: CreateTableAsStmt, builder: SchemaBuilder): void {
  if (made.objtype !== 'OBJECT_MATVIEW') return
  const view = builder.make(tableName(made.into?.rel, builder), 'materialized')
  view.reads = tablesIn(made.query, builder)
}

function readDomain({ domainname, typeName }: CreateDomainStmt, builder: SchemaBuilder): void {
  const { type, typmod } = columnType(typeName, builder.domains)
  builder.domains.set(lastName(domainname).at(-1) ?? '', { type, typmod })
}

function readSetting({ name, args }: VariableSetStmt, builder: SchemaBuilder): void {
  const first = name === 'search_path' ? args?.[0] : undefined
  const path = first && 'A_Const' in first ? first.A_Const.sval?.sval : undefined
  if (path) builder.currentSchema = path
}

const readers: Readonly<Record<string, Reader>> = {
  CreateStmt: readCreateTable,
  AlterTableStmt: readAlterTable,
  IndexStmt: readIndex,
  CreateFunctionStmt: readFunction,
  ViewStmt: readView,
  CreateTableAsStmt: readMaterialized,
  CreateDomainStmt: readDomain,
  VariableSetStmt: readSetting,
  CreateSeqStmt: ({ sequence }: { sequence?: RangeVar }, builder) => {
    builder.make(tableName(sequence, builder), 'sequence')
  },
  CreateTrigStmt: ({ relation }: { relation?: RangeVar }, builder) => {
    builder.update(tableName(relation, builder), { hasTriggers: true })
  },
  RuleStmt: ({ relation }: { relation?: RangeVar }, builder) => {
    builder.update(tableName(relation, builder), { hasRules: true })
  },
}

function readStatement(node: Node, builder: SchemaBuilder, text: StatementText): void {
  const [tag, body] = tagOf(node)
  readers[tag]?.(body as never, builder, text)
}

/**
 * `isBytewise`: the database's collation is C or like it, which a dump of a schema does not say.
 * @throws USAGE when the text cannot be cut into statements
 */
export async function readSchema(sqlText: string, isBytewise = false): Promise<ReadSchema> {
  await loadParser()
  const sql = withoutData(sqlText)
  const pieces = splitStatements(sql, true)
  if (!pieces) {
    throw engineError('USAGE', { message: 'the schema has a quote or comment that never ends' })
  }
  const builder = new SchemaBuilder()
  const unread: { line: number; message: string }[] = []
  for (const { start, end } of pieces) {
    const own = sql.slice(start, end)
    const parsed = parseStatements(own)
    if (isSyntaxError(parsed)) {
      unread.push({ line: sql.slice(0, start).split('\n').length, message: parsed.message })
      continue
    }
    const text: StatementText = { sql: own, offsetOf: parsed.offsetOf }
    for (const { stmt } of parsed.statements) if (stmt) readStatement(stmt, builder, text)
  }
  return { catalog: builder.finish(isBytewise), unread }
}
