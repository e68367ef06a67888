/**
 * The shards on which rows of one table reference can matter to a statement's answer.
 *
 * A condition counts when rows that fail it change nothing: WHERE; ON of an inner join; ON of an outer join for its
 * nullable side. Equalities between columns carry a constant from one to the other; an equality that holds makes its
 * tables real (not null-extended), so that the ON conditions of their joins hold too. IS NULL counts only where no outer
 * join can have put the NULL. AND narrows, OR unites, what is not understood is all.
 */
import type { KeyPlacer } from '../sharding/key-placer.js'
import {
  allShards,
  intersectShards,
  noShard,
  type ShardSet,
  uniteShards,
} from '../sharding/shard-set.js'
import type { ColumnUse, Conjunct, Level, Predicate, Value } from '../sql/statement.js'
import { type BoundColumn, bindColumn, sameColumn } from './columns.js'
import { columnNamed, equalityOf } from './key-column.js'
import { boundOf, type Run, shardsOfArray, shardsOfNull, shardsOfValue } from './key-value.js'
import { trust } from './parameters.js'
import type { Places } from './resolve.js'

export type ShardsOf = (run: Run) => ShardSet

const everywhere: ShardsOf = () => allShards
const nowhere: ShardsOf = () => noShard

interface Condition {
  readonly level: Level
  readonly predicate: Predicate
}

/** All that is known of the columns that equal one key column. */
export interface KeyClass {
  readonly key: BoundColumn
  readonly members: readonly BoundColumn[]
  readonly conditions: readonly Condition[]
}

interface Growing {
  members: BoundColumn[]
  /** Relations of each level that are not null-extended where the key's row matters. */
  real: Map<Level, Set<number>>
}

function isActive(conjunct: Conjunct, level: Level, growing: Growing): boolean {
  if (!conjunct.relations) return true
  const real = growing.real.get(level)
  return conjunct.relations.some(
    (index) => real?.has(index) || !(level.relations[index]?.nullable ?? true),
  )
}

/** The level itself and those around it, as far as their conditions hold for its rows. */
function levelsAround(level: Level): Level[] {
  const levels: Level[] = []
  for (let at: Level | undefined = level; at; at = at.parent) {
    levels.push(at)
    // Data-changing commands and CTEs run whether or not the outer conditions hold.
    if (at.kind !== 'select' && at.kind !== 'values') break
  }
  return levels
}

function addMember(growing: Growing, column: BoundColumn): boolean {
  if (growing.members.some((member) => sameColumn(member, column))) return false
  growing.members.push(column)
  const real = growing.real.get(column.level) ?? new Set<number>()
  real.add(column.relation)
  growing.real.set(column.level, real)
  return true
}

/** Values of different types may be equal and yet hash apart (float, name, char(n)): such an equality carries nothing on. */
function carries(left: BoundColumn, right: BoundColumn, places: Places): boolean {
  const of = (column: BoundColumn) => places.get(column.level)![column.relation]!
  const [a, b] = [of(left), of(right)]
  if (!a.relation && !b.relation) return a.place.kind !== 'system' && b.place.kind !== 'system'
  const type = equalityOf(columnNamed(a.relation, left.column))
  return type !== undefined && type === equalityOf(columnNamed(b.relation, right.column))
}

/** Takes the other side of an equality in when one side is a member. True when the class grew. */
function joinSides(condition: Condition, growing: Growing, places: Places): boolean {
  const { predicate, level } = condition
  if (predicate.op !== 'same') return false
  const left = bindColumn(predicate.left, level, places)
  const right = bindColumn(predicate.right, level, places)
  if (!left || !right || !carries(left, right, places)) return false
  const has = (column: BoundColumn): boolean =>
    growing.members.some((member) => sameColumn(member, column))
  if (has(left)) return addMember(growing, right)
  return has(right) ? addMember(growing, left) : false
}

export function keyClass(key: BoundColumn, places: Places): KeyClass {
  const growing: Growing = { members: [], real: new Map() }
  addMember(growing, key)
  const levels = levelsAround(key.level)
  const active = (): Condition[] =>
    levels.flatMap((level) =>
      level.conjuncts
        .filter((conjunct) => isActive(conjunct, level, growing))
        .map((conjunct) => ({ level, predicate: conjunct.predicate })),
    )
  let grew = true
  while (grew) {
    grew = false
    for (const condition of active()) if (joinSides(condition, growing, places)) grew = true
  }
  return { key, members: growing.members, conditions: active() }
}

class PinCompiler {
  readonly #class: KeyClass
  readonly #placer: KeyPlacer
  readonly #places: Places

