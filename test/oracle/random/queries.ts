/**
 * Random SELECTs over a random schema: joins on keys and on anything, windows, set operations, subqueries, CTEs, groups,
 * whose rows (and, where it is said, their order) are the same whatever plan is made.
 */
import type { Chooser } from '../../support/arbitraries/chooser.js'
import { Expressions, type Literal, type Source, type Value } from './expressions.js'
import type { Table, Type, World } from './world.js'

export interface MadeQuery {
  /** With marks in the places of its literals. */
  readonly sql: string
  readonly literals: readonly Literal[]
  readonly isOrdered: boolean
}

/** A query whose columns are named c1, c2, … */
interface Query {
  readonly sql: string
  readonly types: readonly Type[]
  /** Further keys that make its order total; it is no operand of a set operation then. */
  readonly unique?: readonly string[]
}

/** Of equal values one stands for all, whichever: types whose equal values look alike. */
const groupable: readonly Type[] = ['int', 'text', 'word', 'date', 'bool', 'big', 'mood', 'time']
const settable: readonly Type[] = ['int', 'text', 'big', 'date', 'word', 'bool']
const shown: readonly Type[] = [
  'int',
  'num',
  'text',
  'word',
  'big',
  'date',
  'time',
  'bool',
  'uuid',
  'float',
  'mood',
  'loose',
]
const joins = ['join', 'left join', 'join', 'right join', 'full join', 'cross join']

class QueryMaker extends Expressions {
  readonly #world: World
  #names = 0

  constructor(choose: Chooser, world: World) {
    super(choose)
    this.#world = world
  }

  statement(): { sql: string; isOrdered: boolean } {
    const { choose } = this
    const query = this.#query(2)
    if (choose.chance(0.15)) return { sql: query.sql, isOrdered: false }
    const numbers = query.types.map(
      (_, i) => `${i + 1}${choose.pick(['', '', ' desc', ' nulls first', ' desc nulls last'])}`,
    )
    const isLoose = query.types.includes('loose')
    if (isLoose && !query.unique) return { sql: query.sql, isOrdered: false }
    const order = [...numbers, ...(isLoose ? query.unique! : [])].join(', ')
    const limit = choose.pick([
      '',
      '',
      () => ` limit ${choose.below(9)}`,
      () => ` limit ${choose.below(9)} offset ${choose.below(4)}`,
      () => ` offset ${choose.below(4)} rows fetch first ${choose.below(9)} rows with ties`,
    ])
    const tail = ` order by ${order}${typeof limit === 'string' ? limit : limit()}`
    const isPlain = isLoose || choose.chance(0.6)
    return {
      sql: isPlain ? query.sql + tail : `select * from (${query.sql}) q${tail}`,
      isOrdered: true,
    }
  }

