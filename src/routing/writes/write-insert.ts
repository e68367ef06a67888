/**
 * INSERT … VALUES whose rows go to several shards, or whose key only a server can compute: the client's text is cut by row
 * and put together again for each shard. With a reference table every shard gets all rows, and what would differ between
 * shards (sequences, random values, the time) is computed once and written in.
 */
import type { CatalogColumn } from '../../catalog/catalog.js'
import { engineError } from '../../errors/engine-error.js'
import type { Plan } from '../../plan/plan.js'
import type { SplitPart, SplitProgram } from '../../plan/split-program.js'
import { placeDefault } from '../../sharding/default-key.js'
import { allShards, type ShardId, someShards } from '../../sharding/shard-set.js'
import type { Level, Statement, Value } from '../../sql/statement.js'
import { Drawing, type DrawnValue, drawnKey, drawnLiteral } from '../drawn-values.js'
import { columnNamed } from '../key-column.js'
import { type Run, shardsOfValue } from '../key-value.js'
import { trust } from '../parameters.js'
import { relayTo, unsupported } from '../plans.js'
import type { Places, Resolved } from '../resolve.js'
import type { RoutingWorld } from '../world.js'
import {
  describeInsert,
  type Filled,
  type Insert,
  isRagged,
  missingKey,
} from './write-insert-facts.js'
import {
  type ClockUse,
  clockText,
  clockUses,
  cutValues,
  type Edit,
  quoteName,
  spliced,
  type ValueRows,
} from './write-text.js'

/** One run of it: where its rows go, and the edits that its text needs. */
class Cutting {
  readonly #insert: Insert
  readonly #run: Run
  readonly #sql: string
  readonly #cut: ValueRows
  readonly #drawing = new Drawing()
  readonly #shards: (ShardId | undefined)[]
  /** Values of added columns, a row each. */
  readonly #added: { readonly column: CatalogColumn; readonly texts: string[] }[] = []
  readonly #edits: Edit[][]
  readonly #tailEdits: Edit[] = []
  readonly #clocks: ClockUse[]

  constructor(insert: Insert, run: Run, sql: string, cut: ValueRows) {
    this.#insert = insert
    this.#run = run
    this.#sql = sql
    this.#cut = cut
    this.#edits = insert.rows.map(() => [])
    this.#shards = insert.rows.map(() => undefined)
    this.#clocks = insert.statement.usesClock ? clockUses(sql, run.standard) : []
  }

