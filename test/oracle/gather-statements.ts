/** Random reads that need rows of several shards in one place: joins on any column, windows, set operations, subqueries. */
import type { Chooser } from '../support/arbitraries/chooser.js'
import type { AskedParameter } from './ask.js'

/** `code` is text of another collation: the two are not compared, because whether that fails hangs on the plan. */
type Type = 'int' | 'num' | 'text' | 'code' | 'date' | 'bool'

interface Column {
  readonly sql: string
  readonly type: Type
}

/** A query with the types of its columns, which are named c1, c2, … */
interface Query {
  readonly sql: string
  readonly types: readonly Type[]
}

const tables: Readonly<Record<string, Readonly<Record<string, Type>>>> = {
  acct: { k: 'int', id: 'int', n: 'int', amt: 'num', t: 'text', c: 'code', d: 'date' },
  move: { k: 'int', id: 'int', ref: 'int', amt: 'num', t: 'text', d: 'date', ok: 'bool' },
  kind: { code: 'text', label: 'text', n: 'int' },
}

export const tableNames = Object.keys(tables)

/** `en`: a collation whose order is not that of the bytes. */
export const schemaOf = (en: string): string => `
create table acct (k bigint, id int, n int, amt numeric(12,3), t text collate "${en}", c varchar(12) collate "C", d date, primary key (k, id));
create table move (k bigint, id int, ref int, amt numeric, t text collate "${en}", d date, ok boolean, primary key (k, id));
create table kind (code text primary key, label text, n smallint)`

/** Some shards get few rows of `move`, and one none of `acct`'s keys below 3. */
export const rowsSql = `
insert into acct select (i * 7) % 11, i, nullif(i % 6, 4), case when i % 5 = 0 then null else (i % 13) * 1.25 end,
  (array['Ärger','arg','Zug','zug','','Berg',null,'bär'])[1 + i % 8], nullif(chr(65 + i % 5) || i % 3, 'C1'), date '2024-02-27' + i % 9
  from generate_series(1, 34) i;
insert into move select 3 + (i * 5) % 4, i, i % 36, round(i / 7.0, 2), (array['zug','Berg','arg',null])[1 + i % 4], date '2024-02-25' + i % 7, nullif(i % 3, 2) = 1
  from generate_series(1, 45) i;
insert into kind values ('arg', 'Argument', 1), ('Zug', null, 2), ('zug', 'train', null), ('Berg', 'mountain', 4)`

export class StatementMaker {
  readonly parameters: AskedParameter[] = []
  readonly #choose: Chooser
  readonly #binds: boolean
  #names = 0

  /** `binds`: some values become parameters. */
  constructor(choose: Chooser, binds: boolean) {
    this.#choose = choose
    this.#binds = binds
  }

  /** `isOrdered`: the rows come in one order only. */
  statement(): { sql: string; isOrdered: boolean } {
    const choose = this.#choose
    const { sql, types } = this.#query(2)
    if (choose.chance(0.25)) return { sql, isOrdered: false }
    const order = types.map((_, i) => `${i + 1}${choose.pick(['', '', ' desc', ' nulls first'])}`)
    const limit = choose.chance(0.3) ? ` limit ${choose.below(9)} offset ${choose.below(4)}` : ''
    const whole = choose.chance(0.5)
      ? `${sql} order by ${order.join(', ')}${limit}`
      : `select * from (${sql}) q order by ${order.join(', ')}${limit}`
    return { sql: whole, isOrdered: true }
  }

