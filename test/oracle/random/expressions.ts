/** Values, conditions and aggregates over the columns that a random query has at hand. */
import type { Chooser } from '../../support/arbitraries/chooser.js'
import type { Type } from './world.js'
import { types } from './world.js'

export interface Value {
  readonly sql: string
  readonly type: Type
}

/** A literal of the statement, which becomes a parameter where the protocol has them. */
export interface Literal {
  readonly type: Type
  readonly text: string
}

/** Rows that a query reads. */
export interface Source {
  readonly sql: string
  readonly columns: readonly Value[]
  /** Together they tell its rows apart; absent: nothing is known to. */
  readonly unique?: readonly string[]
  /** The sharding key among the columns. */
  readonly keys: readonly Value[]
}

/** Marks the place of literal n; no statement has it otherwise. */
export const placeOf = (index: number): string => `«${index}»`

const comparable: readonly Type[] = ['int', 'big', 'num', 'text', 'word', 'date', 'time', 'uuid']

export class Expressions {
  readonly literals: Literal[] = []
  protected readonly choose: Chooser

  constructor(choose: Chooser) {
    this.choose = choose
  }

  literal(type: Type): string {
    const text = this.choose.pick(types[type].values)
    this.literals.push({ type, text })
    return placeOf(this.literals.length - 1)
  }

  value(columns: readonly Value[], type: Type): string {
    const { choose } = this
    const fitting = columns.filter((column) => column.type === type)
    if (fitting.length === 0) return this.literal(type)
    const { sql } = choose.pick(fitting)
    return choose.chance(0.3) ? this.#derived(sql, type, columns) : sql
  }

