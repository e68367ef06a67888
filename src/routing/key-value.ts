/**
 * A literal or parameter → the shards where a key of that value lives. Types decide: a value that the server would compare
 * under another type than the key's gives no narrowing, never a guess.
 */
import { type BinaryArray, readArrayBinary, readArrayText } from '../datum/array.js'
import { readIntegerBinary, wordsAsValue } from '../datum/integer.js'
import type { KeyType } from '../datum/key-type.js'
import { numericAsBigInt, readNumericText } from '../datum/numeric.js'
import { isEngineError } from '../errors/engine-error.js'
import type { BoundParameters, RouteContext } from '../plan/plan.js'
import type { KeyPlacer } from '../sharding/key-placer.js'
import { allShards, noShard, oneShard, type ShardSet, uniteShards } from '../sharding/shard-set.js'
import { stringValue } from '../sql/literal.js'
import type { Value } from '../sql/statement.js'
import type { Slots } from '../sql/template.js'

/** One run of a statement: its text, where its literals stand, and its parameters. */
export interface Run {
  readonly sql: string
  /** Where the statement stands in `sql`. */
  readonly start: number
  readonly end: number
  readonly slots: Slots
  readonly parameters: BoundParameters | undefined
  readonly context: RouteContext
  readonly standard: boolean
}

/** What an unreadable or unmapped value means where it stands. */
export type Use =
  /** The column is compared with it: the server would raise the same error; unmapped values match nothing. */
  | 'compare'
  /** Known through another column, whose type we do not know: unreadable values narrow nothing. */
  | 'infer'
  /** It is stored: errors are thrown. */
  | 'store'

interface Family {
  readonly oids: readonly number[]
  readonly names: readonly string[]
}

const integers: Family = { oids: [20, 21, 23], names: ['int8', 'int4', 'int2'] }
const texts: Family = { oids: [25, 1043], names: ['text', 'varchar'] }
const families: Record<KeyType, Family> = {
  bigint: integers,
  integer: integers,
  smallint: integers,
  numeric: { oids: [1700, ...integers.oids], names: ['numeric', ...integers.names] },
  text: texts,
  varchar: texts,
  bpchar: { oids: [1042], names: ['bpchar'] },
  uuid: { oids: [2950], names: ['uuid'] },
  date: { oids: [1082], names: ['date'] },
  timestamp: { oids: [1114], names: ['timestamp'] },
  timestamptz: { oids: [1184], names: ['timestamptz'] },
  // A declared OID may be that of a type that only converts to it.
  vector: { oids: [], names: ['vector'] },
}
const isInteger = (type: KeyType): boolean => families[type] === integers

const familyHas = (type: KeyType, name: string | undefined): boolean =>
  name === undefined || families[type].names.includes(name)

/** The text of a literal with its sign, or undefined for U&'' and bit strings. */
export function literalText(value: Value & { kind: 'slot' }, run: Run): string | undefined {
  const start = run.slots.starts[value.slot]!
  const end = run.slots.ends[value.slot]!
  if (value.literal === 'string') return stringValue(run.sql, start, end, run.standard)
  if (value.literal === 'bit') return undefined
  const digits = run.sql.slice(start, end)
  return value.negative ? `-${digits}` : digits
}

function ofLiteral(
  value: Value & { kind: 'slot' },
  placer: KeyPlacer,
  run: Run,
  use: Use,
): ShardSet {
  const { keyType } = placer.table
  if (!familyHas(keyType, value.type)) return allShards
  const text = literalText(value, run)
  if (text === undefined) return allShards
  if (value.literal === 'string') return oneShard(placer.ofString(text))
  if (value.literal === 'integer' && isInteger(keyType)) return ofInteger(text, placer, use)
  const toInteger = value.type !== undefined && integers.names.includes(value.type)
  if (keyType === 'numeric' && !toInteger) return oneShard(placer.ofString(text))
  if (!isInteger(keyType) && keyType !== 'numeric') return allShards
  const number = readNumericText(text)
  const whole = typeof number === 'string' ? undefined : numericAsBigInt(number)
  if (whole !== undefined) return ofInteger(String(whole), placer, use)
  // Stored or cast, a fraction would be rounded by the server; compared, it equals no integer.
  return use === 'store' || toInteger ? allShards : noShard
}

