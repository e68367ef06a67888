/**
 * The type of an expression and whether its text is in the order of its bytes, from the catalogue and the few rules of
 * PostgreSQL that most expressions need. Undefined where we do not know; what is said of collations is never a guess.
 */
import type { Expression } from '../sql/select.js'
import type { Level } from '../sql/statement.js'
import { bindColumn } from './columns.js'
import { columnNamed } from './key-column.js'
import type { Places } from './resolve.js'
import type { RoutingWorld } from './world.js'

export interface Typed {
  /** OID. */
  readonly type: number
  /** With text: its collation is like C. */
  readonly bytewise: boolean
  /** With text: equal texts may differ in their bytes. */
  readonly loose: boolean
}

export interface TypeContext {
  readonly level: Level
  readonly places: Places
  readonly world: RoutingWorld
}

const bool = 16
const int8 = 20
const int4 = 23
const text = 25
const float8 = 701
const date = 1082
const timestamp = 1114
const timestamptz = 1184
const nameType = 19
const interval = 1186
const numeric = 1700

const namedTypes: Record<string, number> = {
  bool,
  bytea: 17,
  name: 19,
  int8,
  int2: 21,
  int4,
  text,
  oid: 26,
  float4: 700,
  float8,
  bpchar: 1042,
  varchar: 1043,
  date,
  time: 1083,
  timestamp,
  timestamptz,
  interval,
  timetz: 1266,
  numeric,
  uuid: 2950,
  inet: 869,
  cidr: 650,
  macaddr: 829,
  bit: 1560,
  varbit: 1562,
}

const texts = new Set([text, 1042, 1043])
/** Numbers, each wider than those before it. */
const widths = [21, int4, int8, numeric, 700, float8]
const bytewiseCollations = new Set(['C', 'POSIX', 'ucs_basic', 'C.UTF-8', 'C.utf8', 'pg_c_utf8'])

export const isText = (type: number): boolean => texts.has(type)
export const isNumber = (type: number): boolean => widths.includes(type)

/** Types whose order the merger knows; text only where it is bytewise. */
const ordered = new Set([
  bool,
  17,
  18,
  19,
  int8,
  21,
  int4,
  26,
  650,
  700,
  float8,
  774,
  829,
  869,
  date,
  1083,
  timestamp,
  timestamptz,
  interval,
  1266,
  1560,
  1562,
  numeric,
  2950,
  3220,
  5069,
])
export const isOrdered = ({ type, bytewise }: Typed): boolean =>
  isText(type) ? bytewise : ordered.has(type)

const plain = (type: number): Typed => ({ type, bytewise: false, loose: false })

const named = (names: string, type: number): [string, number][] =>
  names.split(' ').map((name) => [name, type])

/** Functions that always give this type. */
const results = new Map<string, number>([
  ...named(
    'length char_length character_length octet_length bit_length strpos position ascii',
    int4,
  ),
  ...named('count row_number rank dense_rank', int8),
  ...named('date_part random', float8),
  ...named('extract', numeric),
  ...named('bool_and bool_or every starts_with isfinite', bool),
  ...named('to_date make_date', date),
  ...named('to_timestamp make_timestamptz', timestamptz),
  ...named('make_timestamp', timestamp),
  ...named('age make_interval justify_days justify_hours justify_interval', interval),
])

const textFunctions = new Set(
  'lower upper initcap btrim ltrim rtrim substring substr left right replace to_char md5 lpad rpad reverse repeat split_part translate concat concat_ws overlay'.split(
    ' ',
  ),
)
const ofArgument = new Set('min max abs bit_and bit_or bit_xor'.split(' '))
const roundings = new Set('round trunc ceil ceiling floor'.split(' '))

/** Functions of one number. */
function numericCall(name: string, argument: number): Typed | undefined {
  const isFloat = argument === 700 || argument === float8
  if (roundings.has(name)) return plain(argument === numeric ? numeric : float8)
  if (name === 'avg') return plain(isFloat ? float8 : numeric)
  if (name !== 'sum') return undefined
  if (isFloat) return plain(argument)
  return plain(argument === 21 || argument === int4 ? int8 : numeric)
}

class Typer {
  readonly #context: TypeContext

  constructor(context: TypeContext) {
    this.#context = context
  }

