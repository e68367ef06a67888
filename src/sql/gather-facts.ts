/**
 * What must be known of one text so that its statement can finish over copies of its tables: where tables are named,
 * which columns it may read, and what it would notice of a copy. Read for each text, because places differ.
 */
import { readQuery } from './describe-dml.js'
import {
  type ColumnRef,
  type FuncCall,
  isSyntaxError,
  type JoinExpr,
  type Node,
  parseStatements,
} from './parse.js'
import type { Level, RelationUse } from './statement.js'
import { stringOf, stringsOf, walkTree } from './tree.js'

/** A name with its schema before it: the first `drop` parts are to go. */
export interface QualifiedName {
  readonly schema: string
  readonly name: string
  /** Character where it begins. */
  readonly at: number
  readonly drop: number
  /** Nothing may follow the name: what does would make it the schema of another. */
  readonly isLast?: boolean
  /** Stands in the place of what is dropped; absent: blanks. */
  readonly becomes?: string
}

export interface GatherFacts {
  /** Built as that of the template, level by level, relation by relation. */
  readonly root: Level
  /** Tables of FROM; those without a schema too, with `drop` 0. */
  nameOf(use: RelationUse): QualifiedName
  /** `schema.table.column` in expressions. */
  readonly columns: readonly QualifiedName[]
  /** Whether the statement may read this column of a table that it calls by these names. */
  mayRead(column: string, aliases: readonly string[]): boolean
  /** Names that stand alone and may mean a whole row; `argument`: it is one of a function. */
  readonly bare: ReadonlyMap<string, 'argument' | 'value'>
  /** A star, a natural join, or columns by place. */
  readonly readsAll: boolean
  readonly groups: boolean
  readonly samples: boolean
  /** Names of CTEs, anywhere. */
  readonly ctes: ReadonlySet<string>
}

interface Growing {
  ctes: Set<string>
  columns: QualifiedName[]
  /** Names of columns that stand alone, or merged by USING. */
  alone: Set<string>
  /** Names of columns → what stands before them. */
  behind: Map<string, Set<string>>
  /** (a JOIN b) AS j: what stands before a column may be the name of a join. */
  namesJoins: boolean
  bare: Map<string, 'argument' | 'value'>
  readsAll: boolean
  groups: boolean
  samples: boolean
}

function noteName(parts: readonly (string | undefined)[], facts: Growing): void {
  const column = parts.at(-1)
  if (column === undefined) return
  if (parts.length === 1) facts.alone.add(column)
  else facts.behind.set(column, (facts.behind.get(column) ?? new Set()).add(parts.at(-2) ?? ''))
}

function noteColumn(
  { fields = [], location }: ColumnRef,
  facts: Growing,
  offsetOf: (byte: number) => number,
): void {
  const parts = fields.map((field) => stringOf(field))
  if (parts.includes(undefined)) facts.readsAll = true
  noteName(parts, facts)
  const [first] = parts
  if (parts.length === 1 && first !== undefined && !facts.bare.has(first)) {
    facts.bare.set(first, 'value')
  }
  if (parts.length < 3) return
  const drop = parts.length - 2
  facts.columns.push({
    schema: parts[drop - 1] ?? '',
    name: parts[drop] ?? '',
    at: offsetOf(location ?? 0),
    drop,
  })
}

/** Of a whole row they take the values and names, and no type of it comes out. */
const rowTakers = new Set(
  'row_to_json to_json to_jsonb json_agg jsonb_agg json_agg_strict jsonb_agg_strict json_build_object json_build_array jsonb_build_object jsonb_build_array json_object_agg jsonb_object_agg count'.split(
    ' ',
  ),
)

/** Arguments that are bare names: whole rows may go into some functions. */
function noteArguments({ funcname, args = [] }: FuncCall, counts: Map<string, number>): void {
  if (!rowTakers.has(stringsOf(funcname).at(-1) ?? '')) return
  for (const arg of args) {
    const fields = 'ColumnRef' in arg ? arg.ColumnRef.fields : undefined
    const name = fields?.length === 1 ? stringOf(fields[0]) : undefined
    if (name !== undefined) counts.set(name, (counts.get(name) ?? 0) + 1)
  }
}

function noteNode(tag: string, body: unknown, facts: Growing): void {
  if (tag === 'RangeTableSample') facts.samples = true
  else if (tag === 'CommonTableExpr') {
    facts.ctes.add((body as { ctename?: string }).ctename ?? '')
  } else if (tag === 'JoinExpr') {
    const { isNatural, usingClause, alias, join_using_alias } = body as JoinExpr
    if (isNatural) facts.readsAll = true
    if (alias || join_using_alias) facts.namesJoins = true
    for (const column of stringsOf(usingClause)) facts.alone.add(column)
  } else if (tag === 'SelectStmt') {
    const { groupClause, havingClause } = body as { groupClause?: Node[]; havingClause?: Node }
    if (groupClause || havingClause) facts.groups = true
  }
}

function survey(node: Node, offsetOf: (byte: number) => number): Growing {
  const facts: Growing = {
    columns: [],
    alone: new Set(),
    behind: new Map(),
    namesJoins: false,
    bare: new Map(),
    readsAll: false,
    groups: false,
    samples: false,
    ctes: new Set(),
  }
  const alone = new Map<string, number>()
  const passed = new Map<string, number>()
  walkTree({ node }, (tag, body) => {
    if (tag === 'ColumnRef') {
      const { fields } = body as ColumnRef
      const name = fields?.length === 1 ? stringOf(fields[0]) : undefined
      if (name !== undefined) alone.set(name, (alone.get(name) ?? 0) + 1)
      noteColumn(body as ColumnRef, facts, offsetOf)
    } else if (tag === 'FuncCall') noteArguments(body as FuncCall, passed)
    else noteNode(tag, body, facts)
    return true
  })
  for (const [name, count] of alone) {
    if (passed.get(name) === count) facts.bare.set(name, 'argument')
  }
  return facts
}

function mayRead(
  column: string,
  aliases: readonly string[],
  { alone, behind, namesJoins }: Growing,
): boolean {
  const before = behind.get(column)
  if (alone.has(column) || !before) return alone.has(column)
  return namesJoins || aliases.some((alias) => before.has(alias))
}

const renames = (level: Level): boolean =>
  level.relations.some((use) => use.renamesColumns) || level.children.some(renames)

/** The query of a SELECT or COPY (query); undefined when the text is neither. */
export function readGatherFacts(sql: string): GatherFacts | undefined {
  const parsed = parseStatements(sql)
  if (isSyntaxError(parsed) || parsed.statements.length !== 1) return undefined
  const node = parsed.statements[0]?.stmt
  const query = node && 'CopyStmt' in node ? node.CopyStmt.query : node
  if (!query) return undefined
  const root = readQuery(query, undefined, { ctes: new Set(), slots: { slotAt: () => -1 } })
  if (!root) return undefined
  const { offsetOf } = parsed
  const facts = survey(query, offsetOf)
  return {
    ...facts,
    root,
    readsAll: facts.readsAll || renames(root),
    mayRead: (column, aliases) => mayRead(column, aliases, facts),
    nameOf: (use) => ({
      schema: use.schema ?? '',
      name: use.name,
      at: offsetOf(use.at ?? 0),
      drop: use.schema === undefined ? 0 : 1,
      isLast: true,
    }),
  }
}
