/**
 * INSERT of what a query finds on any shards: the query is planned as a read of its own, and its rows are put on the shards
 * of their keys. Every shard takes them when the table is a reference table, and one when it stands on one.
 */
import type { CatalogColumn } from '../../catalog/catalog.js'
import { engineError } from '../../errors/engine-error.js'
import type { Plan } from '../../plan/plan.js'
import type { CarriedColumn, RowsInsert } from '../../plan/rows-insert.js'
import type { SelectedField, SelectInsertProgram } from '../../plan/select-insert-program.js'
import { placeDefault } from '../../sharding/default-key.js'
import type { KeyPlacer } from '../../sharding/key-placer.js'
import { allShards, type ShardId } from '../../sharding/shard-set.js'
import type { Level, Statement } from '../../sql/statement.js'
import { drawnKey } from '../drawn-values.js'
import { columnNamed } from '../key-column.js'
import type { Run } from '../key-value.js'
import { pinAdvice, unsupported } from '../plans.js'
import { levelsOf, type Places, type Resolved } from '../resolve.js'
import type { RoutingWorld } from '../world.js'
import { binaryTypeName } from './carried-types.js'
import { cutInsert, type InsertText } from './insert-text.js'
import { drawnDefault, isClockDefault, isDrawnDefault } from './write-defaults.js'
import { clockText, clockUses, type Edit, quoteName, returningAt, spliced } from './write-text.js'
import type { WriteRoute } from './write-text-for-all.js'

const textOid = 25
const dates = new Set([1082, 1114, 1184])
const firstUserOid = 16_384

/** Where the rows of a table go. */
type Destination =
  | { readonly kind: 'key'; readonly placer: KeyPlacer; readonly at: number }
  | { readonly kind: 'fixed'; readonly shards: readonly ShardId[] }

interface Selecting {
  readonly statement: Statement
  readonly root: Level
  readonly target: Resolved
  readonly destination: Destination
  readonly names: readonly string[] | undefined
  /** A column that is left out may have the time as its default. */
  readonly mayTakeClock: boolean
  readonly keyDefault: string | undefined
  readonly keyColumn: CatalogColumn | undefined
  readonly isEverywhere: boolean
}

const writing = new Set(['insert', 'update', 'delete', 'merge'])
const reads = /\b(?:select|table|values|with)\b/i

const wrongType = ({ target }: Selecting, reason: string): Error =>
  engineError('WRITE_SELECTED_TYPE', { table: target.use.name, reason })

class SelectWriter {
  readonly #selecting: Selecting
  readonly #text: InsertText
  readonly #now: string | undefined

  constructor(selecting: Selecting, text: InsertText, now: string | undefined) {
    this.#selecting = selecting
    this.#text = text
    this.#now = now
  }

  program(): SelectInsertProgram {
    const { root, destination, keyDefault, isEverywhere, target } = this.#selecting
    const keyType = destination.kind === 'key' ? destination.placer.table.keyType : undefined
    const isText = keyType === 'text' || keyType === 'varchar' || keyType === 'bpchar'
    return {
      returns: root.returns === true,
      query: this.#text.query,
      ...(keyDefault === undefined ? {} : { keyDefault }),
      formatsOf: (fields) => fields.map((field, i) => this.#carried(field, i).format),
      insertFor: (fields) => this.#insert(fields),
      shardsOf: (row, fields, drawnType) => this.#shardsOf(row, fields, drawnType),
      ...(isText && destination.kind === 'key' && destination.at >= 0
        ? { textKeyAt: destination.at }
        : {}),
      isEverywhere,
      table: target.use.name,
    }
  }

  #columnAt(i: number): CatalogColumn {
    const { names, target } = this.#selecting
    const name = names ? names[i] : target.relation!.columns[i]?.name
    const column = name === undefined ? undefined : columnNamed(target.relation, name)
    if (!column) throw wrongType(this.#selecting, `column ${i + 1} is not in the catalogue`)
    return column
  }

  /** How a field's values are carried: as their type, or as text that the column reads. */
  #carried({ type }: SelectedField, i: number): CarriedColumn {
    const column = this.#columnAt(i)
    // text is either text or a literal without a type, and the server has found that it may stand here
    if (type === textOid || type === 705) return { name: column.name, type: 0, format: 0 }
    const { destination } = this.#selecting
    const isKey = destination.kind === 'key' && destination.at === i
    if (binaryTypeName(type) !== undefined) {
      return { name: column.name, type, format: isKey && !dates.has(type) ? 0 : 1 }
    }
    if (type !== column.type) {
      const known = type < firstUserOid ? `of type ${type}` : 'of a type of users'
      throw wrongType(
        this.#selecting,
        `column "${column.name}" would be given a value ${known} by a cast`,
      )
    }
    return { name: column.name, type: 0, format: 0 }
  }

