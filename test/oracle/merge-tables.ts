/** The tables that merged SELECTs read: awkward values of many types, a skew, NULL keys, shards without rows. */
import type { Chooser } from '../support/arbitraries/chooser.js'

export interface Column {
  readonly name: string
  readonly type: string
  /** What a row may hold; NULL besides. */
  readonly values: readonly string[]
  /** Equal values look alike, so that it does not matter which of them stands for all. */
  readonly unlike?: true
  readonly isNumber?: true
  readonly isText?: true
}

export const columns: readonly Column[] = [
  {
    name: 'i2',
    type: 'smallint',
    values: ['0', '1', '-1', '32767', '-32768', '7'],
    isNumber: true,
  },
  { name: 'i4', type: 'integer', values: ['0', '1', '2', '3', '-5', '2147483647'], isNumber: true },
  {
    name: 'i8',
    type: 'bigint',
    values: ['0', '10', '-10', '9007199254740993', '42'],
    isNumber: true,
  },
  {
    name: 'n',
    type: 'numeric',
    values: ['0', '0.10', '0.1', '1e20', '-3.14159', '7', '12345678901234567890.5', '0.0001'],
    unlike: true,
    isNumber: true,
  },
  {
    name: 'n2',
    type: 'numeric(10,2)',
    values: ['0', '1.5', '-2.25', '99999.99', '3'],
    isNumber: true,
  },
  { name: 'f4', type: 'real', values: ['0', '1.5', '-2.25', '1000', '0.125'], isNumber: true },
  {
    name: 'f8',
    type: 'double precision',
    values: ['0', '-0', '1.25', '-7.5', '1024', "'Infinity'", "'-Infinity'", "'NaN'"],
    unlike: true,
  },
  {
    name: 'g8',
    type: 'double precision',
    values: ['0', '1.25', '-7.5', '1024', '3'],
    isNumber: true,
  },
  { name: 'b', type: 'boolean', values: ['true', 'false'] },
  {
    name: 't',
    type: 'text',
    values: ["''", "'a'", "'B'", "'ab'", "'ä'", "'zz '", "'Z'"],
    isText: true,
  },
  {
    name: 'c',
    type: 'text collate "C"',
    values: ["'x'", "'X'", "'ü'", "'xx'", "'é'"],
    isText: true,
  },
  {
    name: 'w',
    type: 'text collate "en-x-icu"',
    values: ["'a'", "'B'", "'b'", "'A'", "'ä'", "'Z'"],
  },
  { name: 'v', type: 'varchar(10)', values: ["'k'", "'K '", "'k1'", "'_'"], isText: true },
  { name: 'p', type: 'char(5)', values: ["'q'", "'q '", "'r'", "''"], isText: true },
  {
    name: 'd',
    type: 'date',
    values: ["'2024-02-29'", "'1999-12-31'", "'infinity'", "'0044-03-15 BC'"],
  },
  {
    name: 'ts',
    type: 'timestamp',
    values: ["'2024-01-01 00:00:00.5'", "'2024-01-01'", "'-infinity'", "'1969-12-31 23:59:59'"],
  },
  {
    name: 'tz',
    type: 'timestamptz',
    values: [
      "'2024-06-01 12:00+02'",
      "'2024-06-01 09:59+00'",
      "'1900-01-01 00:00+00'",
      "'infinity'",
    ],
  },
  { name: 'tm', type: 'time', values: ["'00:00'", "'23:59:59.999'", "'12:30'"] },
  {
    name: 'iv',
    type: 'interval',
    values: ["'1 day'", "'24 hours'", "'-1 month'", "'1 year 2 days'", "'00:00:00.000001'"],
    unlike: true,
  },
  {
    name: 'u',
    type: 'uuid',
    values: ["'00000000-0000-0000-0000-000000000001'", "'ffffffff-0000-4000-8000-00000000000f'"],
  },
  { name: 'y', type: 'bytea', values: ["'\\x00'", "'\\x'", "'\\xff00'", "'\\x0a'"] },
  { name: 'o', type: 'inet', values: ["'10.0.0.1'", "'10.0.0.0/8'", "'::1'", "'192.168.1.1/24'"] },
]

const tables = ['big', 'few', 'none'] as const
export const tableNames: readonly string[] = [...tables, 'other', 'kinds']

export const schemaSql = `
${tables.map((name) => `create table ${name} (k bigint, id int, ${columns.map((one) => `${one.name} ${one.type}`).join(', ')});`).join('\n')}
create table other (k bigint, oid_ int, w int, label text);
create table kinds (id int primary key, title text);`

export const shardingToml = [...tables, 'other']
  .map(
    (name) =>
      `[[sharded_tables]]\ndatabase = "app"\nname = "${name}"\ncolumn = "k"\ndata_type = "bigint"\n`,
  )
  .join('\n')

/** Rows: `big` with a skew and NULL keys, `few` with two keys only, so that some shards have none. */
export function rowsSql(choose: Chooser, rows: number): string {
  const row = (key: string, id: number): string => {
    const values = columns.map(({ values: own }) =>
      choose.chance(0.15) ? 'null' : choose.pick(own),
    )
    return `(${[key, id, ...values].join(', ')})`
  }
  const key = (): string =>
    choose.chance(0.4) ? '7' : choose.chance(0.05) ? 'null' : String(choose.below(60))
  const many = (table: string, count: number, keyOf: () => string): string =>
    `insert into ${table} values ${Array.from({ length: count }, (_, id) => row(keyOf(), id)).join(',\n')};`
  const others = Array.from(
    { length: rows },
    (_, id) => `(${choose.below(60)}, ${id}, ${choose.below(5)}, 'l${choose.below(4)}')`,
  )
  return [
    many('big', rows, key),
    many('few', 12, () => choose.pick(['3', '4'])),
    `insert into other values ${others.join(', ')};`,
    "insert into kinds values (0, 'zero'), (1, 'one'), (2, 'two'), (3, null);",
  ].join('\n')
}
