/** Generated SELECTs whose rows are each of one shard, with the clauses that are merged, over awkward values. */
import type { Chooser } from '../support/arbitraries/chooser.js'
import type { AskedParameter } from './ask.js'
import { type Column, columns } from './merge-tables.js'

export type Order = 'total' | 'none'

export interface MadeStatement {
  readonly family: string
  readonly sql: string
  readonly order: Order
  readonly parameters: readonly AskedParameter[]
}

const int8 = (value: number): Buffer => {
  const bytes = Buffer.alloc(8)
  bytes.writeBigInt64BE(BigInt(value))
  return bytes
}

export class MergeStatements {
  readonly #choose: Chooser
  readonly #mayBind: boolean
  #parameters: AskedParameter[] = []

  constructor(choose: Chooser, mayBind: boolean) {
    this.#choose = choose
    this.#mayBind = mayBind
  }

  statement(): MadeStatement {
    const choose = this.#choose
    const families = {
      order: () => this.#ordered(),
      limit: () => this.#limited(),
      ties: () => this.#ties(),
      distinct: () => this.#distinct(),
      'distinct on': () => this.#distinctOn(),
      group: () => this.#grouped(),
      aggregates: () => this.#aggregates(),
      'group by key': () => this.#keyed(),
      window: () => this.#window(),
      join: () => this.#join(),
    }
    const family = choose.pick(Object.keys(families) as (keyof typeof families)[])
    this.#parameters = []
    const made = families[family]()
    return { family, ...made, parameters: this.#parameters }
  }

  #value(value: number): string {
    if (!this.#mayBind || this.#choose.chance(0.5)) return String(value)
    const format = this.#choose.chance(0.5) ? 1 : 0
    const bytes = format === 1 ? int8(value) : Buffer.from(String(value))
    this.#parameters.push({ type: format === 1 ? 20 : this.#choose.pick([0, 20]), format, bytes })
    return `$${this.#parameters.length}`
  }

  #column(fits: (column: Column) => boolean = () => true): Column {
    return this.#choose.pick(columns.filter(fits))
  }

