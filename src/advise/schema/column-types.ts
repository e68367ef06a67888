/** Types as a schema names them → the numbers that PostgreSQL gives them; enough to know keys and what compares with them. */
import type { TypeName } from '../../sql/parse.js'

const builtin: Readonly<Record<string, number>> = {
  bool: 16,
  bytea: 17,
  char: 18,
  name: 19,
  int8: 20,
  int2: 21,
  int4: 23,
  text: 25,
  oid: 26,
  json: 114,
  xml: 142,
  point: 600,
  float4: 700,
  float8: 701,
  money: 790,
  macaddr: 829,
  cidr: 650,
  inet: 869,
  bpchar: 1042,
  varchar: 1043,
  date: 1082,
  time: 1083,
  timestamp: 1114,
  timestamptz: 1184,
  interval: 1186,
  timetz: 1266,
  bit: 1560,
  varbit: 1562,
  numeric: 1700,
  uuid: 2950,
  tsvector: 3614,
  tsquery: 3615,
  jsonb: 3802,
  int4range: 3904,
  numrange: 3906,
  tsrange: 3908,
  tstzrange: 3910,
  daterange: 3912,
  int8range: 3926,
}

/** serial and its kin are an integer with a sequence behind it. */
const serial: Readonly<Record<string, string>> = {
  smallserial: 'int2',
  serial2: 'int2',
  serial: 'int4',
  serial4: 'int4',
  bigserial: 'int8',
  serial8: 'int8',
}

/** A type of users, whose number only a server knows; none of PostgreSQL's own is as large. */
export const unknownType = 16_384

export interface ColumnType {
  readonly type: number
  readonly typmod: number
  readonly isVector: boolean
  readonly isSerial: boolean
}

export interface Domain {
  readonly type: number
  readonly typmod: number
}

const header = 4

const modifierOf = (name: string, modifiers: readonly number[]): number => {
  const [first, second] = modifiers
  if (first === undefined) return -1
  if (name === 'varchar' || name === 'bpchar') return first + header
  if (name === 'numeric') return ((first << 16) | ((second ?? 0) & 0x7ff)) + header
  if (/^time/.test(name)) return first
  return -1
}

function integers(type: TypeName): number[] {
  return (type.typmods ?? []).flatMap((node) => {
    const value = 'A_Const' in node ? node.A_Const : undefined
    return value?.ival === undefined ? [] : [value.ival.ival ?? 0]
  })
}

export const nameOfType = (type: TypeName | undefined): string =>
  (type?.names ?? []).map((node) => ('String' in node ? (node.String.sval ?? '') : '')).at(-1) ?? ''

/** What a column of this type is beneath domains. */
export function columnType(
  type: TypeName | undefined,
  domains: ReadonlyMap<string, Domain>,
): ColumnType {
  const written = nameOfType(type)
  const isArray = (type?.arrayBounds ?? []).length > 0
  const domain = isArray ? undefined : domains.get(written)
  if (domain) return { ...domain, isVector: false, isSerial: false }
  const name = serial[written] ?? written
  const known = isArray ? unknownType : (builtin[name] ?? unknownType)
  return {
    type: known,
    typmod: known === unknownType || !type ? -1 : modifierOf(name, integers(type)),
    isVector: written === 'vector',
    isSerial: serial[written] !== undefined,
  }
}
