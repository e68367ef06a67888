/**
 * A SELECT over several shards that each answer for rows of their own → the text they are sent and how their rows become
 * one answer (design §7.1). What cannot be merged rightly is said by its SQL name, and goes another way.
 */
import type { Combine, MergeProgram, SortKey } from '../../plan/merge-program.js'
import type { ItemFacts, SelectFacts, SortFacts } from '../../sql/select.js'
import type { Level, Statement } from '../../sql/statement.js'
import { bindColumn } from '../columns.js'
import { isOrdered, isText, type TypeContext, type Typed, typeOf } from '../expression-type.js'
import type { Run } from '../key-value.js'
import { boundOf } from '../limit-value.js'
import type { Places } from '../resolve.js'
import type { RoutingWorld } from '../world.js'
import { combineOf } from './merge-aggregates.js'
import { MergeColumns, NotMergeable, type Output, outputsOf, type Place } from './merge-columns.js'
import { editedText, type Piece, type TextEdits } from './merge-text.js'

/** What does not depend on a run, but for the numbers of output columns in it. */
interface Shape {
  readonly edits: TextEdits
  readonly visible: number
  readonly order: readonly SortKey[]
  readonly unique?: readonly number[]
  readonly combine: readonly Combine[]
  readonly sort?: readonly SortKey[]
  readonly tieKeys: number
  /** LIMIT may be asked of the shards. */
  readonly pushesLimit: boolean
  readonly reasons: readonly string[]
  /** All types are known to be merged. */
  readonly isCertain: boolean
}

/** 'negative': PostgreSQL has an error of its own for a LIMIT like this. */
export type Merged =
  | {
      readonly program: MergeProgram
      readonly reasons: readonly string[]
      readonly isCertain: boolean
    }
  | NotMergeable
  | 'negative'

const keyOfTable = (item: ItemFacts, { level, places }: TypeContext): boolean => {
  if (item.expression.kind !== 'column') return false
  const bound = bindColumn(item.expression.use, level, places)
  const found = bound?.level === level ? places.get(level)?.[bound.relation] : undefined
  return (
    found?.place.kind === 'sharded' &&
    !found.use.nullable &&
    found.place.table.column === bound?.column
  )
}

class ShapeMaker {
  readonly #select: SelectFacts
  readonly #context: TypeContext
  readonly #columns: MergeColumns
  readonly #order: SortKey[] = []
  readonly #added: Piece[] = []
  readonly #reasons: string[] = []
  #isCertain = true

  constructor(select: SelectFacts, columns: MergeColumns, context: TypeContext) {
    this.#select = select
    this.#columns = columns
    this.#context = context
  }