  #table(): string {
    return this.#choose.pick(['big', 'big', 'big', 'few', 'none'])
  }

  #where(): string {
    const choose = this.#choose
    const condition = choose.pick([
      undefined,
      undefined,
      undefined,
      () => `i4 > ${this.#value(0)}`,
      () => `k = any(array[3, 4, 7, 11])`,
      () => `t is not null`,
      () => `false`,
      () => `id % 3 = ${this.#value(1)}`,
    ])
    return condition ? ` where ${condition()}` : ''
  }

  #direction(): string {
    const direction = this.#choose.pick(['', '', ' asc', ' desc', ' using <', ' using >'])
    return direction + this.#choose.pick(['', '', ' nulls first', ' nulls last'])
  }

  /** LIMIT and OFFSET in one of their forms. */
  #limits(): string {
    const choose = this.#choose
    const limit = (): string => this.#value(choose.pick([0, 1, 2, 5, 10, 100]))
    const offset = (): string => this.#value(choose.pick([0, 1, 3, 25]))
    return choose.pick([
      () => ` limit ${limit()}`,
      () => ` limit ${limit()} offset ${offset()}`,
      () => ` offset ${offset()} limit ${limit()}`,
      () => ` offset ${offset()}`,
      () => ` limit all offset ${offset()}`,
      () => ` limit null`,
      () => ` offset ${offset()} rows fetch first ${choose.pick([1, 4])} rows only`,
      () => ' fetch next row only',
      () => ` limit ${this.#value(-1)}`,
    ])()
  }

  #expression(): string {
    const choose = this.#choose
    return choose.pick([
      () => this.#column().name,
      () => this.#column().name,
      () => `${this.#column(({ isNumber }) => isNumber === true).name} * 2`,
      () => `abs(${this.#column(({ isNumber }) => isNumber === true).name})`,
      () => `lower(${choose.pick(['t', 'c', 'v'])})`,
      () => `length(${choose.pick(['t', 'c', 'v'])})`,
      () => `coalesce(${choose.pick(['t', 'c', 'v'])}, 'none')`,
      () => `${choose.pick(['t', 'c'])} || '!'`,
      () => `date_trunc('month', ts)`,
      () => `extract(year from d)`,
      () => `i4 is null`,
      () => `case when b then i4 else i2 end`,
      () => `i8::text`,
      () => `t collate "C"`,
      () => `-i4`,
    ])()
  }

  #ordered(): { sql: string; order: Order } {
    const choose = this.#choose
    const star = choose.chance(0.15)
    const targets = choose.some(1, 4, () => this.#expression())
    const aliased = targets.map((one, i) => (choose.chance(0.4) ? `${one} as a${i}` : one))
    const keys = choose.some(1, 3, () => {
      const key = choose.pick([
        () => this.#expression(),
        () => (star ? 'id' : String(1 + choose.below(targets.length))),
        () => {
          const at = aliased.findIndex((one) => one.includes(' as a'))
          return at < 0 || star ? this.#expression() : `a${at}`
        },
      ])()
      return key + this.#direction()
    })
    const last = choose.pick(['id', 'id desc', 'm.id'])
    const list = star ? choose.pick(['*', 'm.*', 'm.*, i4 + 1']) : aliased.join(', ')
    const sql = `select ${list} from ${this.#table()} m${this.#where()} order by ${[...keys, last].join(', ')}`
    return { sql: choose.chance(0.5) ? sql + this.#limits() : sql, order: 'total' }
  }

  #limited(): { sql: string; order: Order } {
    if (this.#choose.chance(0.3)) {
      const list = this.#choose.pick(['*', 'id, t'])
      return { sql: `select ${list} from big limit 1000`, order: 'none' }
    }
    const keys = `${this.#column().name}${this.#direction()}, id`
    return {
      sql: `select id, ${this.#expression()} from ${this.#table()} order by ${keys}${this.#limits()}`,
      order: 'total',
    }
  }

  #ties(): { sql: string; order: Order } {
    const choose = this.#choose
    const key = this.#column(({ unlike }) => !unlike)
    const offset = choose.chance(0.5) ? ` offset ${this.#value(choose.below(4))}` : ''
    const fetch = ` fetch first ${choose.pick([0, 1, 3, 10])} rows with ties`
    const sql = `select ${key.name} from ${this.#table()} order by ${key.name}${this.#direction()}${offset}${fetch}`
    return { sql, order: 'total' }
  }

  #distinct(): { sql: string; order: Order } {
    const choose = this.#choose
    const like = (): string => this.#column(({ unlike }) => !unlike).name
    const names = [...new Set(choose.some(1, 3, like))]
    const keys = choose.chance(0.6) ? names.map((name) => name + this.#direction()) : []
    const order = keys.length > 0 ? ` order by ${keys.join(', ')}` : ''
    const limits = keys.length > 0 && choose.chance(0.5) ? this.#limits() : ''
    const sql = `select distinct ${names.join(', ')} from ${this.#table()}${this.#where()}${order}${limits}`
    return { sql, order: keys.length > 0 ? 'total' : 'none' }
  }

  #distinctOn(): { sql: string; order: Order } {
    const choose = this.#choose
    const names = [...new Set(choose.some(1, 2, () => this.#column(({ unlike }) => !unlike).name))]
    const keys = names.map((name) => name + this.#direction())
    const limits = choose.chance(0.4) ? this.#limits() : ''
    const rest = choose.pick(['id', 'i4, id', 't desc, id'])
    const list = choose.pick(['id, i4', '*', `id, ${names[0]}`])
    const sql = `select distinct on (${names.join(', ')}) ${list} from ${this.#table()}${this.#where()} order by ${[...keys, rest].join(', ')}${limits}`
    return { sql, order: 'total' }
  }

  #aggregate(): string {
    const choose = this.#choose
    const number = (): string => this.#column(({ isNumber }) => isNumber === true).name
    const exact = (): string =>
      this.#column(({ isNumber, name }) => isNumber === true && name !== 'f4').name
    const call = choose.pick([
      () => 'count(*)',
      () => `count(${this.#column().name})`,
      () => `sum(${number()})`,
      () => `sum(${number()} + 1)`,
      () => `avg(${number()})`,
      () =>
        `${choose.pick(['min', 'max'])}(${this.#column(({ unlike, name }) => !unlike && name !== 'b' && name !== 'u' && name !== 'y').name})`,
      () =>
        `${choose.pick(['stddev', 'stddev_pop', 'variance', 'var_pop', 'stddev_samp', 'var_samp'])}(${exact()})`,
      () => `${choose.pick(['bool_and', 'bool_or', 'every'])}(b)`,
      () => `${choose.pick(['bit_and', 'bit_or'])}(${choose.pick(['i2', 'i4', 'i8'])})`,
      () => `sum(f8) filter (where f8 between -2000 and 2000)`,
    ])()
    return choose.chance(0.2) && !call.includes('filter')
      ? `${call} filter (where id % 2 = 0)`
      : call
  }

  #aggregates(): { sql: string; order: Order } {
    const list = this.#choose.some(1, 4, () => this.#aggregate())
    const limits = this.#choose.chance(0.1) ? ' limit 1' : ''
    return {
      sql: `select ${list.join(', ')} from ${this.#table()}${this.#where()}${limits}`,
      order: 'none',
    }
  }

  #grouped(): { sql: string; order: Order } {
    const choose = this.#choose
    const like = (): string =>
      choose.chance(0.7)
        ? this.#column(({ unlike }) => !unlike).name
        : choose.pick(["date_trunc('year', ts)", 'lower(t)', 'i4 % 3', 'i4 is null', 'length(c)'])
    const keys = [...new Set(choose.some(1, 2, like))]
    const shown = keys.filter(() => choose.chance(0.8))
    const aggregates = choose.some(1, 3, () => this.#aggregate())
    const list = [...shown.map((key, i) => `${key} as g${i}`), ...aggregates]
    const by = keys.map((key) => {
      const at = shown.indexOf(key)
      if (at < 0) return key
      return choose.pick([key, `g${at}`, String(at + 1)])
    })
    const total = choose.chance(0.6)
    const sorted = keys.map((key) => key + this.#direction())
    const byAggregate = choose.chance(0.3)
      ? [`${shown.length + 1}${choose.pick(['', ' desc'])}`]
      : []
    const order = total ? ` order by ${[...byAggregate, ...sorted].join(', ')}` : ''
    const limits = total && choose.chance(0.5) ? this.#limits() : ''
    const sql = `select ${list.join(', ')} from ${this.#table()}${this.#where()} group by ${by.join(', ')}${order}${limits}`
    return { sql, order: total ? 'total' : 'none' }
  }

  #keyed(): { sql: string; order: Order } {
    const choose = this.#choose
    const having = choose.chance(0.5) ? ' having count(*) > 1' : ''
    const aggregate = choose.pick([
      'count(distinct i4)',
      'string_agg(t, $$,$$ order by id)',
      'sum(i4) + 1',
      this.#aggregate(),
    ])
    const limits = choose.chance(0.5) ? this.#limits() : ''
    const key = choose.pick(['count(*) desc, k', 'k', '2, k nulls first', 'max(id), 1'])
    return {
      sql: `select k, ${aggregate} from ${this.#table()}${this.#where()} group by k${having} order by ${key}${limits}`,
      order: 'total',
    }
  }

  #window(): { sql: string; order: Order } {
    const call = this.#choose.pick(['row_number()', 'rank()', 'sum(i4)', 'lag(t)', 'count(*)'])
    const sql = `select id, ${call} over (partition by k order by id) from ${this.#table()}${this.#where()} order by 1`
    return { sql: sql + (this.#choose.chance(0.5) ? this.#limits() : ''), order: 'total' }
  }

  #join(): { sql: string; order: Order } {
    const choose = this.#choose
    const from = choose.pick([
      'big m join other o on o.k = m.k',
      'big m join other o using (k)',
      'big m left join other o on o.k = m.k and o.w > 2',
      'big m join kinds o on o.id = m.i4',
    ])
    const label = from.includes('kinds') ? 'title' : 'label'
    const last = from.includes('kinds') ? 'm.id, o.id' : 'm.id, o.oid_'
    return choose.pick([
      () => ({
        sql: `select m.id, o.${label} from ${from} order by o.${label}${this.#direction()}, ${last} limit ${this.#value(20)}`,
        order: 'total' as const,
      }),
      () => ({
        sql: `select o.${label}, count(*), sum(m.i4) from ${from} group by o.${label} order by 1`,
        order: 'total' as const,
      }),
      () => ({ sql: `select distinct o.${label}, m.b from ${from}`, order: 'none' as const }),
    ])()
  }
}