  /** @throws ROUTE_KEY_MISSING and the errors of keys */
  plan(): Plan {
    const refusal = this.#clockRefusal()
    if (refusal) return refusal
    this.#placeRows()
    this.#fill()
    if (this.#shards.every((shard) => shard !== undefined) && this.#isOnOne()) {
      const [shard] = this.#shards
      return relayTo(shard!, 'primary', 'the sharding key names one shard')
    }
    if (this.#clocks.length > 0 || this.#insert.filled.some((one) => one.clock)) this.#drawClock()
    const program = this.#drawing.isEmpty ? this.#program() : this.#drawn()
    return {
      how: 'split',
      target: this.#targets(),
      role: 'primary',
      reasons: ['each row goes to the shard of its key'],
      notOne: 'each row goes to the shard of its key',
      split: program,
    }
  }

  #targets() {
    const known = this.#shards.filter((shard) => shard !== undefined)
    if (!this.#insert.table || known.length < this.#shards.length) return allShards
    return someShards(known)
  }

  #clockRefusal(): Plan | undefined {
    if (!this.#insert.statement.usesClock) return undefined
    const isSeen = this.#clocks.some((use) => use.start >= this.#cut.returningAt)
    if (this.#clocks.length > 0 && !isSeen) return undefined
    return unsupported('now() or CURRENT_TIMESTAMP in RETURNING', 'return the column instead')
  }

  #isOnOne(): boolean {
    const [first] = this.#shards
    return this.#insert.table !== undefined && this.#shards.every((shard) => shard === first)
  }

  #placeRows(): void {
    const { rows, table, placer, places, keyAt } = this.#insert
    if (!table || !placer) return
    const expressions: { text: string; take: (value: DrawnValue) => void }[] = []
    for (const [i, row] of rows.entries()) {
      if (keyAt < 0 || keyAt >= row.length || row[keyAt] === 'default') continue
      const value = row[keyAt] as Value | undefined
      const set = value && shardsOfValue(trust(value, places), placer, this.#run, 'store')
      if (set?.kind === 'some' && set.shards.length === 1) {
        this.#shards[i] = set.shards[0]!
        continue
      }
      expressions.push({ text: this.#expression(i), take: (drawn) => this.#takeKey(i, drawn) })
    }
    this.#drawing.addEach(expressions)
    this.#placeDefaults()
  }

  /** Rows that leave the key to its default: NULL, a constant, or what a server draws. */
  #placeDefaults(): void {
    const { rows, table, placer, keyAt, target, filled } = this.#insert
    const left = rows.flatMap((row, i) =>
      keyAt < 0 || keyAt >= row.length || row[keyAt] === 'default' ? [i] : [],
    )
    if (left.length === 0) return
    const column = columnNamed(target.relation, table!.column)
    const shard = column && placeDefault(column, placer!)
    if (shard !== undefined) {
      for (const i of left) this.#shards[i] = shard
      return
    }
    if (!filled.some((one) => one.column.name === table!.column)) throw missingKey(this.#insert)
  }

  #expression(i: number): string {
    const { keyAt, mayDraw: allowed } = this.#insert
    const values = this.#cut.values[i]!
    const text = this.#sql.slice(values[keyAt * 2], values[keyAt * 2 + 1])
    // A parameter's value is not ours to compute with.
    if (!allowed || text.includes('$')) throw missingKey(this.#insert)
    return text
  }

  #takeKey(i: number, drawn: DrawnValue): void {
    const { keyAt, placer, table } = this.#insert
    this.#shards[i] = this.#shardOf(drawn)
    if (!placer || !table) return
    const values = this.#cut.values[i]!
    this.#edits[i]!.push({
      start: values[keyAt * 2]!,
      end: values[keyAt * 2 + 1]!,
      text: drawnLiteral(drawn),
    })
  }

  #shardOf(drawn: DrawnValue): ShardId {
    const { placer, table } = this.#insert
    if (drawn.text === null) return placer!.ofNull()
    const key = drawnKey(drawn, table!.keyType)
    if (key === undefined) throw missingKey(this.#insert)
    return placer!.ofString(key)
  }

  /** Columns whose default is written in. */
  #fill(): void {
    const { rows, filled } = this.#insert
    for (const one of filled) {
      const texts: string[] = []
      if (one.at < 0) this.#added.push({ column: one.column, texts })
      if (one.expression === undefined) continue
      const takers = rows.flatMap((row, i) => {
        const isDefault = one.at < 0 || one.at >= row.length || row[one.at] === 'default'
        return isDefault ? [(value: DrawnValue) => this.#takeDefault(one, i, texts, value)] : []
      })
      this.#drawing.addRepeated(one.expression, takers)
    }
  }