/** An integer literal beyond the key's range is of a wider type: it equals no key. */
function ofInteger(text: string, placer: KeyPlacer, use: Use): ShardSet {
  try {
    return oneShard(placer.ofString(text))
  } catch (error) {
    if (use !== 'store' && isEngineError(error) && error.code === 'KEY_OUT_OF_RANGE') return noShard
    throw error
  }
}

/** `unknown` (705) leaves the type to the server, as 0 does. */
function declaredType(index: number, run: Run): number {
  const declared = run.context.parameterTypes?.[index] ?? 0
  return declared === 705 ? 0 : declared
}

/** Whether the server reads a parameter of this declared type as one of the key's family. */
function isKeyTyped(
  value: Value & { kind: 'parameter' },
  declared: number,
  keyType: KeyType,
): boolean {
  if (!familyHas(keyType, value.type)) return false
  if (declared === 0) return (value.uses ?? 1) === 1
  if (!families[keyType].oids.includes(declared)) return false
  // A cast from numeric to an integer rounds.
  return declared !== 1700 || value.type === undefined || value.type === 'numeric'
}

function ofParameter(
  value: Value & { kind: 'parameter' },
  placer: KeyPlacer,
  run: Run,
  use: Use,
): ShardSet {
  const { parameters } = run
  const { keyType } = placer.table
  if (!parameters || value.index >= parameters.count) return allShards
  if (parameters.isNull(value.index)) {
    return use === 'store' ? oneShard(placer.ofNull()) : noShard
  }
  const declared = declaredType(value.index, run)
  if (!isKeyTyped(value, declared, keyType)) return allShards
  const start = parameters.start(value.index)
  const end = parameters.end(value.index)
  if (parameters.format(value.index) === 0) {
    return oneShard(placer.ofText(parameters.buffer, start, end))
  }
  const cast = declared === 0 && value.type !== undefined && value.type !== 'numeric'
  const asInteger = keyType === 'numeric' && (cast || integers.oids.includes(declared))
  return ofBinary(parameters.buffer, start, end, placer, asInteger)
}

function ofBinary(
  buffer: Buffer,
  start: number,
  end: number,
  placer: KeyPlacer,
  asInteger: boolean,
): ShardSet {
  if (!asInteger) return oneShard(placer.ofBinary(buffer, start, end))
  if (!readIntegerBinary(buffer, start, end)) return allShards
  return oneShard(placer.ofString(String(wordsAsValue())))
}

function place(value: Value, placer: KeyPlacer, run: Run, use: Use): ShardSet {
  switch (value.kind) {
    case 'null':
      return use === 'store' ? oneShard(placer.ofNull()) : noShard
    case 'slot':
      return ofLiteral(value, placer, run, use)
    case 'parameter':
      return ofParameter(value, placer, run, use)
  }
}

/** A value that cannot be placed, where it is compared. */
function unplaced(error: unknown, use: Use): ShardSet {
  if (!isEngineError(error) || use === 'store') throw error
  if (error.code === 'KEY_UNMAPPED' || error.code === 'KEY_NULL') return noShard
  if (error.code === 'KEY_AMBIGUOUS' || error.code === 'KEY_BINARY_INVALID') return allShards
  if (use === 'infer') return allShards
  throw error
}

/** Shards of keys equal to `value`; all when it is not known. */
export function shardsOfValue(value: Value, placer: KeyPlacer, run: Run, use: Use): ShardSet {
  try {
    return place(value, placer, run, use)
  } catch (error) {
    return unplaced(error, use)
  }
}

/** The shard of NULL keys; none where NULL is not mapped. */
export function shardsOfNull(placer: KeyPlacer): ShardSet {
  try {
    return oneShard(placer.ofNull())
  } catch (error) {
    return unplaced(error, 'compare')
  }
}

function ofTexts(values: readonly (string | null)[], placer: KeyPlacer, use: Use): ShardSet {
  let set = noShard
  for (const value of values) {
    if (value === null) continue
    try {
      set = uniteShards(set, oneShard(placer.ofString(value)))
    } catch (error) {
      set = uniteShards(set, unplaced(error, use))
    }
  }
  return set
}

