/** CREATE TABLE and ALTER TABLE of a schema → drafts of tables. */
import type { CatalogColumn, CatalogConstraint } from '../../catalog/catalog.js'
import type {
  AlterTableCmd,
  AlterTableStmt,
  ColumnDef,
  Constraint,
  CreateStmt,
  IndexStmt,
  Node,
  RangeVar,
} from '../../sql/parse.js'
import { columnType } from './column-types.js'
import { defaultText } from './default-text.js'
import type { SchemaBuilder, TableDraft, TableName } from './schema-builder.js'

/** One statement of the schema: its text, and where the parser's locations are in it. */
export interface StatementText {
  readonly sql: string
  offsetOf(byte: number): number
}

export const tableName = (range: RangeVar | undefined, builder: SchemaBuilder): TableName => ({
  schema: range?.schemaname ?? builder.currentSchema,
  name: range?.relname ?? '',
})

const names = (nodes: readonly Node[] | undefined): string[] =>
  (nodes ?? []).flatMap((node) => ('String' in node ? (node.String.sval ?? '') : []))

/** The leftmost place that a tree names. */
function firstLocation(tree: unknown): number | undefined {
  if (tree === null || typeof tree !== 'object') return undefined
  const found = Object.entries(tree).flatMap(([key, value]) => {
    if (key === 'location') return typeof value === 'number' && value >= 0 ? [value] : []
    return firstLocation(value) ?? []
  })
  return found.length === 0 ? undefined : Math.min(...found)
}

function textOf(expression: Node | undefined, text: StatementText): string | undefined {
  const at = firstLocation(expression)
  return at === undefined ? undefined : defaultText(text.sql, text.offsetOf(at))
}

const change = (table: TableDraft, name: string, what: Partial<CatalogColumn>): void => {
  const at = table.columns.findIndex((column) => column.name === name)
  if (at >= 0) table.columns[at] = { ...table.columns[at]!, ...what }
}

/** PostgreSQL's own names for constraints that have none. */
const ownName = (table: TableDraft, columns: readonly string[], ending: string): string =>
  [table.name, ...(ending === 'pkey' ? [] : columns), ending].join('_')

function addUnique(table: TableDraft, one: Constraint, columns: readonly string[]): void {
  const isPrimary = one.contype === 'CONSTR_PRIMARY'
  const kind: CatalogConstraint['kind'] = isPrimary ? 'primary' : 'unique'
  const name = one.conname ?? ownName(table, columns, isPrimary ? 'pkey' : 'key')
  table.constraints.push({ name, kind, columns })
  if (isPrimary) for (const column of columns) change(table, column, { notNull: true })
}

function addForeign(
  table: TableDraft,
  one: Constraint,
  columns: readonly string[],
  builder: SchemaBuilder,
): void {
  const plain = (action: string | undefined) => action === undefined || 'ar'.includes(action)
  table.foreignKeys.push({
    name: one.conname ?? ownName(table, columns, 'fkey'),
    columns,
    target: tableName(one.pktable, builder),
    targetColumns: names(one.pk_attrs),
    acts: !plain(one.fk_upd_action) || !plain(one.fk_del_action),
  })
}

interface Place {
  readonly table: TableDraft
  readonly builder: SchemaBuilder
  readonly text: StatementText
  /** The column that a constraint stands at, or that a command names. */
  readonly own?: string
}

function addKey(one: Constraint, { table, own }: Place): void {
  // ADD CONSTRAINT … USING INDEX takes the columns of an index that is there.
  const index = table.constraints.find(({ name }) => name === one.indexname)
  const keys = own === undefined ? names(one.keys) : [own]
  addUnique(table, one, keys.length > 0 ? keys : known(index))
}

function setDefault(expression: Node | undefined, { table, text, own }: Place): void {
  const found = textOf(expression, text)
  if (found !== undefined) change(table, own ?? '', { default: found })
}

const constraintReaders: Readonly<Record<string, (one: Constraint, place: Place) => void>> = {
  CONSTR_PRIMARY: addKey,
  CONSTR_UNIQUE: addKey,
  CONSTR_FOREIGN: (one, { table, builder, own }) =>
    addForeign(table, one, own === undefined ? names(one.fk_attrs) : [own], builder),
  CONSTR_EXCLUSION: ({ conname }, { table }) => {
    table.constraints.push({ name: conname ?? 'excl', kind: 'exclusion', columns: [] })
  },
  CONSTR_NOTNULL: ({ keys }, { table, own }) =>
    change(table, own ?? names(keys)[0] ?? '', { notNull: true }),
  CONSTR_IDENTITY: (_, { table, own }) =>
    change(table, own ?? '', { identity: true, notNull: true }),
  CONSTR_GENERATED: (_, { table, own }) => change(table, own ?? '', { generated: true }),
  CONSTR_DEFAULT: ({ raw_expr }, place) => setDefault(raw_expr, place),
}

const addConstraint = (one: Constraint, place: Place): void =>
  constraintReaders[one.contype ?? '']?.(one, place)

const known = (constraint: CatalogConstraint | undefined): string[] =>
  (constraint?.columns ?? []).flatMap((name) => name ?? [])

