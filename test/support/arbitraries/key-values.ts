/** A key's value as statements write it: literals of many forms, casts, expressions, parameters of many types. */
import type { Chooser } from './chooser.js'
import { type KeyKind, keyTexts, quoted } from './world.js'

export interface Parameter {
  /** Type that Parse declares; 0 leaves it to the server. */
  readonly oid: number
  /** Type of its binary form, as test/support/key-binary.ts names it. */
  readonly type: string
  readonly text: string
}

export interface Parameters {
  /** False: write literals only. */
  readonly allowed: boolean
  readonly list: Parameter[]
}

const oids: Record<KeyKind, number> = {
  bigint: 20,
  text: 25,
  uuid: 2950,
  varchar: 1043,
  numeric: 1700,
  bpchar: 1042,
  timestamp: 1114,
}

/** Declared type of a parameter, and what its bytes are. */
function declaredAs(kind: KeyKind, text: string, choose: Chooser): [number, string] {
  if (kind === 'bigint') {
    const small = Math.abs(Number(text)) < 30_000
    return choose.pick<[number, string]>([
      [0, 'bigint'],
      [20, 'bigint'],
      ...(small
        ? ([
            [23, 'integer'],
            [21, 'smallint'],
            [1700, 'numeric'],
          ] as [number, string][])
        : []),
    ])
  }
  if (kind === 'text' || kind === 'varchar') {
    return choose.pick<[number, string]>([
      [0, 'text'],
      [25, 'text'],
      [1043, 'text'],
      [1042, 'text'],
      [19, 'text'],
    ])
  }
  if (kind === 'numeric') {
    return choose.pick<[number, string]>([
      [0, 'numeric'],
      [1700, 'numeric'],
    ])
  }
  return choose.pick<[number, string]>([
    [0, kind],
    [oids[kind], kind],
  ])
}

function parameter(kind: KeyKind, text: string, choose: Chooser, parameters: Parameters): string {
  const [oid, type] = declaredAs(kind, text, choose)
  parameters.list.push({ oid, type, text })
  return `$${parameters.list.length}`
}

/** Values that no row has, or that the server turns into another one. */
const odd: Record<KeyKind, readonly string[]> = {
  bigint: [
    '5.0',
    '5.7',
    "'5'::int4",
    '5.7::int8',
    '5.5::int4',
    '2 + 3',
    '- 1',
    '-(1)',
    '99999999999999999999',
    '5::numeric',
    '5::float8',
    '4.5::numeric::int8',
    "'  5 '",
    "'5'::text::int8",
    '1e0',
    '-(-5)',
    'abs(-5)',
    '0x5',
  ],
  text: [
    "'a'::text",
    "'a '::bpchar",
    "'a'::name",
    "'a'::varchar",
    "'abc'::varchar(1)",
    '\'a\' collate "C"',
    "E'b\\\\c'",
    '$q$a$q$',
    "'a' || ''",
    "lower('A')",
    "U&'\\0061'",
    "'a '::char(3)",
    "'a'\n''",
    '\'a\'::"char"',
  ],
  uuid: [
    "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'",
    "'{a0eebc999c0b4ef8bb6d6bb9bd380a11}'",
    "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid",
  ],
  varchar: [
    "'a     '",
    "'abcde   '",
    "'abcdef'",
    "'abcdefgh'::varchar(5)",
    "'a'::text",
    "'a '::bpchar",
    "'a'::char(3)",
    "'äöüäö  '",
  ],
  numeric: [
    '2.54',
    '2.55',
    "'2.46'",
    '-3.14',
    '-3.15',
    '2.5::numeric(3,1)',
    '2.54::numeric(3,1)',
    '2.5::float8',
    '2',
    "'2.5'::text::numeric",
    '5.7::int4',
    "'0.04'",
    '1e3',
    '12.25',
    '99999999',
  ],
  bpchar: [
    "'a   '",
    "'a '",
    "'a'::bpchar",
    "'a '::text",
    "'a'::char(1)",
    "'abcd  '",
    "'abcde'",
    "'ab'::varchar",
  ],
  timestamp: [
    "'2024-01-01 00:00:00.4'",
    "'2024-01-01 00:00:00.5'",
    "'2023-12-31 23:59:59.6'",
    "'2024-01-01'",
    "'2024-01-01'::date",
    "timestamp '2024-01-01 00:00:00'",
    "'2024-01-01 00:00:00'::timestamptz",
    "'2024-01-01 00:00:00.3'::timestamp(0)",
    "'20240101'",
    "'Jan 1 2024'",
  ],
}

/** `text` is the wanted value; 'odd' or, now and then, anything. */
export function keyValue(
  kind: KeyKind,
  choose: Chooser,
  parameters: Parameters,
  text: string | undefined,
): string {
  if (text === 'odd' || (text !== undefined && choose.chance(0.1))) return choose.pick(odd[kind])
  const value = text ?? choose.pick(keyTexts[kind])
  if (parameters.allowed && choose.chance(0.7)) return parameter(kind, value, choose, parameters)
  const isNumber = kind === 'bigint' || kind === 'numeric'
  if (isNumber && choose.chance(0.6)) return value
  const cast = kind === 'varchar' ? 'varchar' : kind
  return choose.chance(0.2) ? `${quoted(value)}::${cast}` : quoted(value)
}
