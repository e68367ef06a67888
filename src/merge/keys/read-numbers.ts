/**
 * Integers, floats and their kin as pairs. Text forms are those that PostgreSQL writes, so they are read without
 * checks for blanks, prefixes or underscores.
 */
import { int32At } from '../rows/row-frame.js'
import { pair } from './pair-comparator.js'

const MINUS = 45
const ZERO = 48
/** So many digits are exact in a double. */
const EXACT_DIGITS = 15

/** [all but the last 15 digits, the last 15 digits], both with the sign. */
export function readIntegerDigits(bytes: Buffer, from: number, to: number): void {
  let at = from
  const negative = bytes[at] === MINUS
  if (negative) at++
  let high = 0
  for (const split = to - EXACT_DIGITS; at < split; at++)
    high = high * 10 + (bytes[at] as number) - ZERO
  let low = 0
  for (; at < to; at++) low = low * 10 + (bytes[at] as number) - ZERO
  pair[0] = negative ? -high : high
  pair[1] = negative ? -low : low
}

export function readInt2(bytes: Buffer, from: number): void {
  pair[0] = (((bytes[from] as number) << 24) | ((bytes[from + 1] as number) << 16)) >> 16
  pair[1] = 0
}

export function readInt4(bytes: Buffer, from: number): void {
  pair[0] = int32At(bytes, from)
  pair[1] = 0
}

export function readUnsigned4(bytes: Buffer, from: number): void {
  pair[0] = int32At(bytes, from) >>> 0
  pair[1] = 0
}

export function readInt8(bytes: Buffer, from: number): void {
  pair[0] = int32At(bytes, from)
  pair[1] = int32At(bytes, from + 4) >>> 0
}

export function readUnsigned8(bytes: Buffer, from: number): void {
  pair[0] = int32At(bytes, from) >>> 0
  pair[1] = int32At(bytes, from + 4) >>> 0
}

/** NaN is above Infinity and equal to itself. */
function setFloat(value: number): void {
  const isNan = Number.isNaN(value)
  pair[0] = isNan ? Number.POSITIVE_INFINITY : value
  pair[1] = isNan ? 1 : 0
}

export const readFloat4 = (bytes: Buffer, from: number): void => setFloat(bytes.readFloatBE(from))
export const readFloat8 = (bytes: Buffer, from: number): void => setFloat(bytes.readDoubleBE(from))

export const readFloatText = (bytes: Buffer, from: number, to: number): void =>
  setFloat(Number(bytes.toString('latin1', from, to)))

const LETTER_T = 0x74

export function readBoolText(bytes: Buffer, from: number): void {
  pair[0] = bytes[from] === LETTER_T ? 1 : 0
  pair[1] = 0
}

export function readByte(bytes: Buffer, from: number): void {
  pair[0] = bytes[from] as number
  pair[1] = 0
}

const BACKSLASH = 92

/** "char" in text form: nothing for the zero byte, `\ooo` for bytes above 127. @see `charout` */
export function readCharText(bytes: Buffer, from: number, to: number): void {
  pair[1] = 0
  if (to === from) pair[0] = 0
  else if (to - from === 4 && bytes[from] === BACKSLASH)
    pair[0] = Number.parseInt(bytes.toString('latin1', from + 1, to), 8)
  else pair[0] = bytes[from] as number
}

const SLASH = 47

/** pg_lsn in text form: two hexadecimal words. */
export function readLsnText(bytes: Buffer, from: number, to: number): void {
  const slash = bytes.indexOf(SLASH, from)
  pair[0] = Number.parseInt(bytes.toString('latin1', from, slash), 16)
  pair[1] = Number.parseInt(bytes.toString('latin1', slash + 1, to), 16)
}
