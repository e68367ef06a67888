/**
 * UPDATE of the sharding key. A row whose new key belongs to its own shard is updated where it stands; another is deleted
 * there and inserted on its new shard, in one transaction. What an UPDATE would do and DELETE with INSERT would not
 * (triggers, rules, policies, cascades) is refused.
 */
import { createHash } from 'node:crypto'
import type { CatalogColumn, CatalogRelation } from '../../catalog/catalog.js'
import type { KeyType } from '../../datum/key-type.js'
import { engineError } from '../../errors/engine-error.js'
import type { MoveProgram } from '../../plan/move-program.js'
import type { Plan } from '../../plan/plan.js'
import type { CarriedColumn } from '../../plan/rows-insert.js'
import type { KeyPlacer } from '../../sharding/key-placer.js'
import { allShards, listShards, type ShardSet } from '../../sharding/shard-set.js'
import type { ShardedTable } from '../../sharding/sharded-table.js'
import { volatileBuiltins } from '../../sql/builtin-functions.js'
import type { Level, Statement } from '../../sql/statement.js'
import { columnNamed } from '../key-column.js'
import type { Run } from '../key-value.js'
import { refuse, relayNowhere } from '../plans.js'
import type { Resolved } from '../resolve.js'
import type { RoutingWorld } from '../world.js'
import { binaryTypeName, castTo } from './carried-types.js'
import { cutUpdate, type UpdateText } from './update-text.js'
import { isClockDefault, isDrawnDefault } from './write-defaults.js'
import {
  clockText,
  clockUses,
  type Edit,
  quoteName,
  quoteText,
  returningAt,
  spliced,
} from './write-text.js'
import type { WriteRoute } from './write-text-for-all.js'

type Sharded = Resolved & { place: { kind: 'sharded'; table: ShardedTable } }

/** The type that a new key is computed in: that of the key without length or precision. */
const keyTypeNames: Partial<Record<KeyType, string>> = {
  bigint: 'int8',
  integer: 'int4',
  smallint: 'int2',
  uuid: 'uuid',
  text: 'text',
  varchar: 'text',
  bpchar: 'bpchar',
  numeric: 'numeric',
  date: 'date',
  timestamp: 'timestamp',
  timestamptz: 'timestamptz',
}

const textual = new Set<KeyType>(['text', 'varchar', 'bpchar'])

/** Foreign keys of other tables, and of this one, that refer to the table, any partition of it, or its parent. */
function keysTo(relation: CatalogRelation, { catalog }: RoutingWorld) {
  const top = catalog!.rootOf(relation)
  return [...catalog!.relations].flatMap((from) =>
    from.foreignKeys.flatMap((key) => {
      const target = catalog!.byOid(key.target)
      return target && catalog!.rootOf(target) === top ? [{ key, from }] : []
    }),
  )
}

/** What DELETE and INSERT would not do as UPDATE does. */
function differs(relation: CatalogRelation, key: string, world: RoutingWorld): string | undefined {
  const { catalog } = world
  const family = [...catalog!.relations].filter(
    (one) => catalog!.rootOf(one) === catalog!.rootOf(relation),
  )
  if (family.some((one) => one.hasTriggers)) return 'triggers'
  if (family.some((one) => one.hasRules)) return 'rules'
  if (family.some((one) => one.rowSecurity)) return 'row security'
  const acting = keysTo(relation, world).find(
    (one) => one.key.acts || !one.key.targetColumns.includes(key),
  )
  return acting && `foreign key "${acting.key.name}" of table "${acting.from.name}"`
}

const unsteady = (statement: Statement): string | undefined =>
  statement.functions.find((call) => volatileBuiltins.has(call.name))?.name

interface Mover {
  readonly statement: Statement
  readonly root: Level
  readonly relation: CatalogRelation
  readonly table: ShardedTable
  readonly placer: KeyPlacer
  readonly keyColumn: CatalogColumn
  readonly refused: (why: string) => Plan
  readonly refersToItself: boolean
}

