/**
 * Random schemas with their rows: tables sharded by keys of several types, reference tables, two collations and one that
 * takes letters of either case for equal; NULL keys, ties, a skew, tables without rows and shards without rows.
 */
import type { Chooser } from '../../support/arbitraries/chooser.js'

/** `word`: text in an order that is not that of its bytes. `loose`: text whose equal values may look different. */
export type Type =
  | 'int'
  | 'big'
  | 'num'
  | 'text'
  | 'word'
  | 'date'
  | 'bool'
  | 'time'
  | 'uuid'
  | 'float'
  | 'mood'
  | 'loose'

interface TypeFacts {
  readonly sql: string
  /** For Parse; 0: a type of the schema, which has no fixed number. */
  readonly oid: number
  readonly values: readonly string[]
}

const uuid = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`

export const types: Readonly<Record<Type, TypeFacts>> = {
  int: { sql: 'int', oid: 23, values: ['1', '2', '0', '3', '-4', '7', '12'] },
  big: { sql: 'bigint', oid: 20, values: ['1', '2', '3', '5', '8', '-1', '13', '21', '0', '34'] },
  num: { sql: 'numeric(12,2)', oid: 1700, values: ['1.50', '0.00', '-2.25', '99.99', '7.00'] },
  text: { sql: 'text collate "C"', oid: 25, values: ['a', 'b', '', 'B', 'ab', 'ä', 'Z'] },
  word: { sql: 'text collate "en-x-icu"', oid: 25, values: ['a', 'B', 'b', 'A', 'ä', 'z', ''] },
  date: { sql: 'date', oid: 1082, values: ['2024-02-29', '2024-01-01', '1999-12-31', 'infinity'] },
  bool: { sql: 'boolean', oid: 16, values: ['true', 'false'] },
  time: {
    sql: 'timestamptz',
    oid: 1184,
    values: ['2024-02-29 10:00+00', '2024-02-29 12:30+02', '1970-01-01 00:00+00'],
  },
  uuid: { sql: 'uuid', oid: 2950, values: [1, 2, 3, 4, 5, 6, 7].map(uuid) },
  float: { sql: 'double precision', oid: 701, values: ['0', '1.25', '-7.5', '1024', '0.5'] },
  mood: { sql: 'mood', oid: 0, values: ['sad', 'ok', 'happy'] },
  loose: { sql: 'text collate "loose"', oid: 25, values: ['a', 'A', 'b', 'B', 'c'] },
}

export interface Column {
  readonly name: string
  readonly type: Type
}

export interface Table {
  readonly name: string
  readonly kind: 'sharded' | 'reference'
  readonly key?: Column
  /** The first is `id`, another number in each row of the table. */
  readonly columns: readonly Column[]
  readonly hasPrimary: boolean
  readonly rows: readonly (readonly (string | null)[])[]
}

export interface World {
  readonly schema: string
  readonly tables: readonly Table[]
}

const plainTypes = Object.keys(types) as Type[]
const keyTypes: readonly Type[] = ['big', 'big', 'uuid', 'text']

function makeTable(choose: Chooser, name: string, kind: Table['kind'], keyType: Type): Table {
  const key: Column | undefined = kind === 'sharded' ? { name: 'k', type: keyType } : undefined
  const hasPrimary = choose.chance(0.4)
  const own = choose.some(2, 5, () => choose.pick(plainTypes))
  const columns: Column[] = [
    { name: 'id', type: 'int' },
    ...(key ? [key] : []),
    // the same names in many tables, as people write them
    ...own.map((type, at) => ({ name: `${type.slice(0, 1)}${at}`, type })),
  ]
  const keys = choose.some(1, 9, () => choose.pick(types[keyType].values))
  const count = choose.pick([24, 30, 12, 4, 0])
  const skewed = choose.chance(0.4)
  const value = (column: Column): string | null => {
    if (column === key) {
      if (!hasPrimary && choose.chance(0.08)) return null
      return skewed && choose.chance(0.5) ? keys[0]! : choose.pick(keys)
    }
    return choose.chance(0.15) ? null : choose.pick(types[column.type].values)
  }
  const rows = Array.from({ length: count }, (_, id) =>
    columns.map((column, at) => (at === 0 ? String(id + 1) : value(column))),
  )
  return { name, kind, ...(key ? { key } : {}), columns, hasPrimary, rows }
}

export function makeWorld(choose: Chooser, schema: string): World {
  const keyType = choose.pick(keyTypes)
  const tables = [
    makeTable(choose, 'alpha', 'sharded', keyType),
    makeTable(choose, 'beta', 'sharded', keyType),
    makeTable(choose, 'gamma', 'sharded', choose.pick(keyTypes)),
    makeTable(choose, 'ref', 'reference', 'int'),
  ]
  return { schema, tables }
}

const quoted = (value: string | null): string =>
  value === null ? 'null' : `'${value.replaceAll("'", "''")}'`

export const collationSql = `create collation if not exists public.loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false)`

export function schemaOf({ schema, tables }: World): string {
  const made = tables.map(({ name, columns, key, hasPrimary }) => {
    const list = columns.map((column) => `${column.name} ${types[column.type].sql}`)
    if (hasPrimary) list.push(`primary key (${key ? `${key.name}, ` : ''}id)`)
    return `create table ${name} (${list.join(', ')})`
  })
  const head = `create schema ${schema}; set search_path to ${schema}, public; create type mood as enum ('sad', 'ok', 'happy')`
  return [head, ...made].join(';\n')
}

export const rowsOf = ({ tables, schema }: World): string =>
  tables
    .filter(({ rows }) => rows.length > 0)
    .map(({ name, rows }) => {
      const lines = rows.map((row) => `(${row.map(quoted).join(', ')})`)
      return `insert into ${schema}.${name} values ${lines.join(',\n')}`
    })
    .join(';\n')

const dataTypes: Partial<Record<Type, string>> = { big: 'bigint', uuid: 'uuid', text: 'text' }

export const shardingOf = ({ tables, schema }: World): string =>
  tables
    .map(({ name, key }) =>
      key
        ? `[[sharded_tables]]\ndatabase = "app"\nschema = "${schema}"\nname = "${name}"\ncolumn = "${key.name}"\ndata_type = "${dataTypes[key.type]}"\n`
        : `[[omnisharded_tables]]\ndatabase = "app"\ntables = ["${schema}.${name}"]\n`,
    )
    .join('\n')