  constructor(keys: KeyClass, placer: KeyPlacer, places: Places) {
    this.#class = keys
    this.#placer = placer
    this.#places = places
  }

  all(): ShardsOf {
    return this.#every(this.#class.conditions.map((one) => this.#of(one.predicate, one.level)))
  }

  #every(parts: readonly ShardsOf[]): ShardsOf {
    const narrowing = parts.filter((part) => part !== everywhere)
    if (narrowing.length <= 1) return narrowing[0] ?? everywhere
    return (run) => narrowing.map((part) => part(run)).reduce(intersectShards)
  }

  #any(parts: readonly ShardsOf[]): ShardsOf {
    if (parts.includes(everywhere)) return everywhere
    return (run) => parts.map((part) => part(run)).reduce(uniteShards, noShard)
  }

  /** How a column stands to the key: the key itself, an equal of it, or neither. */
  #use(column: ColumnUse, level: Level): 'compare' | 'infer' | undefined {
    const bound = bindColumn(column, level, this.#places)
    if (!bound) return undefined
    if (sameColumn(bound, this.#class.key)) return 'compare'
    return this.#class.members.some((member) => sameColumn(member, bound)) ? 'infer' : undefined
  }

  #of(predicate: Predicate, level: Level): ShardsOf {
    switch (predicate.op) {
      case 'and':
        return this.#every(predicate.parts.map((part) => this.#of(part, level)))
      case 'or':
        return this.#any(predicate.parts.map((part) => this.#of(part, level)))
      case 'never':
        return level === this.#class.key.level ? nowhere : everywhere
      case 'same':
      case 'unknown':
        return everywhere
      default:
        return this.#ofColumn(predicate, level)
    }
  }

  #ofColumn(predicate: Predicate & { column: ColumnUse }, level: Level): ShardsOf {
    const use = this.#use(predicate.column, level)
    if (!use) return everywhere
    switch (predicate.op) {
      case 'equal':
        return this.#equal(predicate.values, use)
      case 'any':
        return this.#array(trust(predicate.array, this.#places), use)
      case 'null':
        return this.#null(use)
      case 'identical':
        return this.#identical(predicate.value, use)
      default:
        return use === 'compare'
          ? this.#range(predicate as Predicate & { op: 'range' })
          : everywhere
    }
  }

  #array(array: Value, use: 'compare' | 'infer'): ShardsOf {
    return (run) => shardsOfArray(array, this.#placer, run, use)
  }

  #equal(given: readonly Value[], use: 'compare' | 'infer'): ShardsOf {
    const placer = this.#placer
    const values = given.map((value) => trust(value, this.#places))
    const only = values[0]!
    if (values.length === 1) return (run) => shardsOfValue(only, placer, run, use)
    return (run) => {
      let set: ShardSet = noShard
      for (const value of values) set = uniteShards(set, shardsOfValue(value, placer, run, use))
      return set
    }
  }

  /** True for the key's own column where no outer join can have put the NULL. */
  #null(use: 'compare' | 'infer'): ShardsOf {
    const { level, relation } = this.#class.key
    if (use !== 'compare' || level.relations[relation]!.nullable) return everywhere
    const set = shardsOfNull(this.#placer)
    return () => set
  }

  #identical(given: Value, use: 'compare' | 'infer'): ShardsOf {
    const placer = this.#placer
    const value = trust(given, this.#places)
    const ofNull = this.#null(use)
    return (run) => {
      if (value.kind !== 'parameter') return shardsOfValue(value, placer, run, use)
      const { parameters } = run
      if (!parameters || value.index >= parameters.count) return allShards
      return parameters.isNull(value.index) ? ofNull(run) : shardsOfValue(value, placer, run, use)
    }
  }

  #range(predicate: Predicate & { op: 'range' }): ShardsOf {
    const placer = this.#placer
    if (!['range', 'list'].includes(placer.table.placement.kind)) return everywhere
    const { inclusive } = predicate
    const low = predicate.low && trust(predicate.low, this.#places)
    const high = predicate.high && trust(predicate.high, this.#places)
    return (run) => {
      const from = boundOf(low, placer, run)
      const to = boundOf(high, placer, run)
      try {
        return placer.ofRange(
          from === undefined ? undefined : { value: from, inclusive },
          to === undefined ? undefined : { value: to, inclusive },
        )
      } catch {
        // A bound that we cannot read: the server may, or will say so itself.
        return allShards
      }
    }
  }
}

/** Shards where rows whose column is `keys.key` can matter, placed by `placer`. */
export function compilePin(keys: KeyClass, placer: KeyPlacer, places: Places): ShardsOf {
  return new PinCompiler(keys, placer, places).all()
}