const arrayName = (type: string | undefined): string | undefined =>
  type === undefined ? undefined : type.endsWith('[]') ? type.slice(0, -2) : '?'

/** Array type → element type, of the types that keys have. */
const elementOf: Record<number, number> = {
  1005: 21,
  1007: 23,
  1016: 20,
  1009: 25,
  1015: 1043,
  1014: 1042,
  1231: 1700,
  2951: 2950,
  1182: 1082,
  1115: 1114,
  1185: 1184,
}

/** Shards of keys in the array that `value` is. */
export function shardsOfArray(value: Value, placer: KeyPlacer, run: Run, use: Use): ShardSet {
  if (value.kind === 'null') return noShard
  if (!familyHas(placer.table.keyType, arrayName(value.type))) return allShards
  if (value.kind === 'slot') {
    const text = value.literal === 'string' ? literalText(value, run) : undefined
    const values = text === undefined ? undefined : readArrayText(text)
    return values ? ofTexts(values, placer, use) : allShards
  }
  if (value.uses !== undefined && value.uses > 1 && declaredType(value.index, run) === 0) {
    return allShards
  }
  return arrayParameter(value.index, placer, run, use)
}

function arrayParameter(index: number, placer: KeyPlacer, run: Run, use: Use): ShardSet {
  const { parameters } = run
  if (!parameters || index >= parameters.count) return allShards
  if (parameters.isNull(index)) return noShard
  const oids = families[placer.table.keyType].oids
  const declared = declaredType(index, run)
  if (declared !== 0 && !oids.includes(elementOf[declared] ?? -1)) return allShards
  const start = parameters.start(index)
  const end = parameters.end(index)
  if (parameters.format(index) === 0) {
    const values = readArrayText(parameters.buffer.toString('utf8', start, end))
    return values ? ofTexts(values, placer, use) : allShards
  }
  const array = readArrayBinary(parameters.buffer, start, end)
  if (!array || !oids.includes(array.elementType)) return allShards
  if (placer.table.keyType === 'numeric' && array.elementType !== 1700) return allShards
  return ofElements(array, parameters.buffer, placer, use)
}

function ofElements(array: BinaryArray, buffer: Buffer, placer: KeyPlacer, use: Use): ShardSet {
  let set = noShard
  for (const element of array.elements) {
    if (!element) continue
    try {
      set = uniteShards(set, oneShard(placer.ofBinary(buffer, element.start, element.end)))
    } catch (error) {
      set = uniteShards(set, unplaced(error, use))
    }
  }
  return set
}

/** A value as a bound of a range; undefined when it is not known. */
export function boundOf(
  value: Value | undefined,
  placer: KeyPlacer,
  run: Run,
): string | Buffer | undefined {
  const { keyType } = placer.table
  if (!value || value.kind === 'null' || !familyHas(keyType, value.type)) return undefined
  if (value.kind === 'slot') return boundLiteral(value, keyType, run)
  if ((value.uses ?? 1) > 1 && declaredType(value.index, run) === 0) return undefined
  return boundParameter(value, keyType, run)
}

function boundLiteral(
  value: Value & { kind: 'slot' },
  type: KeyType,
  run: Run,
): string | undefined {
  if (value.literal === 'integer' && !isInteger(type) && type !== 'numeric') return undefined
  if (value.literal === 'number' && type !== 'numeric') return undefined
  return literalText(value, run)
}

function boundParameter(
  value: Value & { kind: 'parameter' },
  type: KeyType,
  run: Run,
): string | Buffer | undefined {
  const { parameters } = run
  const { index } = value
  if (!parameters || index >= parameters.count || parameters.isNull(index)) return undefined
  const declared = declaredType(index, run)
  if (!isKeyTyped(value, declared, type)) return undefined
  const start = parameters.start(index)
  const end = parameters.end(index)
  if (parameters.format(index) === 0) return parameters.buffer.toString('utf8', start, end)
  // Numeric takes other types' bytes for its own.
  const isOwn = type !== 'numeric' || (declared === 1700 && value.type === undefined)
  return isOwn ? Buffer.from(parameters.buffer.subarray(start, end)) : undefined
}