  #name(): string {
    return `x${++this.#names}`
  }

  #query(depth: number): Query {
    const makers: (() => Query)[] = [
      () => this.#plain(depth),
      () => this.#grouped(depth),
      () => this.#distinct(depth),
    ]
    if (depth > 0) {
      makers.push(
        () => this.#windowed(depth),
        () => this.#setOperation(depth),
        () => this.#withCte(depth),
        () => this.#recursive(),
        () => this.#first(depth),
        () => this.#grouped(depth),
      )
    }
    return this.choose.pick(makers)()
  }

  #table(table: Table): Source {
    const alias = this.#name()
    const columns = table.columns.map(({ name, type }) => ({ sql: `${alias}.${name}`, type }))
    const written = this.choose.chance(0.15) ? `${this.#world.schema}.${table.name}` : table.name
    const keys = table.key ? [{ sql: `${alias}.${table.key.name}`, type: table.key.type }] : []
    return { sql: `${written} ${alias}`, columns, unique: [`${alias}.id`], keys }
  }

  #item(depth: number): Source {
    const { choose } = this
    if (depth === 0 || choose.chance(0.8)) return this.#table(choose.pick(this.#world.tables))
    const alias = this.#name()
    if (choose.chance(0.15)) {
      const columns: Value[] = [{ sql: `${alias}.n`, type: 'int' }]
      return { sql: `generate_series(1, 3) ${alias}(n)`, columns, keys: [] }
    }
    if (choose.chance(0.15)) {
      const values = choose.some(1, 3, () => `(${choose.below(9)}, '${choose.pick(['a', 'B'])}')`)
      const columns: Value[] = [{ sql: `${alias}.a`, type: 'int' }]
      return { sql: `(values ${values.join(', ')}) ${alias}(a, b)`, columns, keys: [] }
    }
    const { sql, types } = this.#query(depth - 1)
    const columns = types.map((type, i) => ({ sql: `${alias}.c${i + 1}`, type }))
    return { sql: `(${sql}) ${alias}`, columns, keys: [] }
  }

  #from(depth: number): Source {
    const { choose } = this
    let whole = this.#item(depth)
    for (let more = choose.pick([0, 1, 0, 1, 2]); more > 0; more--) {
      const lateral = depth > 0 && choose.chance(0.1)
      whole = lateral ? this.#lateral(whole) : this.#joined(whole, this.#item(depth))
    }
    return whole
  }

  #lateral(left: Source): Source {
    const inner = this.#table(this.choose.pick(this.#world.tables))
    const alias = this.#name()
    const where = this.#match(left, inner) ?? 'true'
    const sql = `${left.sql} left join lateral (select count(*) as n from ${inner.sql} where ${where}) ${alias} on true`
    return { ...left, sql, columns: [...left.columns, { sql: `${alias}.n`, type: 'big' }] }
  }

  #joined(left: Source, right: Source): Source {
    const { choose } = this
    const join = choose.pick(joins)
    const columns = [...left.columns, ...right.columns]
    let on = join === 'cross join' ? '' : (this.#match(left, right) ?? '1 = 1')
    if (on && join !== 'full join' && choose.chance(0.25))
      on += ` and ${this.condition(columns, 0)}`
    const unique =
      left.unique && right.unique ? { unique: [...left.unique, ...right.unique] } : undefined
    return {
      sql: `${left.sql} ${join} ${right.sql}${on && ` on ${on}`}`,
      columns,
      keys: [...left.keys, ...right.keys],
      ...unique,
    }
  }

  /** An equality of the two: half of the time of their sharding keys. */
  #match(left: Source, right: Source): string | undefined {
    const { choose } = this
    const pairs = (a: readonly Value[], b: readonly Value[]) =>
      a.flatMap((one) =>
        b.filter(({ type }) => type === one.type).map((two) => `${one.sql} = ${two.sql}`),
      )
    const keys = pairs(left.keys, right.keys)
    if (keys.length > 0 && choose.chance(0.6)) return choose.pick(keys)
    const all = pairs(left.columns, right.columns)
    return all.length > 0 ? choose.pick(all) : undefined
  }

  #where(from: Source, depth: number): string {
    const { choose } = this
    if (choose.chance(0.35)) return ''
    const parts = choose.some(1, 2, () => this.#part(from, depth))
    return ` where ${parts.join(' and ')}`
  }

  #part(from: Source, depth: number): string {
    const { choose } = this
    if (choose.chance(0.3)) {
      const onKey = this.onKey(from)
      if (onKey) return onKey
    }
    if (depth === 0 || choose.chance(0.6)) return this.condition(from.columns, 1)
    const inner = this.#table(choose.pick(this.#world.tables))
    const int = inner.columns[0]!.sql
    const where = this.#match(from, inner) ?? 'true'
    return choose.pick([
      () =>
        `${choose.pick(['', 'not '])}exists (select 1 from ${inner.sql} where ${where}${choose.pick(['', ` and ${this.condition(inner.columns, 0)}`])})`,
      () =>
        `${this.value(from.columns, 'int')} ${choose.pick(['in', 'not in'])} (select ${int} from ${inner.sql} where ${this.condition(inner.columns, 0)})`,
      () =>
        `${this.value(from.columns, 'int')} ${choose.pick(['>', '='])} (select max(${int}) from ${inner.sql} where ${where})`,
      () =>
        `${this.value(from.columns, 'int')} ${choose.pick(['> all', '<= any'])} (select ${int} from ${inner.sql})`,
      () => this.#keyIn(from, inner),
    ])()
  }

  #keyIn(from: Source, inner: Source): string {
    const key = this.column(from.keys, ['big', 'uuid', 'text'])
    const same = key && this.column(inner.keys, [key.type])
    if (!key || !same) return 'true'
    return `${key.sql} in (select ${same.sql} from ${inner.sql} where ${this.condition(inner.columns, 0)})`
  }

  #list(values: readonly Value[]): string {
    return values.map(({ sql }, i) => `${sql} as c${i + 1}`).join(', ')
  }

  #plain(depth: number, wanted?: readonly Type[]): Query {
    const { choose } = this
    const from = this.#from(depth)
    const types = wanted ?? choose.some(1, 4, () => choose.pick(shown))
    const values: Value[] = types.map((type) => ({ sql: this.value(from.columns, type), type }))
    if (!wanted && depth > 0 && choose.chance(0.15)) {
      const inner = this.#table(choose.pick(this.#world.tables))
      const where = this.#match(from, inner) ?? 'true'
      values.push({ sql: `(select count(*) from ${inner.sql} where ${where})`, type: 'big' })
    }
    return {
      sql: `select ${this.#list(values)} from ${from.sql}${this.#where(from, depth)}`,
      types: values.map(({ type }) => type),
      ...(from.unique && !wanted ? { unique: from.unique } : {}),
    }
  }

  #keysOf(from: Source, least: number): Value[] {
    const { choose } = this
    const fitting = from.columns.filter(({ type }) => groupable.includes(type))
    if (fitting.length === 0) return []
    const names = choose.some(least, 2, () => choose.pick(fitting))
    return [...new Map(names.map((one) => [one.sql, one])).values()]
  }

  #grouped(depth: number): Query {
    const { choose } = this
    const from = this.#from(depth)
    const keys = this.#keysOf(from, 0)
    if (from.keys.length > 0 && choose.chance(0.25)) keys.push(from.keys[0]!)
    const own = [...new Map(keys.map((one) => [one.sql, one])).values()]
    const aggregates = choose.some(1, 3, () => this.aggregated(from.columns))
    const names = own.map(({ sql }) => sql).join(', ')
    const by = choose.pick([
      names,
      names,
      names,
      `rollup(${names})`,
      `grouping sets ((${names}), ())`,
    ])
    const having = choose.chance(0.3)
      ? ` having ${choose.pick(['count(*) > 1', `max(${this.value(from.columns, 'int')}) > ${this.literal('int')}`])}`
      : ''
    const values = [...own, ...aggregates]
    return {
      sql: `select ${this.#list(values)} from ${from.sql}${this.#where(from, depth)}${names && ` group by ${by}`}${having}`,
      types: values.map(({ type }) => type),
    }
  }

  #distinct(depth: number): Query {
    const from = this.#from(depth)
    const keys = this.#keysOf(from, 1)
    const values = keys.length > 0 ? keys : [{ sql: this.literal('int'), type: 'int' as const }]
    return {
      sql: `select distinct ${this.#list(values)} from ${from.sql}${this.#where(from, depth)}`,
      types: values.map(({ type }) => type),
    }
  }

  /** The first row of each of some groups. */
  #first(depth: number): Query {
    const from = this.#item(0)
    const keys = this.#keysOf(from, 1)
    const [key] = keys
    if (!key || !from.unique) return this.#plain(depth)
    const types: Type[] = [key.type, 'int']
    const values: Value[] = [key, { sql: this.value(from.columns, 'int'), type: 'int' }]
    const order = [key.sql, ...from.unique].join(', ')
    const sql = `select distinct on (${key.sql}) ${this.#list(values)} from ${from.sql}${this.#where(from, depth)} order by ${order}`
    return { sql: `select * from (${sql}) f`, types }
  }

  #windowed(depth: number): Query {
    const { choose } = this
    const from = this.#from(depth)
    const int = this.value(from.columns, 'int')
    const num = this.value(from.columns, 'num')
    const [part] = this.#keysOf(from, 1)
    const key = from.keys.length > 0 && choose.chance(0.4) ? from.keys[0] : part
    const partition = key ? `partition by ${key.sql} ` : ''
    const calls: (() => Value)[] = [
      () => ({ sql: `count(*) over (${partition})`, type: 'big' }),
      () => ({ sql: `rank() over (${partition}order by ${int})`, type: 'big' }),
      () => ({ sql: `dense_rank() over (order by ${num} desc nulls last)`, type: 'big' }),
      () => ({ sql: `sum(${num}) over (${partition}order by ${int})`, type: 'num' }),
      () => ({
        sql: `max(${num}) over (order by ${int} range between 2 preceding and current row)`,
        type: 'num',
      }),
    ]
    const { unique } = from
    if (unique) {
      const order = `over (${partition}order by ${unique.join(', ')})`
      calls.push(
        () => ({ sql: `row_number() ${order}`, type: 'big' }),
        () => ({ sql: `lag(${int}, 2) ${order}`, type: 'int' }),
        () => ({
          sql: `sum(${int}) over (${partition}order by ${unique.join(', ')} rows between 1 preceding and 1 following)`,
          type: 'big',
        }),
        () => ({ sql: `ntile(3) ${order}`, type: 'int' }),
      )
    }
    const values: Value[] = [
      { sql: int, type: 'int' },
      ...choose.some(1, 2, () => choose.pick(calls)()),
    ]
    return {
      sql: `select ${this.#list(values)} from ${from.sql}${this.#where(from, depth)}`,
      types: values.map(({ type }) => type),
    }
  }

  #setOperation(depth: number): Query {
    const { choose } = this
    const types = choose.some(1, 3, () => choose.pick(settable))
    const word = choose.pick(['union all', 'union', 'intersect', 'except', 'except all'])
    const left = this.#plain(depth - 1, types)
    const right = this.#plain(depth - 1, types)
    return { sql: `(${left.sql}) ${word} (${right.sql})`, types }
  }

  #withCte(depth: number): Query {
    const { choose } = this
    // a CTE may bear the name of a table, which it hides
    const name = choose.pick(['cte', 'beta', 'ref'])
    const { sql, types } = this.#query(depth - 1)
    const cte: Source = {
      sql: name,
      columns: types.map((type, i) => ({ sql: `${name}.c${i + 1}`, type })),
      keys: [],
    }
    const other = this.#world.tables.find((table) => table.name !== name)!
    const from = choose.chance(0.5) ? cte : this.#joined(cte, this.#table(other))
    const value = this.column(from.columns, settable) ?? { sql: '1', type: 'int' as const }
    const word = choose.pick(['', 'materialized ', 'not materialized '])
    return {
      sql: `with ${name} as ${word}(${sql}) select ${value.sql} as c1, 1 as c2 from ${from.sql}${this.#where(from, 0)}`,
      types: [value.type, 'int'],
    }
  }

  #recursive(): Query {
    const table = this.#table(this.choose.pick(this.#world.tables))
    const id = table.columns[0]!.sql
    const start = `select ${id} from ${table.sql} where ${this.condition(table.columns, 0)}`
    const sql = `with recursive w(n, d) as (select s.*, 1 from (${start}) s union select ${id}, d + 1 from ${table.sql} join w on ${id} = w.n + 1 where d < 4) select n as c1, d as c2 from w`
    return { sql, types: ['int', 'int'] }
  }
}

export function makeQuery(choose: Chooser, world: World): MadeQuery {
  const maker = new QueryMaker(choose, world)
  const { sql, isOrdered } = maker.statement()
  return { sql, isOrdered, literals: maker.literals }
}