  #name(): string {
    return `x${++this.#names}`
  }

  #query(depth: number): Query {
    const choose = this.#choose
    const kind = choose.below(depth > 0 ? 9 : 3)
    switch (kind) {
      case 0:
        return this.#plain(depth)
      case 1:
      case 2:
        return this.#grouped(depth)
      case 3:
        return this.#windowed(depth)
      case 4:
        return this.#setOperation(depth)
      case 5:
        return this.#withCte(depth)
      case 6:
        return this.#recursive()
      case 7:
        return this.#distinct(depth)
      default:
        return this.#plain(depth)
    }
  }

  #from(depth: number): { sql: string; columns: Column[]; unique?: string } {
    const choose = this.#choose
    const first = this.#item(depth)
    let { sql } = first
    const columns = [...first.columns]
    const more = choose.pick([0, 1, 1, 1, 2])
    for (let i = 0; i < more; i++) {
      const next = this.#item(depth)
      const join = choose.pick([
        'join',
        'left join',
        'join',
        'right join',
        'full join',
        'cross join',
      ])
      const on = join === 'cross join' ? '' : ` on ${this.#joined(columns, next.columns, join)}`
      sql += ` ${join} ${next.sql}${on}`
      columns.push(...next.columns)
    }
    return { sql, columns, ...(more === 0 && first.unique ? { unique: first.unique } : {}) }
  }

  /** FULL JOIN takes equalities only. */
  #joined(left: readonly Column[], right: readonly Column[], join: string): string {
    const choose = this.#choose
    const pairs = left.flatMap((a) =>
      right.filter((b) => b.type === a.type && a.type !== 'bool').map((b) => [a, b] as const),
    )
    if (pairs.length === 0) return join === 'full join' ? '1 = 1' : 'true'
    const [a, b] = choose.pick(pairs)
    const equal = `${a.sql} = ${b.sql}`
    if (join === 'full join' || choose.chance(0.7)) return equal
    return `${equal} and ${this.#condition([...left, ...right], 0)}`
  }

  #item(depth: number): { sql: string; columns: Column[]; unique?: string } {
    const choose = this.#choose
    const alias = this.#name()
    if (depth > 0 && choose.chance(0.2)) {
      const { sql, types } = this.#query(depth - 1)
      const columns = types.map((type, i) => ({ sql: `${alias}.c${i + 1}`, type }))
      return { sql: `(${sql}) ${alias}`, columns }
    }
    if (choose.chance(0.06)) {
      const values = choose.some(1, 3, () => `(${choose.below(12)}, 'zug')`).join(', ')
      return {
        sql: `(values ${values}) ${alias}(a, b)`,
        columns: [
          { sql: `${alias}.a`, type: 'int' },
          { sql: `${alias}.b`, type: 'text' },
        ],
      }
    }
    const table = choose.pick(['acct', 'acct', 'move', 'move', 'kind'])
    const written = choose.chance(0.2) ? `gen.${table}` : table
    const columns = Object.entries(tables[table]!).map(([name, type]) => ({
      sql: `${alias}.${name}`,
      type,
    }))
    const unique = table === 'kind' ? `${alias}.code` : `${alias}.k, ${alias}.id`
    return { sql: `${written} ${alias}`, columns, unique }
  }

  #literal(type: Type): string {
    const choose = this.#choose
    switch (type) {
      case 'int':
        return this.#bound(String(choose.below(14)))
      case 'num':
        return `${choose.below(15)}.5`
      case 'text':
      case 'code':
        return choose.pick(["'zug'", "'Berg'", "'arg'", "'B1'", "''"])
      case 'date':
        return `date '2024-02-2${choose.below(10)}'`
      default:
        return choose.pick(['true', 'false'])
    }
  }

  #bound(text: string): string {
    const choose = this.#choose
    if (!this.#binds || !choose.chance(0.3)) return text
    const isBinary = choose.chance(0.5)
    const bytes = isBinary ? Buffer.alloc(4) : Buffer.from(text)
    if (isBinary) bytes.writeInt32BE(Number(text))
    this.parameters.push({ type: 23, format: isBinary ? 1 : 0, bytes })
    return `$${this.parameters.length}`
  }

  #value(columns: readonly Column[], type: Type): string {
    const choose = this.#choose
    const fitting = columns.filter((column) => column.type === type)
    if (fitting.length === 0 || choose.chance(0.1)) return this.#literal(type)
    const { sql } = choose.pick(fitting)
    if (choose.chance(0.75)) return sql
    switch (type) {
      case 'int':
        return choose.pick([`${sql} + 1`, `coalesce(${sql}, -1)`, `abs(${sql} - 5)`, `${sql} % 3`])
      case 'num':
        return choose.pick([`round(${sql}, 1)`, `${sql} * 2`, `coalesce(${sql}, -7.77)`])
      case 'text':
      case 'code':
        return choose.pick([`upper(${sql})`, `${sql} || '!'`, `coalesce(${sql}, 'none')`])
      case 'date':
        return `${sql} + 1`
      default:
        return `not ${sql}`
    }
  }

  #condition(columns: readonly Column[], depth: number): string {
    const choose = this.#choose
    const type = choose.pick<Type>(['int', 'int', 'num', 'text', 'code', 'date'])
    const value = this.#value(columns, type)
    switch (choose.below(depth > 0 ? 10 : 7)) {
      case 0:
        return `${value} is ${choose.pick(['', 'not '])}null`
      case 1:
        return `${value} in (${choose.some(1, 3, () => this.#literal(type)).join(', ')})`
      case 2:
        return `${value} between ${this.#literal(type)} and ${this.#literal(type)}`
      case 3:
        return `(${this.#condition(columns, 0)} or ${this.#condition(columns, 0)})`
      case 7:
        return `${choose.pick(['', 'not '])}exists (${this.#correlated(columns, 'exists')})`
      case 8:
        return `${this.#value(columns, 'int')} ${choose.pick(['in', 'not in'])} (${this.#correlated(columns, 'list')})`
      case 9:
        return `${this.#value(columns, 'num')} > (${this.#correlated(columns, 'scalar')})`
      default:
        return `${value} ${choose.pick(['=', '<>', '<', '>='])} ${this.#value(columns, type)}`
    }
  }

  #correlated(outer: readonly Column[], what: 'exists' | 'list' | 'scalar'): string {
    const inner = this.#item(0)
    const where = this.#joined(outer, inner.columns, '')
    const ints = inner.columns.filter(({ type }) => type === 'int')
    const int = ints.length > 0 ? this.#choose.pick(ints).sql : '1'
    if (what === 'list') return `select ${int} from ${inner.sql} where ${int} is not null`
    const selected = what === 'exists' ? '1' : `avg(${int})`
    return `select ${selected} from ${inner.sql} where ${where}`
  }

  #where(columns: readonly Column[], depth: number): string {
    const choose = this.#choose
    if (choose.chance(0.4)) return ''
    const parts = choose.some(1, 2, () => this.#condition(columns, depth))
    return ` where ${parts.join(' and ')}`
  }

  #list(values: readonly { sql: string; type: Type }[]): { sql: string; types: Type[] } {
    return {
      sql: values.map(({ sql }, i) => `${sql} as c${i + 1}`).join(', '),
      types: values.map(({ type }) => type),
    }
  }

  #plain(depth: number, wanted?: readonly Type[]): Query {
    const choose = this.#choose
    const from = this.#from(depth)
    const types =
      wanted ?? choose.some(1, 4, () => choose.pick<Type>(['int', 'num', 'text', 'date', 'code']))
    const values = types.map((type) => ({ sql: this.#value(from.columns, type), type }))
    if (!wanted && depth > 0 && choose.chance(0.2)) {
      values.push({ sql: `(${this.#correlated(from.columns, 'scalar')})`, type: 'num' })
    }
    const list = this.#list(values)
    return {
      sql: `select ${list.sql} from ${from.sql}${this.#where(from.columns, depth)}`,
      types: list.types,
    }
  }

  #aggregate(columns: readonly Column[]): Column {
    const choose = this.#choose
    const int = this.#value(columns, 'int')
    const num = this.#value(columns, 'num')
    const text = this.#value(columns, 'text')
    return choose.pick<Column>([
      { sql: 'count(*)', type: 'int' },
      { sql: `count(distinct ${text})`, type: 'int' },
      { sql: `count(distinct ${int})`, type: 'int' },
      { sql: `sum(${num})`, type: 'num' },
      { sql: `sum(distinct ${int})`, type: 'int' },
      { sql: `round(avg(${num}), 4)`, type: 'num' },
      { sql: `min(${text})`, type: 'text' },
      { sql: `max(${int}) + count(*)`, type: 'int' },
      { sql: `string_agg(${text}, ',' order by ${text})`, type: 'text' },
      { sql: `string_agg(distinct ${text}, '-')`, type: 'text' },
      { sql: `array_to_string(array_agg(${int} order by ${int} desc), '+')`, type: 'text' },
      { sql: `count(*) filter (where ${this.#condition(columns, 0)})`, type: 'int' },
      { sql: `percentile_disc(0.5) within group (order by ${int})`, type: 'int' },
    ])
  }

  #grouped(depth: number): Query {
    const choose = this.#choose
    const from = this.#from(depth)
    const keys = choose.some(0, 2, () => {
      const type = choose.pick<Type>(['int', 'text', 'date', 'code'])
      return { sql: choose.pick([from.columns[0]!, ...from.columns]).sql, type }
    })
    const typed = keys.map(({ sql }) => from.columns.find((column) => column.sql === sql)!)
    const aggregates = choose.some(1, 3, () => this.#aggregate(from.columns))
    const list = this.#list([...typed, ...aggregates])
    const names = typed.map(({ sql }) => sql).join(', ')
    const by =
      typed.length === 0
        ? ''
        : ` group by ${choose.pick([names, names, `rollup(${names})`, `grouping sets ((${names}), ())`, `cube(${names})`])}`
    const having = choose.chance(0.3) ? ` having count(*) > ${choose.below(4)}` : ''
    return {
      sql: `select ${list.sql} from ${from.sql}${this.#where(from.columns, depth)}${by}${having}`,
      types: list.types,
    }
  }

  #windowed(depth: number): Query {
    const choose = this.#choose
    const from = this.#from(depth)
    const int = this.#value(from.columns, 'int')
    const num = this.#value(from.columns, 'num')
    const over = `(partition by ${this.#value(from.columns, 'text')} order by ${int})`
    const values: Column[] = [
      { sql: int, type: 'int' },
      ...choose.some(1, 2, () =>
        choose.pick<Column>([
          { sql: `rank() over ${over}`, type: 'int' },
          { sql: `dense_rank() over (order by ${num} desc nulls last)`, type: 'int' },
          { sql: `sum(${num}) over ${over}`, type: 'num' },
          { sql: `count(*) over (partition by ${int})`, type: 'int' },
          {
            sql: `max(${num}) over (order by ${int} range between 2 preceding and current row)`,
            type: 'num',
          },
        ]),
      ),
    ]
    if (from.unique && choose.chance(0.7)) {
      const order = `over (order by ${from.unique})`
      values.push({ sql: `lag(${int}, 2) ${order}`, type: 'int' })
      values.push({ sql: `row_number() ${order}`, type: 'int' })
    }
    const list = this.#list(values)
    return {
      sql: `select ${list.sql} from ${from.sql}${this.#where(from.columns, depth)}`,
      types: list.types,
    }
  }

  #setOperation(depth: number): Query {
    const choose = this.#choose
    // of equal numerics that are written apart nobody says which one stays
    const types = choose.some(1, 3, () => choose.pick<Type>(['int', 'date', 'text', 'code']))
    const word = choose.pick(['union', 'union all', 'intersect', 'except', 'except all'])
    const left = this.#plain(depth - 1, types)
    const right = this.#plain(depth - 1, types)
    return { sql: `(${left.sql}) ${word} (${right.sql})`, types }
  }

  #withCte(depth: number): Query {
    const choose = this.#choose
    // a CTE may bear the name of a table, which it hides
    const name = choose.pick(['cte', 'kind', 'move'])
    const { sql, types } = this.#query(depth - 1)
    const columns = types.map((type, i) => ({ sql: `${name}.c${i + 1}`, type }))
    const other = this.#item(0)
    const where = this.#joined(columns, other.columns, '')
    const hidden = choose.pick(['', 'materialized ', 'not materialized '])
    const isHidden = name !== 'cte' && new RegExp(` ${name} x\\d`).test(other.sql)
    const from = isHidden ? name : `${name} join ${other.sql} on ${where}`
    const shown = isHidden ? columns : [...columns, ...other.columns]
    const list = this.#list(choose.some(1, 3, () => choose.pick(shown)))
    return {
      sql: `with ${name} as ${hidden}(${sql}) select ${list.sql} from ${from}`,
      types: list.types,
    }
  }

  #recursive(): Query {
    const choose = this.#choose
    const last = 3 + choose.below(5)
    const inner = this.#correlatedCount()
    return {
      sql: `with recursive r(n, m) as (select 0, 0::bigint union all select r.n + 1, r.m + (${inner}) from r where r.n < ${last}) select n as c1, m as c2 from r`,
      types: ['int', 'int'],
    }
  }

  #correlatedCount(): string {
    const table = this.#choose.pick(['acct', 'move'])
    return `select count(*) from ${table} where ${table}.id % 5 = r.n % 5`
  }

  #distinct(depth: number): Query {
    const choose = this.#choose
    if (choose.chance(0.5)) {
      const { sql, types } = this.#plain(depth)
      return { sql: sql.replace(/^select /, 'select distinct '), types }
    }
    const table = choose.pick(['acct', 'move'])
    const list = this.#list([
      { sql: 'y.t', type: 'text' },
      { sql: 'y.k', type: 'int' },
      { sql: 'y.id', type: 'int' },
    ])
    return {
      sql: `select * from (select distinct on (y.t) ${list.sql} from ${table} y order by y.t, y.k desc, y.id) z`,
      types: list.types,
    }
  }
}