  #insert(fields: readonly SelectedField[]): RowsInsert {
    const { root, target, keyColumn, keyDefault } = this.#selecting
    const relation = target.relation!
    const clocks = this.#clocks(fields.length)
    const columns = fields.map((field, i) => this.#carried(field, i))
    const drawn =
      keyDefault === undefined ? [] : [{ name: keyColumn!.name, type: 0, format: 0 as const }]
    const constants = clocks.map(({ type }) => clockText(this.#now ?? '', type))
    const names = [...columns, ...drawn, ...clocks.map(({ column }) => column)]
    const overrides = this.#text.overridesSystem || (drawn.length > 0 && keyColumn!.identity)
    const refers = relation.foreignKeys.some((key) => key.target === relation.oid)
    return {
      head: `INSERT INTO ${quoteName(relation.schema)}.${quoteName(relation.name)} AS ${quoteName(root.relations[0]!.alias)} (${names.map(({ name }) => quoteName(name)).join(', ')}) ${overrides ? 'OVERRIDING SYSTEM VALUE ' : ''}`,
      columns: [...columns, ...drawn],
      constants,
      tail: this.#text.tail,
      isWhole: refers || (root.assigned?.length ?? 0) > 0,
    }
  }

  /** Columns left out whose default is the time: one on all shards. */
  #clocks(width: number): { readonly column: CatalogColumn; readonly type: string }[] {
    const { names, target } = this.#selecting
    const { columns } = target.relation!
    const missing = names
      ? columns.filter(({ name }) => !names.includes(name))
      : columns.slice(width)
    return missing.flatMap((column) => {
      const type = isClockDefault(column)
      return type === undefined ? [] : [{ column, type }]
    })
  }

  #shardsOf(
    row: readonly (Buffer | null)[],
    fields: readonly SelectedField[],
    drawnType: number | undefined,
  ): readonly ShardId[] {
    const { destination, keyColumn } = this.#selecting
    if (destination.kind === 'fixed') return destination.shards
    const { placer, at } = destination
    if (drawnType !== undefined) return [this.#ofText(row.at(-1) ?? null, drawnType, placer)]
    if (at < 0) return [placeDefault(keyColumn!, placer) ?? placer.ofNull()]
    if (at >= fields.length) {
      throw wrongType(this.#selecting, 'the query leaves the sharding key out')
    }
    const value = row[at] ?? null
    const { type } = fields[at]!
    if (value === null) return [keyColumn?.notNull ? 0 : placer.ofNull()]
    if (dates.has(type)) {
      const own = { date: 1082, timestamp: 1114, timestamptz: 1184 }[placer.table.keyType as string]
      if (own === type) return [placer.ofBinary(value, 0, value.length)]
      throw wrongType(this.#selecting, 'the sharding key is given a time of another type')
    }
    return [this.#ofText(value, type, placer)]
  }

  #ofText(value: Buffer | null, typeOid: number, placer: KeyPlacer): ShardId {
    if (value === null) return placer.ofNull()
    const text = value.toString()
    const { keyType } = placer.table
    const isLiteral = (typeOid === textOid || typeOid === 705) && !dateKeys.has(keyType)
    const key = isLiteral ? text : drawnKey({ text, typeOid }, keyType)
    if (key === undefined) {
      throw wrongType(this.#selecting, 'the sharding key is given a value of another type')
    }
    return placer.ofString(key)
  }
}

/** Their text is read by DateStyle. */
const dateKeys = new Set<string>(['date', 'timestamp', 'timestamptz'])

/** Left-out columns that would be another value on each shard. */
function leftOut(
  { insert }: Level,
  target: Resolved,
  names: readonly string[] | undefined,
): readonly CatalogColumn[] {
  const columns = target.relation?.columns ?? []
  // without a list the query may give fewer columns than there are: nobody knows before it runs
  if (!names) return insert?.selected ? columns.slice(insert.selected.length) : []
  return columns.filter((column) => !names.includes(column.name))
}

const isStarred = ({ insert }: Level): boolean =>
  !insert?.columns && !insert?.selected && insert?.rows === undefined

function destinationOf(
  target: Resolved,
  names: readonly string[] | undefined,
  world: RoutingWorld,
): Destination | undefined {
  const { place, relation } = target
  switch (place.kind) {
    case 'sharded': {
      const key = columnNamed(relation, place.table.column)
      if (!key || place.table.keyType === 'vector') return undefined
      const placer = world.map.placerOf(place.table, key.typmod)
      const all = names ?? relation!.columns.map((column) => column.name)
      return { kind: 'key', placer, at: all.indexOf(key.name) }
    }
    case 'reference':
      return {
        kind: 'fixed',
        shards: Array.from({ length: world.map.shardCount }, (_, shard) => shard),
      }
    case 'unsharded':
      return { kind: 'fixed', shards: [place.shard] }
    default:
      return undefined
  }
}

function textReason(text: InsertText | undefined): string | undefined {
  if (!text) return 'INSERT in this form'
  if (text.tail.includes('$')) return 'a parameter in RETURNING or ON CONFLICT of INSERT … SELECT'
  return reads.test(text.tail)
    ? 'a query in RETURNING or ON CONFLICT of INSERT … SELECT'
    : undefined
}

/** Why the statement cannot be done so, whatever its columns. */
function formReason(root: Level, places: Places, name: string): string | undefined {
  if (levelsOf(root).some((level) => level !== root && writing.has(level.kind))) {
    return 'a data-changing WITH'
  }
  if ([...places.values()].flat().some((one) => one.place.kind === 'system'))
    return `${name} that reads system catalogs`
  const hasDefault = root.insert?.rows?.flat().includes('default')
  return hasDefault ? `${name} with DEFAULT beside a query` : undefined
}

/** Columns of a reference table that each shard would draw by itself. */
function drawnReason(
  root: Level,
  target: Resolved,
  missing: readonly CatalogColumn[],
  name: string,
): string | undefined {
  if (target.place.kind !== 'reference') return undefined
  const drawn = missing.find(isDrawnDefault)
  if (drawn) return `the default of column "${drawn.name}" in ${name}`
  const mayBeDrawn = isStarred(root) && target.relation!.columns.some(isDrawnDefault)
  return mayBeDrawn ? `${name} without a list of columns` : undefined
}

/** What is worked out once a template; text: why it cannot be done so. */
function selecting(
  statement: Statement,
  root: Level,
  target: Resolved,
  world: RoutingWorld,
): Selecting | string {
  const name = `INSERT … SELECT into "${target.use.name}"`
  const { relation } = target
  if (!relation) return `${name}, which the catalogue does not have,`
  const names = root.insert?.columns
  const destination = destinationOf(target, names, world)
  if (!destination) return `${name} of this kind`
  const missing = leftOut(root, target, names)
  const reason = drawnReason(root, target, missing, name)
  if (reason !== undefined) return reason
  const clocked = isStarred(root) ? relation.columns : missing
  const made = {
    statement,
    root,
    target,
    destination,
    names,
    mayTakeClock: clocked.some((column) => isClockDefault(column) !== undefined),
    isEverywhere: target.place.kind === 'reference',
  }
  if (destination.kind === 'fixed') return { ...made, keyDefault: undefined, keyColumn: undefined }
  const keyColumn = columnNamed(relation, destination.placer.table.column)!
  if (destination.at >= 0) return { ...made, keyDefault: undefined, keyColumn }
  const keyDefault = isDrawnDefault(keyColumn) ? drawnDefault(keyColumn, relation) : undefined
  if (keyDefault === undefined && !placeable(keyColumn, destination)) {
    return `${name} without its sharding key`
  }
  return { ...made, keyDefault, keyColumn }
}

function placeable(key: CatalogColumn, { placer }: Destination & { kind: 'key' }): boolean {
  try {
    return placeDefault(key, placer) !== undefined
  } catch {
    // the server's rule says so for each row
    return true
  }
}

const planOf = (selected?: SelectInsertProgram): Plan => ({
  how: 'split',
  target: allShards,
  role: 'primary',
  reasons: ['the rows that the query finds are put on the shards of their keys'],
  notOne: 'the rows that the query finds are put on the shards of their keys',
  ...(selected ? { selected } : {}),
})

/** How an INSERT of a query's rows is done when no shard can do it by itself. */
export function compileSelectInsert(
  statement: Statement,
  root: Level,
  target: Resolved,
  places: Places,
  world: RoutingWorld,
): WriteRoute {
  const name = `INSERT … SELECT into "${target.use.name}"`
  const made =
    formReason(root, places, name) ?? (world.catalog && selecting(statement, root, target, world))
  // offline nobody knows the columns: the way is told, and cannot be gone
  if (made === undefined) return () => planOf()
  if (typeof made === 'string') {
    const plan = unsupported(made, pinAdvice)
    return () => plan
  }
  return (run) => {
    const selected = programOf(made, run)
    return typeof selected === 'string' ? unsupported(selected, pinAdvice) : planOf(selected)
  }
}

function programOf(made: Selecting, run: Run): SelectInsertProgram | string {
  const sql = run.sql.slice(run.start, run.end)
  const text = cutInsert(sql, run.standard)
  const reason = textReason(text)
  if (!text || reason !== undefined) return reason ?? ''
  const usesClock = made.statement.usesClock || made.mayTakeClock
  const program = new SelectWriter(made, text, undefined).program()
  if (!usesClock) return program
  const uses = clockUses(sql, run.standard)
  const seen = uses.some((use) => use.start >= returningAt(sql, run.standard))
  if (seen || (made.statement.usesClock && uses.length === 0)) return 'now() in RETURNING'
  const withClock = (now: string): SelectInsertProgram => {
    const edits = uses.map(
      ({ start, end, type }): Edit => ({ start, end, text: clockText(now, type) }),
    )
    const timed = cutInsert(spliced(sql, 0, sql.length, edits), run.standard)
    return new SelectWriter(made, timed ?? text, now).program()
  }
  return { ...program, withClock }
}