function addColumn(
  table: TableDraft,
  column: ColumnDef,
  builder: SchemaBuilder,
  text: StatementText,
): void {
  const name = column.colname ?? ''
  const { isSerial, isVector, ...type } = columnType(column.typeName, builder.domains)
  const sequence = `${table.name}_${name}_seq`
  table.columns.push({
    name,
    attnum: table.columns.length + 1,
    ...type,
    ...(isVector ? { isVector } : {}),
    notNull: isSerial || column.is_not_null === true,
    generated: false,
    identity: false,
    ...(isSerial ? { default: `nextval('${sequence}'::regclass)` } : {}),
  })
  for (const node of column.constraints ?? []) {
    if ('Constraint' in node) addConstraint(node.Constraint, { table, builder, text, own: name })
  }
}

/** Of a partition, a LIKE or INHERITS: the columns of another table. */
function takeColumns(table: TableDraft, from: TableDraft | undefined): void {
  for (const column of from?.columns ?? []) {
    if (table.columns.some(({ name }) => name === column.name)) continue
    table.columns.push({ ...column, attnum: table.columns.length + 1 })
  }
}

function takeParents(made: CreateStmt, table: TableDraft, builder: SchemaBuilder): void {
  for (const node of made.inhRelations ?? []) {
    const parent = 'RangeVar' in node ? builder.find(tableName(node.RangeVar, builder)) : undefined
    takeColumns(table, parent)
    if (made.partbound && parent) attach(table, parent)
  }
}

export function readCreateTable(
  made: CreateStmt,
  builder: SchemaBuilder,
  text: StatementText,
): void {
  const name = tableName(made.relation, builder)
  if (builder.find(name) || made.relation?.relpersistence === 't') return
  const table = builder.make(name, made.partspec ? 'partitioned' : 'table')
  takeParents(made, table, builder)
  const elements = made.tableElts ?? []
  for (const node of elements) {
    if ('ColumnDef' in node) addColumn(table, node.ColumnDef, builder, text)
    else if ('TableLikeClause' in node)
      takeColumns(table, builder.find(tableName(node.TableLikeClause.relation, builder)))
  }
  for (const node of [...elements, ...(made.constraints ?? [])]) {
    if ('Constraint' in node) addConstraint(node.Constraint, { table, builder, text })
  }
}

/** The indexes and foreign keys of a partitioned table are made on each partition. */
function attach(part: TableDraft, parent: TableDraft): void {
  part.parent = parent.oid
  part.foreignKeys.push(...parent.foreignKeys.filter((one) => !part.foreignKeys.includes(one)))
  for (const { kind, columns } of parent.constraints) {
    const same = part.constraints.some((one) => one.columns.join() === columns.join())
    const ending = kind === 'primary' ? ['pkey'] : [...known({ name: '', kind, columns }), 'key']
    if (!same) part.constraints.push({ name: [part.name, ...ending].join('_'), kind, columns })
  }
}

function dropColumn({ table, own }: Place): void {
  const at = table.columns.findIndex((column) => column.name === own)
  if (at >= 0) table.columns.splice(at, 1)
}

function attachNamed(def: Node | undefined, { table, builder }: Place): void {
  const part = def && 'PartitionCmd' in def ? def.PartitionCmd.name : undefined
  const draft = builder.find(tableName(part, builder))
  if (draft) attach(draft, table)
}

const commandReaders: Readonly<
  Record<string, (def: Node | undefined, place: Place & { own: string }) => void>
> = {
  AT_AddColumn: (def, { table, builder, text }) => {
    if (def && 'ColumnDef' in def) addColumn(table, def.ColumnDef, builder, text)
  },
  AT_DropColumn: (_, place) => dropColumn(place),
  AT_ColumnDefault: setDefault,
  AT_AddIdentity: (_, { table, own }) => change(table, own, { identity: true, notNull: true }),
  AT_SetNotNull: (_, { table, own }) => change(table, own, { notNull: true }),
  AT_DropNotNull: (_, { table, own }) => change(table, own, { notNull: false }),
  AT_AddConstraint: (def, { table, builder, text }) => {
    if (def && 'Constraint' in def) addConstraint(def.Constraint, { table, builder, text })
  },
  AT_EnableRowSecurity: (_, { table }) => {
    table.rowSecurity = true
  },
  AT_AttachPartition: attachNamed,
}

const alter = ({ subtype, def, name = '' }: AlterTableCmd, place: Omit<Place, 'own'>): void =>
  commandReaders[subtype ?? '']?.(def, { ...place, own: name })

export function readAlterTable(
  altered: AlterTableStmt,
  builder: SchemaBuilder,
  text: StatementText,
): void {
  const table = builder.find(tableName(altered.relation, builder))
  if (!table) return
  for (const node of altered.cmds ?? []) {
    if ('AlterTableCmd' in node) alter(node.AlterTableCmd, { table, builder, text })
  }
}

export function readIndex(index: IndexStmt, builder: SchemaBuilder): void {
  const table = builder.find(tableName(index.relation, builder))
  if (!table || !index.unique) return
  const columns = (index.indexParams ?? []).map((node) =>
    'IndexElem' in node ? node.IndexElem.name : undefined,
  )
  const shown = columns.map((name) => name ?? 'expr')
  const name = index.idxname ?? [table.name, ...shown, 'idx'].join('_')
  table.constraints.push({ name, kind: 'unique', columns })
}