/** The value of a column that is set to its default. */
function defaultText(column: CatalogColumn): string | undefined {
  if (column.identity) return undefined
  if (column.default === undefined) return 'NULL'
  if (isDrawnDefault(column) || isClockDefault(column)) return undefined
  // its names were written for another search path
  return /[("]/.test(column.default) ? undefined : column.default
}

interface Assignment {
  readonly column: CatalogColumn
  readonly expression: string
}

type Fact = NonNullable<Level['assigned']>[number]

/** An assigned column and what it is given; text: why that cannot be said; undefined: PostgreSQL refuses it. */
function assignment(
  relation: CatalogRelation,
  { column: name, value }: Fact,
  given: string,
  run: Run,
): Assignment | string | undefined {
  const column = columnNamed(relation, name)
  // the server says what is wrong with it before a row is touched
  if (!column || column.generated) return undefined
  const expression = given === 'default' ? defaultText(column) : given
  if (expression === undefined) return `the default of column "${name}"`
  if (binaryTypeName(column.type) !== undefined || given === 'default')
    return { column, expression }
  // what a type of users is given must be its text
  if (!value) return `an expression for column "${name}", whose type is not PostgreSQL's own,`
  const isBinary = value.kind === 'parameter' && run.parameters?.format(value.index) === 1
  return isBinary ? `a binary parameter for column "${name}"` : { column, expression }
}

function assignments({ root, relation }: Mover, text: UpdateText, run: Run): Assignment[] | string {
  const facts = root.assigned ?? []
  if (facts.length !== text.assigned.length) return 'assignments in this form'
  const made = facts.map((fact, i) => assignment(relation, fact, text.assigned[i]!.value, run))
  const refused = made.find((one) => typeof one === 'string')
  if (typeof refused === 'string') return refused
  return made.filter((one): one is Assignment => typeof one === 'object')
}

/** Words that a part must not have: it would read other tables, or name what INSERT does not know. */
const reads = /\b(?:select|table|values|with)\b/i
const olds = /\b(?:old|new)\s*\.|\bwith\s*\(/i

/** Fingerprint of the columns that a moved row has. */
const fingerprintOf = (columns: readonly CarriedColumn[]): string =>
  createHash('md5')
    .update(
      columns
        .map(({ name }) => Buffer.from(name))
        .sort(Buffer.compare)
        .map(String)
        .join(','),
    )
    .digest('hex')

class MoveWriter {
  readonly #mover: Mover
  readonly #run: Run
  readonly #shards: readonly number[]

  constructor(mover: Mover, run: Run, shards: readonly number[]) {
    this.#mover = mover
    this.#run = run
    this.#shards = shards
  }

  program(sql: string): MoveProgram | string {
    const { root, table } = this.#mover
    const text = cutUpdate(sql, this.#run.standard)
    if (!text) return 'in this form'
    const assigned = assignments(this.#mover, text, this.#run)
    if (typeof assigned === 'string') return `beside ${assigned}`
    const key = assigned.find(({ column }) => column.name === table.column)
    if (!key) return 'in this form'
    const checksKey = root.relations.length > 1 || root.hasDerived || reads.test(text.set)
    if (root.returns && (checksKey || reads.test(text.returning) || olds.test(text.returning))) {
      return 'with RETURNING of what is not its own row'
    }
    return this.#write(text, assigned, key.expression, checksKey)
  }

  #write(
    text: UpdateText,
    assigned: readonly Assignment[],
    keyExpression: string,
    checksKey: boolean,
  ): MoveProgram {
    const { root, relation, table, placer, keyColumn, refersToItself } = this.#mover
    const alias = quoteName(root.relations[0]!.alias)
    const own = relation.columns.filter((column) => !column.generated)
    const qualified = `${quoteName(relation.schema)}.${quoteName(relation.name)}`
    const regclass = `${quoteText(qualified)}::pg_catalog.regclass`
    const names = own.map((column) => quoteName(column.name)).join(', ')
    const values = own.map((column) => {
      const given = assigned.find((one) => one.column === column)
      const type = binaryTypeName(column.type)
      if (!given) return `${alias}.${quoteName(column.name)}`
      return type === undefined ? `(${given.expression})` : castTo(given.expression, type)
    })
    const columns = own.map(({ name, type }): CarriedColumn => {
      const isBinary = binaryTypeName(type) !== undefined
      return { name, type: isBinary ? type : 0, format: isBinary ? 1 : 0 }
    })
    const { before, target, set, from, where, returning } = text
    const found = (rows: string): string =>
      checksKey && where !== undefined ? `(${where}) AND ${rows}` : rows
    const others = (word: string): string =>
      checksKey && from !== undefined ? ` ${word} ${from}` : ''
    const lead = checksKey ? before : ''
    const type = keyTypeNames[table.keyType]!
    const hidden = checksKey
      ? ` RETURNING ${castTo(`${alias}.${quoteName(table.column)}`, type)}`
      : ''
    const shown = `(SELECT pg_catalog.md5(pg_catalog.string_agg(a.attname::pg_catalog.text, ',' ORDER BY a.attname COLLATE pg_catalog."C")) FROM pg_catalog.pg_attribute a WHERE a.attrelid = ${regclass} AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '')`
    return {
      shards: this.#shards,
      returns: root.returns === true,
      lockSql: `${before}SELECT ${alias}.tableoid, ${alias}.ctid, ${alias}.tableoid <> ${regclass}, ${castTo(keyExpression, type)} FROM ${target}${from === undefined ? '' : `, ${from}`}${where === undefined ? '' : ` WHERE ${where}`} FOR UPDATE OF ${alias}`,
      update: (rows) =>
        `${lead}UPDATE ${target} SET ${set}${others('FROM')} WHERE ${found(rows)}${checksKey ? hidden : ` ${returning}`}`,
      remove: (rows) =>
        `${lead}DELETE FROM ${target}${others('USING')} WHERE ${found(rows)} RETURNING ${values.join(', ')}, ${shown}`,
      rowId: { ctid: `${alias}.ctid`, table: `${alias}.tableoid` },
      checksKey,
      insert: {
        head: `INSERT INTO ${qualified} AS ${alias} (${names}) OVERRIDING SYSTEM VALUE `,
        columns,
        constants: [],
        tail: returning === '' ? '' : ` ${returning}`,
        isWhole: refersToItself,
      },
      keyAt: own.indexOf(keyColumn),
      fingerprint: fingerprintOf(columns),
      keyIsText: textual.has(table.keyType),
      isPartitioned: relation.kind === 'partitioned',
      table: root.relations[0]!.name,
      column: table.column,
      placeKey: (value) => {
        if (value) return placer.ofBinary(value, 0, value.length)
        return keyColumn.notNull ? undefined : placer.ofNull()
      },
    }
  }

  /** The time of the transaction is one on all shards. */
  withClock(): MoveProgram | string {
    const run = this.#run
    const sql = run.sql.slice(run.start, run.end)
    if (!this.#mover.statement.usesClock) return this.program(sql)
    const uses = clockUses(sql, run.standard)
    const returning = returningAt(sql, run.standard)
    if (uses.length === 0 || uses.some((use) => use.start >= returning)) return 'with now()'
    const at = (now: string): MoveProgram | string => {
      const edits = uses.map(
        ({ start, end, type }): Edit => ({ start, end, text: clockText(now, type) }),
      )
      return this.program(spliced(sql, 0, sql.length, edits))
    }
    const first = at('2000-01-01 00:00:00+00')
    if (typeof first === 'string') return first
    return { ...first, withClock: (now) => at(now) as MoveProgram }
  }
}

/** Whether an assignment may give the key another value. */
const assignsKey = (level: Level, key: string): boolean =>
  (level.assigned ?? []).some((one) => one.column === key && !isItself(level, one.from, key))

/** `SET key = key`, or in ON CONFLICT `SET key = excluded.key`, which the arbiter has found equal. */
export function isItself(
  level: Level,
  from: { readonly column: string; readonly table?: string } | undefined,
  key: string,
): boolean {
  if (from?.column !== key) return false
  const own = level.relations[0]!.alias
  if (level.kind === 'insert') return from.table === 'excluded' || from.table === own
  return (
    from.table === own ||
    (from.table === undefined && level.relations.length === 1 && !level.hasDerived)
  )
}

/** How an UPDATE of the key is done; undefined: the key stays what it is. `shardsOf`: where rows may match. */
export function compileMove(
  statement: Statement,
  root: Level,
  target: Sharded,
  world: RoutingWorld,
  shardsOf: (run: Run) => ShardSet,
): WriteRoute | undefined {
  const { table } = target.place
  const { column } = table
  if (root.kind !== 'update' || !assignsKey(root, column)) return undefined
  const refused = (why: string): Plan =>
    refuse(engineError('ROUTE_KEY_UPDATE', { column, table: target.use.name, why }))
  const { relation } = target
  const keyColumn = columnNamed(relation, column)
  if (!world.catalog) return () => movePlan()
  if (!relation || !keyColumn) return () => refused('of a table that the catalogue does not have')
  const why =
    differs(relation, column, world) ??
    (keyColumn.generated || keyColumn.identity ? 'a generated key' : undefined)
  const called = unsteady(statement)
  const fixed =
    why !== undefined
      ? refused(`of a table with ${why}`)
      : called !== undefined
        ? refused(`with ${called}()`)
        : table.keyType in keyTypeNames
          ? undefined
          : refused(`of type ${table.keyType}`)
  if (fixed) return () => fixed
  const mover: Mover = {
    statement,
    root,
    relation,
    table,
    keyColumn,
    refused,
    placer: world.map.placerOf(table, keyColumn.typmod),
    refersToItself: keysTo(relation, world).some(({ from }) => from === relation),
  }
  return (run) => {
    const set = shardsOf(run)
    const shards = listShards(set, world.map.shardCount)
    if (shards.length === 0) return relayNowhere('primary', 'no shard can hold a matching row')
    const move = new MoveWriter(mover, run, shards).withClock()
    return typeof move === 'string' ? refused(move) : movePlan(move)
  }
}

/** Offline nobody knows the columns: the way is told, and cannot be gone. */
const movePlan = (move?: MoveProgram): Plan => ({
  how: 'split',
  target: allShards,
  role: 'primary',
  reasons: ['rows whose new key belongs to another shard move there'],
  notOne: 'rows whose new key belongs to another shard move there',
  ...(move ? { move } : {}),
})