  #takeDefault(one: Filled, i: number, texts: string[], value: DrawnValue): void {
    const { table } = this.#insert
    if (table && one.column.name === table.column) this.#shards[i] = this.#shardOf(value)
    this.#put(one, i, texts, drawnLiteral(value))
  }

  #put(one: Filled, i: number, texts: string[], text: string): void {
    if (one.at < 0) texts[i] = text
    else {
      const values = this.#cut.values[i]!
      const [start, end] = [values[one.at * 2], values[one.at * 2 + 1]]
      if (start !== undefined && end !== undefined) this.#edits[i]!.push({ start, end, text })
    }
  }

  #drawClock(): void {
    this.#drawing.addClock((now) => {
      for (const { start, end, type } of this.#clocks) {
        this.#editAt({ start, end, text: clockText(now, type) })
      }
      for (const one of this.#insert.filled) {
        if (one.clock !== undefined) this.#fillClock(one, clockText(now, one.clock))
      }
    })
  }

  #editAt(edit: Edit): void {
    const { starts, ends } = this.#cut
    const row = starts.findIndex((from, i) => from <= edit.start && edit.end <= ends[i]!)
    if (row >= 0) this.#edits[row]!.push(edit)
    else this.#tailEdits.push(edit)
  }

  #fillClock(one: Filled, text: string): void {
    const texts = this.#added.find((added) => added.column === one.column)?.texts ?? []
    for (const [i, row] of this.#insert.rows.entries()) {
      if (one.at < 0 || row[one.at] === 'default') this.#put(one, i, texts, text)
    }
  }

  #drawn(): SplitProgram {
    const { returns } = this.#insert.level
    const drawing = this.#drawing
    return {
      parts: [],
      returns: returns === true,
      draw: {
        sql: drawing.sql,
        count: drawing.count,
        usesClock: drawing.usesClock,
        finish: (results) => {
          drawing.take(results)
          return this.#program()
        },
      },
    }
  }

  #program(): SplitProgram {
    const { level, statement, table, rows, shardCount } = this.#insert
    const returns = level.returns === true
    const needsTypes = statement.repeatsParameters
    if (!table) {
      const sql = this.#text(rows.map((_, i) => i))
      const parts = Array.from({ length: shardCount }, (_, shard) => ({ shard, sql }))
      return { parts, returns }
    }
    const byShard = new Map<ShardId, number[]>()
    for (const [i, shard] of this.#shards.entries()) {
      const own = byShard.get(shard!)
      if (own) own.push(i)
      else byShard.set(shard!, [i])
    }
    const shards = [...byShard.keys()].sort((a, b) => a - b)
    const parts = shards.map(
      (shard): SplitPart => ({ shard, sql: this.#text(byShard.get(shard)!) }),
    )
    const owners = this.#shards.map((shard) => shards.indexOf(shard!))
    return { parts, returns, owners, needsTypes }
  }

  #text(rows: readonly number[]): string {
    const cut = this.#cut
    const head = this.#head()
    const tail = spliced(this.#sql, cut.ends.at(-1)!, this.#sql.length, byPlace(this.#tailEdits))
    return head + rows.map((i) => this.#rowText(i)).join(', ') + tail
  }

  #rowText(i: number): string {
    const cut = this.#cut
    const added = this.#added.map(({ texts }) => texts[i] ?? 'DEFAULT')
    if (cut.isDefaultValues) {
      return added.length === 0
        ? this.#sql.slice(cut.starts[i], cut.ends[i])
        : `VALUES (${added.join(', ')})`
    }
    const own = spliced(this.#sql, cut.starts[i]!, cut.ends[i]!, byPlace(this.#edits[i]!))
    return added.length === 0 ? own : `${own.slice(0, -1)}, ${added.join(', ')})`
  }

  /** All before the rows, with the added columns; an identity takes a given value only when it is told to. */
  #head(): string {
    const cut = this.#cut
    const upTo = cut.starts[0]!
    const edits: Edit[] = []
    if (this.#added.length > 0) {
      const names = this.#added.map(({ column }) => quoteName(column.name))
      const own =
        cut.hasColumns || cut.isDefaultValues ? [] : (this.#insert.names ?? []).map(quoteName)
      const list = cut.hasColumns ? `, ${names.join(', ')}` : `(${[...own, ...names].join(', ')}) `
      edits.push({ start: cut.columnsAt, end: cut.columnsAt, text: list })
    }
    const identity = this.#insert.filled.some((one) => one.column.identity)
    if (identity && !cut.overrides) {
      edits.push({ start: cut.valuesAt, end: cut.valuesAt, text: 'OVERRIDING SYSTEM VALUE ' })
    }
    return spliced(this.#sql, 0, upTo, edits)
  }
}

const byPlace = (edits: Edit[]): Edit[] => edits.sort((a, b) => a.start - b.start)

/** Routes of an INSERT … VALUES over several shards; undefined when it is none that can be cut. */
export function compileSplitInsert(
  statement: Statement,
  level: Level,
  target: Resolved,
  places: Places,
  world: RoutingWorld,
): ((run: Run) => Plan) | undefined {
  const insert = describeInsert(statement, level, target, places, world)
  if (!insert) return undefined
  // The server says what is wrong before it looks at any row.
  if (isRagged(insert.rows, insert.names)) {
    const plan = relayTo(0, 'primary', 'the rows of VALUES are not of one length')
    return () => plan
  }
  return (run) => {
    const sql = run.sql.slice(run.start, run.end)
    const cut = cutValues(sql, run.standard)
    if (!cut || cut.starts.length !== insert.rows.length) {
      throw engineError('ROUTE_INSERT_SPLIT', { table: target.use.name })
    }
    return new Cutting(insert, run, sql, cut).plan()
  }
}