  #derived(sql: string, type: Type, columns: readonly Value[]): string {
    const { choose } = this
    switch (type) {
      case 'int':
        return choose.pick([
          () => `${sql} + 1`,
          () => `coalesce(${sql}, ${this.literal('int')})`,
          () => `abs(${sql} - 5)`,
          () => `case when ${this.condition(columns, 0)} then ${sql} else 0 end`,
          () => `nullif(${sql}, ${this.literal('int')})`,
        ])()
      case 'big':
        return choose.pick([`${sql} * 2`, `coalesce(${sql}, 0::bigint)`, `greatest(${sql}, 3)`])
      case 'num':
        return choose.pick([`-${sql}`, `coalesce(${sql}, 1.50)`, `${sql} + 0.25`])
      case 'text':
      case 'word':
        return choose.pick([`upper(${sql})`, `${sql} || 'x'`, `coalesce(${sql}, 'none')`])
      case 'date':
        return `coalesce(${sql}, date '2000-01-01')`
      case 'time':
        return `date_trunc('year', ${sql})`
      case 'bool':
        return `not ${sql}`
      case 'float':
        return `${sql} * 2`
      default:
        return sql
    }
  }

  /** A column as it stands, of a type of the list. */
  column(columns: readonly Value[], among: readonly Type[]): Value | undefined {
    const fitting = columns.filter(({ type }) => among.includes(type))
    return fitting.length === 0 ? undefined : this.choose.pick(fitting)
  }

  condition(columns: readonly Value[], depth: number): string {
    const { choose } = this
    const type = this.column(columns, comparable)?.type ?? 'int'
    const value = this.value(columns, type)
    return choose.pick([
      () => `${value} ${choose.pick(['=', '<>', '<', '>='])} ${this.value(columns, type)}`,
      () => `${value} is ${choose.pick(['', 'not '])}null`,
      () => `${value} in (${choose.some(1, 3, () => this.literal(type)).join(', ')})`,
      () => `${value} between ${this.literal(type)} and ${this.literal(type)}`,
      () => `${value} is not distinct from ${this.literal(type)}`,
      () => this.#looseCondition(columns),
      () =>
        depth > 0
          ? `(${this.condition(columns, depth - 1)} ${choose.pick(['or', 'and'])} ${this.condition(columns, depth - 1)})`
          : `${value} = ${this.literal(type)}`,
      () => (depth > 0 ? `not (${this.condition(columns, depth - 1)})` : `${value} is null`),
    ])()
  }

  #looseCondition(columns: readonly Value[]): string {
    const column = this.column(columns, ['loose', 'mood', 'bool', 'float'])
    if (!column) return 'true'
    if (column.type === 'bool') return column.sql
    return `${column.sql} ${this.choose.pick(['=', '<'])} ${this.literal(column.type)}`
  }

  /** Often on the sharding key, so that one shard or some of them are enough. */
  onKey({ keys }: Source): string | undefined {
    const { choose } = this
    if (keys.length === 0) return undefined
    const { sql, type } = choose.pick(keys)
    return choose.pick([
      () => `${sql} = ${this.literal(type)}`,
      () => `${sql} in (${choose.some(1, 3, () => this.literal(type)).join(', ')})`,
      () => `${sql} = any (array[${choose.some(1, 2, () => this.literal(type)).join(', ')}])`,
      () => `${sql} is null`,
      () => `(${sql} = ${this.literal(type)} or ${sql} = ${this.literal(type)})`,
      () => `${sql} is not distinct from ${this.literal(type)}`,
    ])()
  }

  aggregate(columns: readonly Value[]): Value {
    const { choose } = this
    const plain = this.#plainAggregate(columns)
    if (choose.chance(0.8)) return plain
    return { ...plain, sql: `${plain.sql} filter (where ${this.condition(columns, 0)})` }
  }

  #plainAggregate(columns: readonly Value[]): Value {
    const { choose } = this
    const int = this.value(columns, 'int')
    const num = this.value(columns, 'num')
    const text = this.value(columns, 'text')
    const word = this.value(columns, 'word')
    return choose.pick<() => Value>([
      () => ({ sql: 'count(*)', type: 'big' }),
      () => ({ sql: `count(${word})`, type: 'big' }),
      () => ({ sql: `sum(${num})`, type: 'num' }),
      () => ({ sql: `sum(${int})`, type: 'big' }),
      () => ({ sql: `max(${int})`, type: 'int' }),
      () => ({ sql: `min(${text})`, type: 'text' }),
      () => ({ sql: `max(${word})`, type: 'word' }),
      () => ({ sql: `sum(${this.value(columns, 'float')})`, type: 'float' }),
      () => ({ sql: `min(${this.value(columns, 'time')})`, type: 'time' }),
      () => ({ sql: `avg(${this.value(columns, 'float')})`, type: 'float' }),
      () => ({ sql: `bool_or(${this.value(columns, 'bool')})`, type: 'bool' }),
      () => ({ sql: `bit_xor(${int})`, type: 'int' }),
      () => ({ sql: `count(distinct ${word})`, type: 'big' }),
      () => ({ sql: `string_agg(${text}, ',' order by ${text})`, type: 'text' }),
      () => ({ sql: `array_to_string(array_agg(${int} order by ${int}), '+')`, type: 'text' }),
      () => ({ sql: `percentile_disc(0.5) within group (order by ${int})`, type: 'int' }),
    ])()
  }

  /** An aggregate alone, or inside an expression. */
  aggregated(columns: readonly Value[]): Value {
    const { choose } = this
    const one = this.aggregate(columns)
    if (choose.chance(0.6)) return one
    const num = this.value(columns, 'num')
    return choose.pick<() => Value>([
      () => ({ sql: 'count(*) + 1', type: 'big' }),
      () => ({ sql: `round(avg(${num}), 2)`, type: 'num' }),
      () => ({ sql: `coalesce(sum(${num}), 0.00)`, type: 'num' }),
      () => ({ sql: `round(stddev_pop(${num}), 2)`, type: 'num' }),
      () => ({ sql: `count(*) filter (where ${this.condition(columns, 1)})`, type: 'big' }),
      () => ({ sql: `case when count(*) > 2 then 'many' else 'few' end`, type: 'text' }),
      () => ({ sql: `max(${this.value(columns, 'int')}) - count(*)`, type: 'big' }),
    ])()
  }
}