  make(): Shape {
    const { distinct, group, hasAggregate, hasHaving } = this.#select
    this.#checkWindows()
    const keyed = group?.some((item) => keyOfTable(item, this.#context)) === true
    if (keyed) this.#reasons.push('groups do not span shards: they have the sharding key')
    if (!keyed && (group || hasAggregate || hasHaving)) return this.#aggregated()
    if (distinct === 'all' && !this.#hasKey()) return this.#distinct()
    if (distinct && distinct !== 'all') return this.#distinctOn(distinct)
    this.#sortedBy(distinct !== 'all')
    if (this.#order.length > 0) this.#reasons.push('the rows of the shards are merged in order')
    return this.#shape({ pushesLimit: true })
  }

  #shape(rest: {
    readonly pushesLimit: boolean
    readonly unique?: readonly number[]
    readonly combine?: readonly Combine[]
    readonly sort?: readonly SortKey[]
  }): Shape {
    const { sort } = this.#select
    const lead = sort.length > 0 && !rest.sort ? ', ' : ' ORDER BY '
    return {
      edits: {
        columns: this.#columns.hiddenPieces,
        order: this.#added.length === 0 ? [] : [lead, ...this.#added],
        replacesOrder: rest.sort !== undefined,
      },
      visible: this.#columns.outputs.length,
      order: this.#order,
      combine: [],
      tieKeys: sort.length,
      reasons: this.#reasons,
      isCertain: this.#isCertain,
      ...rest,
    }
  }

  #hasKey(): boolean {
    return this.#columns.outputs.some(
      ({ target }) => target && keyOfTable(target.item, this.#context),
    )
  }

  /** A window over rows of one shard only: its partitions have the key. */
  #checkWindows(): void {
    const { partitions, group, hasAggregate } = this.#select
    if (partitions.length === 0) return
    const own = partitions.every((items) => items?.some((item) => keyOfTable(item, this.#context)))
    if (!own || group || hasAggregate) throw new NotMergeable('a window function')
  }

  #keyOf(place: Place, by?: SortFacts): SortKey {
    const { typed } = place
    if (typed && !isOrdered(typed)) throw new NotMergeable(notOrdered(typed))
    if (!typed) this.#isCertain = false
    return {
      column: place.column,
      descending: by?.descending ?? false,
      nullsFirst: by?.nullsFirst ?? false,
      ...(typed?.bytewise ? { bytewise: true } : {}),
    }
  }

  /** The client's own ORDER BY. */
  #sortedBy(mayHide: boolean): void {
    for (const by of this.#select.sort) {
      this.#order.push(this.#keyOf(this.#columns.placeOf(by, 'output', mayHide), by))
    }
  }

  /** A key behind the client's, in an order of ours: text is sorted by its bytes whatever its collation. */
  #addKey(place: Place, mayCollate: boolean): void {
    if (this.#order.some(({ column }) => column === place.column)) return
    const { typed, column, span } = place
    if (this.#added.length > 0) this.#added.push(', ')
    if (mayCollate && typed && isText(typed.type) && !typed.bytewise) {
      if (typed.loose || !span) throw new NotMergeable(notOrdered(typed))
      this.#added.push('(', span, ') COLLATE "C"')
      this.#order.push(this.#keyOf({ ...place, typed: { ...typed, bytewise: true } }))
    } else {
      this.#added.push(String(column + 1))
      this.#order.push(this.#keyOf(place))
    }
  }

  #distinct(): Shape {
    if (this.#select.hasAggregate) throw new NotMergeable('DISTINCT with an aggregate')
    this.#sortedBy(false)
    const { outputs } = this.#columns
    const unique = outputs.map((_, column) => column)
    for (const column of unique) this.#addKey(this.#columns.placeOfOutput(column), false)
    this.#reasons.push('rows that several shards have are taken once')
    return this.#shape({ unique, pushesLimit: !this.#select.withTies })
  }

  #distinctOn(items: readonly ItemFacts[]): Shape {
    if (this.#select.hasAggregate) throw new NotMergeable('DISTINCT with an aggregate')
    const on = items.map((item) => this.#columns.placeOf(item, 'output', true))
    this.#sortedBy(true)
    for (const place of on) this.#addKey(place, true)
    this.#reasons.push('the first row of each DISTINCT ON is taken')
    const unique = [...new Set(on.map(({ column }) => column))]
    return this.#shape({ unique, pushesLimit: !this.#select.withTies })
  }

  #aggregated(): Shape {
    const { group, hasHaving, distinct, sort } = this.#select
    if (hasHaving) throw new NotMergeable('HAVING')
    if (distinct) throw new NotMergeable('DISTINCT with an aggregate')
    const keys = (group ?? []).map((item) => this.#columns.placeOf(item, 'input', true))
    const combine = this.#columns.outputs.flatMap((output, column) =>
      this.#combined(output, column),
    )
    this.#reasons.push('partial aggregates of the shards are combined')
    const unique = [...new Set(keys.map(({ column }) => column))]
    const byAggregate = sort.some((by) => this.#isAggregate(by))
    if (!byAggregate && group) this.#sortedBy(true)
    const sorted = byAggregate && group ? this.#lastSort() : undefined
    for (const place of keys) this.#addKey(place, true)
    const pushesLimit = group !== undefined && !sorted && !this.#select.withTies
    return this.#shape({ unique, combine, pushesLimit, ...(sorted ? { sort: sorted } : {}) })
  }

  #isAggregate(by: SortFacts): boolean {
    if (by.contents.hasAggregate) return true
    const { column } = this.#columns.placeOf(by, 'output', true)
    return this.#columns.outputs[column]?.target?.aggregate !== undefined
  }

  /** By aggregates that are output columns: known only when all shards' parts are combined. */
  #lastSort(): SortKey[] {
    this.#reasons.push('the combined rows are sorted')
    return this.#select.sort.map((by) => {
      const before = this.#columns.hiddenCount
      const place = this.#columns.placeOf(by, 'output', true)
      if (this.#columns.hiddenCount > before && by.contents.hasAggregate) {
        throw new NotMergeable('ORDER BY an aggregate that is no output column')
      }
      return this.#keyOf(place, by)
    })
  }

  #combined({ target }: Output, column: number): Combine[] {
    if (!target?.item.contents.hasAggregate) return []
    if (!target.aggregate) throw new NotMergeable('an aggregate inside an expression')
    const { argument } = target.aggregate
    // min and max of what has no known type may be of text
    if (argument && !typeOf(argument, this.#context)) this.#isCertain = false
    return [combineOf(column, target.aggregate, this.#columns, this.#context)]
  }
}

const notOrdered = ({ type }: Typed): string =>
  isText(type)
    ? 'text in an order that is not that of its bytes'
    : 'the order of a type that is not built in, or composite,'

/** A star that cannot be spread, with nothing that asks for a column by its number. */
function unspreadShape(select: SelectFacts): Shape {
  const { sort, distinct, group, hasAggregate, hasHaving, partitions } = select
  const asks = sort.length > 0 || distinct || group || hasAggregate || hasHaving
  if (asks || partitions.length > 0) throw new NotMergeable('columns of * that are not known')
  return {
    edits: { columns: [], order: [], replacesOrder: false },
    visible: -1,
    order: [],
    combine: [],
    tieKeys: 0,
    pushesLimit: true,
    reasons: [],
    isCertain: true,
  }
}

/** Slots of the literals that are numbers of output columns. */
function ordinalSlots(select: SelectFacts): number[] {
  const { sort, group, distinct } = select
  const items = [...sort, ...(group ?? []), ...(distinct && distinct !== 'all' ? distinct : [])]
  return items.flatMap(({ ordinal }) => (ordinal === undefined ? [] : [ordinal]))
}

/** LIMIT for the shards, who must give all rows up to the last that the client may see. */
function limitText(select: SelectFacts, shape: Shape, limit: bigint | null, skip: bigint): string {
  if (!shape.pushesLimit || limit === null) return ''
  // of no rows PostgreSQL computes none
  const rows = limit === 0n ? 0n : limit + skip
  if (rows > 0x7fffffffffffffffn) return ''
  return select.withTies ? `FETCH FIRST ${rows} ROWS WITH TIES` : `LIMIT ${rows}`
}

/** For a statement whose rows each come from one shard. Undefined: its text cannot be told apart. */
export function compileMerge(
  { select }: Statement,
  level: Level,
  places: Places,
  world: RoutingWorld,
): ((run: Run) => Merged) | undefined {
  if (!select) return undefined
  const context: TypeContext = { level, places, world }
  const outputs = outputsOf(select, level, places.get(level) ?? [])
  const slots = ordinalSlots(select)
  const shapes = new Map<string, Shape | NotMergeable>()
  const shapeOf = (run: Run): Shape | NotMergeable => {
    const numbers = slots.map((slot) =>
      slot < 0 ? 0 : Number(run.sql.slice(run.slots.starts[slot], run.slots.ends[slot])),
    )
    const key = numbers.join()
    const known = shapes.get(key)
    if (known) return known
    const made = orReason(() => {
      if (!outputs) return unspreadShape(select)
      const ordinals = new Map(slots.map((slot, i) => [slot, numbers[i]!]))
      return new ShapeMaker(select, new MergeColumns(outputs, ordinals, context), context).make()
    })
    if (shapes.size < 64) shapes.set(key, made)
    return made
  }
  return (run) => mergedRun(run, select, shapeOf(run))
}

function mergedRun(run: Run, select: SelectFacts, shape: Shape | NotMergeable): Merged {
  if (shape instanceof NotMergeable) return shape
  const limit = boundOf(select.limit, run)
  const offset = boundOf(select.offset, run)
  if (limit === undefined || offset === undefined) return new NotMergeable('this LIMIT or OFFSET')
  if ((limit ?? 0n) < 0n || (offset ?? 0n) < 0n) return 'negative'
  const skip = offset ?? 0n
  const sql = editedText(run, select, shape.edits, limitText(select, shape, limit, skip))
  if (sql === undefined) return new NotMergeable('a text that cannot be told apart')
  const { visible, order, unique, combine, sort, tieKeys, reasons, isCertain } = shape
  const program: MergeProgram = {
    sql,
    visible,
    order,
    ...(unique ? { unique } : {}),
    combine,
    ...(sort ? { sort } : {}),
    limit,
    offset: skip,
    withTies: select.withTies,
    ...(select.withTies ? { tieKeys } : {}),
  }
  return { program, reasons, isCertain }
}

function orReason<T>(make: () => T): T | NotMergeable {
  try {
    return make()
  } catch (error) {
    if (error instanceof NotMergeable) return error
    throw error
  }
}
