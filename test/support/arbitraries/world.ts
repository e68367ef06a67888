/** The tables that generated statements read and write: their SQL, their sharding, and rows with awkward values. */
import { Chooser } from './chooser.js'

export interface TableFacts {
  readonly name: string
  /** Absent: a reference table. */
  readonly key?: { readonly column: string; readonly type: KeyKind }
  readonly columns: readonly { readonly name: string; readonly type: ColumnKind }[]
}

export type KeyKind = 'bigint' | 'text' | 'uuid' | 'varchar' | 'numeric' | 'bpchar' | 'timestamp'
export type ColumnKind = 'int4' | 'int8' | 'numeric' | 'text' | 'bool' | 'date' | KeyKind

const plain = [
  { name: 'id', type: 'int4' },
  { name: 'amount', type: 'numeric' },
  { name: 'label', type: 'text' },
  { name: 'done', type: 'bool' },
  { name: 'day', type: 'date' },
] as const

const sharded = (name: string, column: string, type: KeyKind): TableFacts => ({
  name,
  key: { column, type },
  columns: [{ name: column, type }, ...plain],
})

export const tables: readonly TableFacts[] = [
  sharded('acct', 'tenant', 'bigint'),
  sharded('item', 'tenant', 'bigint'),
  sharded('person', 'who', 'text'),
  sharded('note', 'who', 'text'),
  sharded('dev', 'uid', 'uuid'),
  sharded('event', 'uid', 'uuid'),
  sharded('code', 'code', 'varchar'),
  sharded('price', 'price', 'numeric'),
  sharded('zip', 'zip', 'bpchar'),
  sharded('tick', 'at', 'timestamp'),
  { name: 'kind', columns: plain },
]

const sqlTypes: Record<ColumnKind, string> = {
  bigint: 'bigint',
  text: 'text',
  uuid: 'uuid',
  varchar: 'varchar(5)',
  numeric: 'numeric',
  bpchar: 'char(4)',
  timestamp: 'timestamp(0)',
  int4: 'integer',
  int8: 'bigint',
  bool: 'boolean',
  date: 'date',
}

export const schemaSql = tables
  .map(({ name, key, columns }) => {
    const list = columns.map((column) => {
      const isKey = key?.column === column.name
      const type = isKey && column.type === 'numeric' ? 'numeric(8,1)' : sqlTypes[column.type]
      return `"${column.name}" ${type}`
    })
    return `create table gen.${name} (${list.join(', ')})`
  })
  .join(';\n')

const dataTypes: Partial<Record<KeyKind, string>> = { bpchar: 'bpchar' }

export const shardingToml = tables
  .flatMap(({ name, key }) =>
    key
      ? [
          `[[sharded_tables]]\ndatabase = "app"\nname = "${name}"\ncolumn = "${key.column}"\ndata_type = "${dataTypes[key.type] ?? key.type}"\n`,
        ]
      : [],
  )
  .join('\n')

/** Keys as SQL literals that read the same for every way of writing them; rows and statements share them. */
export const keyTexts: Record<KeyKind, readonly string[]> = {
  bigint: ['1', '2', '3', '4', '5', '7', '0', '-1', '-2147483649', '9223372036854775807'],
  text: ['a', 'A', '', 'a ', 'b', 'ä', "o'x", 'b\\c', 'NULL', 'b,{"}', '\u00a0z'],
  uuid: [
    '00000000-0000-0000-0000-000000000000',
    'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11',
    'ffffffff-ffff-4fff-bfff-ffffffffffff',
    '12345678-9abc-4def-8123-456789abcdef',
  ],
  varchar: ['a', 'a ', 'abcde', 'x', '', 'äöü'],
  numeric: ['0', '1', '2.5', '-3.1', '10000', '12.3'],
  bpchar: ['a', 'ab', 'abcd', '', 'ü'],
  timestamp: ['2024-01-01 00:00:00', '2024-02-29 12:30:01', '1999-12-31 23:59:59', 'infinity'],
}

export const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`

export function plainLiteral(type: ColumnKind, choose: Chooser): string {
  switch (type) {
    case 'int4':
    case 'int8':
      return String(choose.below(9) - 1)
    case 'numeric':
      return choose.pick(['0', '1.5', '-2', '10.00', '3.25'])
    case 'bool':
      return choose.pick(['true', 'false'])
    case 'date':
      return choose.pick(["date '2024-01-01'", "date '2024-02-29'"])
    case 'text':
      return quoted(choose.pick(['a', 'b', 'A', '', 'xyz', 'a ']))
    default:
      return quoted(choose.pick(keyTexts[type]))
  }
}

/** INSERT statements for the plain database. */
export function rowsSql(seed: number, rows: number): string {
  const choose = new Chooser(seed)
  return tables
    .map(({ name, key, columns }) => {
      const values = Array.from({ length: key ? rows : 6 }, (_, id) => {
        const cells = columns.map((column) => {
          if (column.name === 'id') return String(id % 9)
          return choose.chance(0.12) ? 'null' : plainLiteral(column.type, choose)
        })
        return `(${cells.join(', ')})`
      })
      return `insert into gen.${name} values ${values.join(', ')}`
    })
    .join(';\n')
}
