/**
 * Conditions of one table reference as SQL that a shard can run before it sends rows: comparisons of its own columns with
 * values of the statement. What is not certain is left out, because the statement itself is asked again where it finishes.
 */
import type { BoundParameters } from '../../plan/plan.js'
import type { Level, Predicate, Value } from '../../sql/statement.js'
import { bindColumn } from '../columns.js'
import type { Run } from '../key-value.js'
import type { Places } from '../resolve.js'
import { quoteName } from '../writes/write-text.js'

interface Reference {
  readonly level: Level
  readonly relation: number
  readonly places: Places
}

/** A type name as facts hold it: PostgreSQL's own only. */
const ownTypes = new Set(
  'int2 int4 int8 numeric float4 float8 text varchar bpchar uuid date timestamp timestamptz bool'.split(
    ' ',
  ),
)

function column(use: { column: string; table?: string }, of: Reference): string | undefined {
  const bound = bindColumn(use, of.level, of.places)
  if (!bound || bound.level !== of.level || bound.relation !== of.relation) return undefined
  const { relation } = of.places.get(of.level)?.[of.relation] ?? {}
  return relation?.columns.some((one) => one.name === bound.column)
    ? quoteName(bound.column)
    : undefined
}

const cast = (text: string, type: string | undefined): string | undefined => {
  if (type === undefined) return text
  return ownTypes.has(type) ? `${text}::pg_catalog.${quoteName(type)}` : undefined
}

/** Types that a client may declare for a parameter → the name for a cast. */
const declaredTypes: Readonly<Record<number, string>> = {
  16: 'bool',
  20: 'int8',
  21: 'int2',
  23: 'int4',
  25: 'text',
  1043: 'varchar',
  1082: 'date',
  1114: 'timestamp',
  1184: 'timestamptz',
  1700: 'numeric',
  2950: 'uuid',
}

function binaryInteger(parameters: BoundParameters, index: number): string | undefined {
  const { buffer } = parameters
  const start = parameters.start(index)
  const length = parameters.end(index) - start
  if (length === 2) return String(buffer.readInt16BE(start))
  if (length === 4) return String(buffer.readInt32BE(start))
  return length === 8 ? String(buffer.readBigInt64BE(start)) : undefined
}

function quoted(text: string): string {
  const doubled = text.replaceAll("'", "''")
  return text.includes('\\') ? `E'${doubled.replaceAll('\\', '\\\\')}'` : `'${doubled}'`
}

/** The type that the client declares: undefined when it leaves it open, false when it is none of these. */
function declaredType(index: number, run: Run): string | undefined | false {
  const declared = run.context.parameterTypes?.[index] ?? 0
  return declared === 0 || declared === 705 ? undefined : (declaredTypes[declared] ?? false)
}

/** The value as a literal, in the form that its type takes; undefined: not known. */
function boundLiteral(parameters: BoundParameters, index: number, type: string | undefined) {
  if (parameters.format(index) === 0) {
    const [start, end] = [parameters.start(index), parameters.end(index)]
    return quoted(parameters.buffer.toString('utf8', start, end))
  }
  if (type !== 'int2' && type !== 'int4' && type !== 'int8') return undefined
  const digits = binaryInteger(parameters, index)
  return digits === undefined ? undefined : `'${digits}'`
}

function parameter(value: Value & { kind: 'parameter' }, run: Run): string | undefined {
  const { parameters } = run
  const { index } = value
  if (!parameters || index >= parameters.count || parameters.isNull(index)) return undefined
  const type = declaredType(index, run)
  // a parameter that stands elsewhere too may have its type from there
  if (type === false || (type === undefined && (value.uses ?? 1) > 1)) return undefined
  const literal = boundLiteral(parameters, index, type)
  const typed = literal === undefined ? undefined : cast(literal, type)
  return typed === undefined ? undefined : cast(typed, value.type)
}

function valueText(value: Value, run: Run): string | undefined {
  if (value.kind === 'null') return undefined
  if (value.kind === 'parameter') return parameter(value, run)
  if (value.slot < 0) return undefined
  const text = run.sql.slice(run.slots.starts[value.slot], run.slots.ends[value.slot])
  // the word UESCAPE behind it would be lost
  if (/^u&/i.test(text)) return undefined
  const signed = value.negative ? `(-${text})` : text
  return cast(signed, value.type)
}

const everything = <T>(parts: readonly (T | undefined)[]): T[] | undefined =>
  parts.every((part) => part !== undefined) ? (parts as T[]) : undefined

function rangeText(
  name: string,
  predicate: Predicate & { op: 'range' },
  run: Run,
): string | undefined {
  const mark = predicate.inclusive ? '=' : ''
  const low = predicate.low && valueText(predicate.low, run)
  const high = predicate.high && valueText(predicate.high, run)
  const parts = [
    ...(low === undefined ? [] : [`${name} >${mark} ${low}`]),
    ...(high === undefined ? [] : [`${name} <${mark} ${high}`]),
  ]
  return parts.length === 0 ? undefined : parts.join(' AND ')
}

/** A condition that holds wherever `predicate` does; undefined: none is known. */
function conditionOf(predicate: Predicate, of: Reference, run: Run): string | undefined {
  switch (predicate.op) {
    case 'and': {
      const parts = predicate.parts.flatMap((part) => conditionOf(part, of, run) ?? [])
      return parts.length === 0 ? undefined : `(${parts.join(' AND ')})`
    }
    case 'or': {
      const parts = everything(predicate.parts.map((part) => conditionOf(part, of, run)))
      return parts && parts.length > 0 ? `(${parts.join(' OR ')})` : undefined
    }
    case 'equal': {
      const name = column(predicate.column, of)
      const values = everything(predicate.values.map((value) => valueText(value, run)))
      if (name === undefined || !values || values.length === 0) return undefined
      return values.length === 1 ? `${name} = ${values[0]}` : `${name} IN (${values.join(', ')})`
    }
    case 'range': {
      const name = column(predicate.column, of)
      return name === undefined ? undefined : rangeText(name, predicate, run)
    }
    case 'null': {
      const name = column(predicate.column, of)
      return name === undefined ? undefined : `${name} IS NULL`
    }
    default:
      return undefined
  }
}

/** What rows of one reference must fulfil to matter to its level; undefined: nothing is known. */
export function filterOf(of: Reference, run: Run): string | undefined {
  const { level, relation } = of
  if (level.kind !== 'select') return undefined
  const use = level.relations[relation]
  const parts = level.conjuncts.flatMap(({ predicate, relations }) => {
    const counts = relations ? relations.includes(relation) : use?.nullable === false
    return counts ? (conditionOf(predicate, of, run) ?? []) : []
  })
  return parts.length === 0 ? undefined : parts.join(' AND ')
}