  /** Text that comes from no column has the collation of the database. */
  get #ownText(): Typed {
    const bytewise = this.#context.world.catalog?.isBytewise ?? false
    return { type: text, bytewise, loose: false }
  }

  of(expression: Expression): Typed | undefined {
    switch (expression.kind) {
      case 'column':
        return this.#column(expression)
      case 'constant':
        return this.#constant(expression.literal)
      case 'boolean':
        return plain(bool)
      case 'cast':
        return this.#cast(expression)
      case 'collate':
        return this.#collate(expression)
      case 'choice':
        return this.#widest(expression.args)
      case 'call':
        return this.#call(expression.name, expression.args)
      case 'operator':
        return this.#operator(expression.name, expression.args)
      default:
        return undefined
    }
  }

  #column({ use }: Expression & { kind: 'column' }): Typed | undefined {
    const { level, places } = this.#context
    const bound = bindColumn(use, level, places)
    const relation = bound && places.get(bound.level)?.[bound.relation]?.relation
    const column = columnNamed(relation, bound?.column ?? '')
    if (!column) return undefined
    // a name is in the order of its bytes unless its column was given another collation
    if (column.type === nameType && column.bytewise !== true) return undefined
    return {
      type: column.type,
      bytewise: column.bytewise === true,
      loose: column.looseEquality === true,
    }
  }

  #constant(literal: 'integer' | 'number' | 'string' | 'boolean'): Typed {
    if (literal === 'string') return this.#ownText
    if (literal === 'boolean') return plain(bool)
    return plain(literal === 'integer' ? int8 : numeric)
  }

  #cast({ type, arg }: Expression & { kind: 'cast' }): Typed | undefined {
    const oid = namedTypes[type]
    if (oid === undefined) return undefined
    if (!isText(oid) && oid !== nameType) return plain(oid)
    const inner = this.of(arg)
    if (oid === nameType) {
      // the collation is that of the text, not the C of type name
      const isBytewise = inner && (isText(inner.type) ? inner.bytewise : inner.type === nameType)
      return isBytewise ? plain(nameType) : undefined
    }
    if (!inner) return arg.kind === 'open' ? { ...this.#ownText, type: oid } : undefined
    // a cast of text to text keeps its collation
    return isText(inner.type) ? { ...inner, type: oid } : { ...this.#ownText, type: oid }
  }

  #collate({ collation, arg }: Expression & { kind: 'collate' }): Typed {
    const type = this.of(arg)?.type ?? text
    const bytewise = bytewiseCollations.has(collation)
    return { type, bytewise, loose: !bytewise }
  }

  /** Text made of these: bytewise when all of them are. */
  #textOf(args: readonly Expression[]): Typed | undefined {
    let bytewise = true
    let loose = false
    let found = false
    for (const arg of args) {
      if (arg.kind === 'open' || arg.kind === 'constant') continue
      const typed = this.of(arg)
      if (!typed) return undefined
      if (!isText(typed.type)) continue
      found = true
      bytewise &&= typed.bytewise
      loose ||= typed.loose
    }
    return found ? { type: text, bytewise, loose } : this.#ownText
  }

  #widest(args: readonly Expression[]): Typed | undefined {
    const known = args.filter((arg) => arg.kind !== 'open' && arg.kind !== 'constant')
    const types = (known.length > 0 ? known : args.filter((arg) => arg.kind !== 'open')).map(
      (arg) => this.of(arg),
    )
    const [first] = types
    if (!first || types.some((one) => !one)) return undefined
    if (isText(first.type)) {
      return types.every((one) => isText(one!.type)) ? this.#textOf(args) : undefined
    }
    if (isNumber(first.type)) return this.#number(args)
    return types.every((one) => one!.type === first.type) ? first : undefined
  }

  #number(args: readonly Expression[]): Typed | undefined {
    let widest = -1
    for (const arg of args) {
      if (arg.kind === 'open') continue
      const typed = this.of(arg)
      const width = typed ? widths.indexOf(typed.type) : -1
      if (width < 0) return undefined
      widest = Math.max(widest, width)
    }
    return widest < 0 ? undefined : plain(widths[widest]!)
  }

  #call(name: string, args: readonly Expression[]): Typed | undefined {
    const fixed = results.get(name)
    if (fixed !== undefined) return plain(fixed)
    if (textFunctions.has(name)) return this.#textOf(args)
    const [first, second] = args
    const inner = first && this.of(first)
    if (ofArgument.has(name)) return inner
    if (name === 'date_trunc') {
      const of = second && this.of(second)?.type
      return of === undefined ? undefined : plain(of === date ? timestamptz : of)
    }
    if (!inner || !isNumber(inner.type)) return undefined
    return name === 'mod' ? this.#number(args) : numericCall(name, inner.type)
  }

  #operator(name: string, args: readonly Expression[]): Typed | undefined {
    if (name === '->>' || name === '#>>') return this.#ownText
    if (name === '||') {
      const types = args.map((arg) => this.of(arg)?.type)
      return types.every((type) => type !== undefined && isText(type))
        ? this.#textOf(args)
        : undefined
    }
    return '+-*/%'.includes(name) ? this.#number(args) : undefined
  }
}

export function typeOf(expression: Expression, context: TypeContext): Typed | undefined {
  return new Typer(context).of(expression)
}
