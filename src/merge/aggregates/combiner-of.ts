/** Makes the partial values of one aggregate of one group its value, exactly as PostgreSQL would over all rows. */
import { engineError } from '../../errors/engine-error.js'
import type { Combine } from '../../plan/merge-program.js'
import type { FieldDescription } from '../../wire/backend-messages.js'
import type { Comparator } from '../keys/comparator.js'
import { comparatorOf } from '../keys/comparator-of.js'
import { typeOids } from '../keys/type-oids.js'
import type { Combiner, Parts } from './combiner.js'
import { addDecimals, type Decimal, divideDecimals, ofInteger, zero } from './decimal.js'
import { FloatDeviation, NumericDeviation } from './deviation.js'
import {
  checkedSum,
  isIntegerType,
  readBoolean,
  readDecimal,
  readFloat,
  readInteger,
  type Slice,
  writeBoolean,
  writeDecimal,
  writeFloat,
  writeInteger,
} from './values.js'

/** Folds values that are not NULL. */
class Fold<T> implements Combiner {
  readonly #read: (slice: Slice) => T
  readonly #join: (a: T, b: T) => T
  readonly #write: (value: T) => Buffer
  #value: T | undefined

  constructor(read: (slice: Slice) => T, join: (a: T, b: T) => T, write: (value: T) => Buffer) {
    this.#read = read
    this.#join = join
    this.#write = write
  }

  reset(): void {
    this.#value = undefined
  }

  add([part]: Parts): void {
    if (!part) return
    const value = this.#read(part)
    this.#value = this.#value === undefined ? value : this.#join(this.#value, value)
  }

  result(): Buffer | null {
    return this.#value === undefined ? null : this.#write(this.#value)
  }
}

/** The least or the greatest, as its server wrote it. */
class Extreme implements Combiner {
  readonly #comparator: Comparator
  readonly #sign: number
  #best: Buffer | undefined

  constructor(comparator: Comparator, sign: number) {
    this.#comparator = comparator
    this.#sign = sign
  }

  reset(): void {
    this.#best = undefined
  }

  add([part]: Parts): void {
    if (!part) return
    const own = Buffer.from(part.bytes.subarray(part.from, part.to))
    this.#comparator.read(own, 0, own.length, 0)
    if (this.#best && this.#comparator.compare(0, 1) * this.#sign >= 0) return
    this.#best = own
    this.#comparator.keep(0, 1)
  }

  result(): Buffer | null {
    return this.#best ?? null
  }
}

class FloatAverage implements Combiner {
  readonly #fields: readonly FieldDescription[]
  #sum = 0
  #count = 0n

  /** Of the sum, the count, and the answer. */
  constructor(fields: readonly FieldDescription[]) {
    this.#fields = fields
  }

  reset(): void {
    this.#sum = 0
    this.#count = 0n
  }

  add([sum, count]: Parts): void {
    if (!sum || !count) return
    const value = readFloat(sum, this.#fields[0]!)
    this.#sum = this.#count === 0n ? value : checkedSum(this.#sum, value, this.#sum + value)
    this.#count += readInteger(count, this.#fields[1]!)
  }

  result(): Buffer | null {
    if (this.#count === 0n) return null
    return writeFloat(this.#sum / Number(this.#count), this.#fields[2]!)
  }
}

class NumericAverage implements Combiner {
  readonly #fields: readonly FieldDescription[]
  #sum: Decimal = zero
  #count = 0n

  constructor(fields: readonly FieldDescription[]) {
    this.#fields = fields
  }

  reset(): void {
    this.#sum = zero
    this.#count = 0n
  }

  add([sum, count]: Parts): void {
    if (!sum || !count) return
    this.#sum = addDecimals(this.#sum, readDecimal(sum, this.#fields[0]!))
    this.#count += readInteger(count, this.#fields[1]!)
  }

  result(): Buffer | null {
    if (this.#count === 0n) return null
    return writeDecimal(divideDecimals(this.#sum, ofInteger(this.#count)), this.#fields[2]!)
  }
}

const isFloat = (type: number): boolean => type === typeOids.float4 || type === typeOids.float8

function sumOf(field: FieldDescription): Combiner | undefined {
  const { typeOid } = field
  if (typeOid === typeOids.int8) return integers(field, (a, b) => a + b)
  if (typeOid === typeOids.numeric) {
    return new Fold(
      (slice) => readDecimal(slice, field),
      addDecimals,
      (value) => writeDecimal(value, field),
    )
  }
  if (!isFloat(typeOid)) return undefined
  const round = typeOid === typeOids.float4 ? Math.fround : (value: number) => value
  return new Fold(
    (slice) => readFloat(slice, field),
    (a, b) => checkedSum(a, b, round(a + b)),
    (value) => writeFloat(value, field),
  )
}

const integers = (field: FieldDescription, join: (a: bigint, b: bigint) => bigint): Combiner =>
  new Fold(
    (slice) => readInteger(slice, field),
    join,
    (value) => writeInteger(value, field),
  )

const booleans = (field: FieldDescription, join: (a: boolean, b: boolean) => boolean): Combiner =>
  new Fold(
    (slice) => readBoolean(slice, field),
    join,
    (value) => writeBoolean(value, field),
  )

const bitJoins = {
  bit_and: (a: bigint, b: bigint) => a & b,
  bit_or: (a: bigint, b: bigint) => a | b,
  bit_xor: (a: bigint, b: bigint) => a ^ b,
} as const

function extremeOf({ by, bytewise }: Combine, field: FieldDescription): Combiner | undefined {
  const { typeOid, format } = field
  const comparator = comparatorOf({ typeOid, format, bytewise: bytewise ?? false })
  return comparator && new Extreme(comparator, by === 'min' ? 1 : -1)
}

function averageOf(fields: readonly FieldDescription[]): Combiner | undefined {
  const type = fields.at(-1)!.typeOid
  if (type === typeOids.float8) return new FloatAverage(fields)
  return type === typeOids.numeric ? new NumericAverage(fields) : undefined
}

function deviationOf({ by }: Combine, fields: readonly FieldDescription[]): Combiner | undefined {
  const kind = { isSample: by.endsWith('_samp'), isRoot: by.startsWith('stddev') }
  const type = fields.at(-1)!.typeOid
  if (type === typeOids.float8) return new FloatDeviation(fields, kind)
  return type === typeOids.numeric ? new NumericDeviation(fields, kind) : undefined
}

function make(combine: Combine, fields: readonly FieldDescription[]): Combiner | undefined {
  const answer = fields[combine.column]!
  const own = [...combine.parts.map((part) => fields[part]!), answer]
  switch (combine.by) {
    case 'count':
      return integers(answer, (a, b) => a + b)
    case 'sum':
      return sumOf(answer)
    case 'min':
    case 'max':
      return extremeOf(combine, answer)
    case 'bool_and':
      return booleans(answer, (a, b) => a && b)
    case 'bool_or':
      return booleans(answer, (a, b) => a || b)
    case 'bit_and':
    case 'bit_or':
    case 'bit_xor':
      return isIntegerType(answer.typeOid) ? integers(answer, bitJoins[combine.by]) : undefined
    case 'avg':
      return averageOf(own)
    default:
      return deviationOf(combine, own)
  }
}

/** @throws MERGE_COMBINE_TYPE */
export function combinerOf(combine: Combine, fields: readonly FieldDescription[]): Combiner {
  const made = make(combine, fields)
  if (made) return made
  throw engineError('MERGE_COMBINE_TYPE', {
    aggregate: combine.by,
    type: fields[combine.column]?.typeOid ?? 0,
  })
}
