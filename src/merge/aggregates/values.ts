/** Partial values of aggregates, read from and written to the form in which a column comes. */
import { engineError } from '../../errors/engine-error.js'
import type { FieldDescription } from '../../wire/backend-messages.js'
import { typeOids } from '../keys/type-oids.js'
import {
  binaryOfDecimal,
  type Decimal,
  decimalOfBinary,
  decimalOfText,
  textOfDecimal,
} from './decimal.js'
import { textOfFloat } from './float-text.js'

/** Where a value stands in a row. */
export interface Slice {
  readonly bytes: Buffer
  readonly from: number
  readonly to: number
}

export type Column = Pick<FieldDescription, 'typeOid' | 'format'>

const textOf = ({ bytes, from, to }: Slice): string => bytes.toString('latin1', from, to)

const integerBytes = new Map<number, number>([
  [typeOids.int2, 2],
  [typeOids.int4, 4],
  [typeOids.int8, 8],
])

export const isIntegerType = (type: number): boolean => integerBytes.has(type)

export function readInteger(slice: Slice, { format }: Column): bigint {
  if (format === 0) return BigInt(textOf(slice))
  const { bytes, from, to } = slice
  if (to - from === 8) return bytes.readBigInt64BE(from)
  return BigInt(to - from === 4 ? bytes.readInt32BE(from) : bytes.readInt16BE(from))
}

/** @throws MERGE_OUT_OF_RANGE as PostgreSQL does for a sum */
export function writeInteger(value: bigint, { typeOid, format }: Column): Buffer {
  const size = integerBytes.get(typeOid) ?? 8
  if (BigInt.asIntN(size * 8, value) !== value) {
    throw engineError('MERGE_OUT_OF_RANGE', { what: 'bigint out of range' })
  }
  if (format === 0) return Buffer.from(String(value))
  const bytes = Buffer.alloc(8)
  bytes.writeBigInt64BE(value)
  return bytes.subarray(8 - size)
}

export function readDecimal(slice: Slice, column: Column): Decimal {
  if (isIntegerType(column.typeOid)) {
    return { unscaled: readInteger(slice, column), scale: 0 }
  }
  return column.format === 0
    ? decimalOfText(textOf(slice))
    : decimalOfBinary(slice.bytes, slice.from)
}

export const writeDecimal = (value: Decimal, { format }: Column): Buffer =>
  format === 0 ? Buffer.from(textOfDecimal(value)) : binaryOfDecimal(value)

export function readFloat(slice: Slice, { typeOid, format }: Column): number {
  if (format === 0) {
    const value = Number(textOf(slice))
    return typeOid === typeOids.float4 ? Math.fround(value) : value
  }
  return typeOid === typeOids.float4
    ? slice.bytes.readFloatBE(slice.from)
    : slice.bytes.readDoubleBE(slice.from)
}

export function writeFloat(value: number, { typeOid, format }: Column): Buffer {
  const isShort = typeOid === typeOids.float4
  if (format === 0) return Buffer.from(textOfFloat(value, isShort ? 'float4' : 'float8'))
  const bytes = Buffer.alloc(isShort ? 4 : 8)
  if (isShort) bytes.writeFloatBE(value)
  else bytes.writeDoubleBE(value)
  return bytes
}

export const readBoolean = ({ bytes, from }: Slice, { format }: Column): boolean =>
  format === 0 ? bytes[from] === 0x74 : bytes[from] === 1

export const writeBoolean = (value: boolean, { format }: Column): Buffer =>
  format === 0 ? Buffer.from(value ? 't' : 'f') : Buffer.from([value ? 1 : 0])

/** Floats beyond the range are an error of the sum, unless an operand was infinite itself. */
export function checkedSum(a: number, b: number, sum: number): number {
  if (!Number.isFinite(sum) && Number.isFinite(a) && Number.isFinite(b)) {
    throw engineError('MERGE_OUT_OF_RANGE', { what: 'value out of range: overflow' })
  }
  return sum
}
