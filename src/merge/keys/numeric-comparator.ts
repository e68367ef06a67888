/** numeric: most values are two exact doubles, whole part and fraction; what does not fit is kept digit by digit. */
import {
  compareNumeric,
  type NumericValue,
  numericIdentity,
  readNumericBinary,
  readNumericText,
} from '../../datum/numeric.js'
import { type Comparator, grown } from './comparator.js'

const MINUS = 45
const DOT = 46
const ZERO = 48
/** Digits of a whole part, and of a fraction, in text form. */
const TEXT_DIGITS = 15
/** Digits of a fraction in binary form: three groups of four. */
const BINARY_DIGITS = 12

/** [whole part, fraction as an integer]; NaN is [Infinity, 1]. */
const parts = new Float64Array(2)

function setSpecial(whole: number, isNan: boolean): true {
  parts[0] = whole
  parts[1] = isNan ? 1 : 0
  return true
}

/** Leaves `parts`; false when the value does not fit in them. */
function readText(bytes: Buffer, from: number, to: number): boolean {
  const negative = bytes[from] === MINUS
  let at = negative ? from + 1 : from
  const first = bytes[at] as number
  if (first > 57) return setSpecial(negative ? -1 / 0 : 1 / 0, first === 78)
  let whole = 0
  const start = at
  while (at < to && bytes[at] !== DOT) whole = whole * 10 + (bytes[at++] as number) - ZERO
  if (at - start > TEXT_DIGITS) return false
  let fraction = 0
  if (at < to) {
    const digits = withoutZeros(bytes, ++at, to) - at
    if (digits > TEXT_DIGITS) return false
    for (const end = at + digits; at < end; at++)
      fraction = fraction * 10 + (bytes[at] as number) - ZERO
    fraction *= 10 ** (TEXT_DIGITS - digits)
  }
  parts[0] = negative ? -whole : whole
  parts[1] = negative ? -fraction : fraction
  return true
}

/** Zeros at the end of a long fraction mean nothing, and equal values must be kept in one form. */
function withoutZeros(bytes: Buffer, from: number, to: number): number {
  let end = to
  if (to - from > TEXT_DIGITS) while (end > from && bytes[end - 1] === ZERO) end--
  return end
}

const NAN = 0xc000
const MINUS_INFINITY = 0xf000

function readBinary(bytes: Buffer, from: number): boolean {
  const sign = bytes.readUInt16BE(from + 4)
  if (sign >= NAN) return setSpecial(sign === MINUS_INFINITY ? -1 / 0 : 1 / 0, sign === NAN)
  const count = bytes.readUInt16BE(from)
  const weight = bytes.readInt16BE(from + 2)
  if (count > 0 && (weight > 2 || weight - count + 1 < -3)) return false
  let whole = 0
  let fraction = 0
  for (let power = Math.max(weight, 0); power >= -3; power--) {
    const i = weight - power
    const digit = i >= 0 && i < count ? bytes.readUInt16BE(from + 8 + i * 2) : 0
    if (power >= 0) whole = whole * 10_000 + digit
    else fraction = fraction * 10_000 + digit
  }
  const negative = sign !== 0
  parts[0] = negative ? -whole : whole
  parts[1] = negative ? -fraction : fraction
  return true
}

export class NumericComparator implements Comparator {
  readonly #isBinary: boolean
  readonly #fractionDigits: number
  #whole = new Float64Array(16)
  #fraction = new Float64Array(16)
  /** The values that do not fit. */
  readonly #long: (NumericValue | undefined)[] = []

  constructor(isBinary: boolean) {
    this.#isBinary = isBinary
    this.#fractionDigits = isBinary ? BINARY_DIGITS : TEXT_DIGITS
  }

  read(bytes: Buffer, from: number, to: number, slot: number): void {
    const fits = this.#isBinary ? readBinary(bytes, from) : readText(bytes, from, to)
    if (slot >= this.#whole.length) this.#grow(slot)
    this.#whole[slot] = parts[0] as number
    this.#fraction[slot] = parts[1] as number
    this.#long[slot] = fits ? undefined : this.#readLong(bytes, from, to)
  }

  #readLong(bytes: Buffer, from: number, to: number): NumericValue {
    return this.#isBinary
      ? (readNumericBinary(bytes, from, to) as NumericValue)
      : (readNumericText(bytes.toString('latin1', from, to)) as NumericValue)
  }

  compare(a: number, b: number): number {
    if (this.#long[a] || this.#long[b]) return compareNumeric(this.#value(a), this.#value(b))
    const difference = (this.#whole[a] as number) - (this.#whole[b] as number)
    // two infinities have no difference
    if (difference !== 0 && !Number.isNaN(difference)) return difference
    return (this.#fraction[a] as number) - (this.#fraction[b] as number)
  }

  #value(slot: number): NumericValue {
    const long = this.#long[slot]
    if (long) return long
    const whole = this.#whole[slot] as number
    const fraction = this.#fraction[slot] as number
    const text =
      Math.abs(whole) === Number.POSITIVE_INFINITY
        ? fraction === 1
          ? 'NaN'
          : String(whole)
        : `${whole < 0 || fraction < 0 ? '-' : ''}${Math.abs(whole)}.${String(Math.abs(fraction)).padStart(this.#fractionDigits, '0')}`
    return readNumericText(text) as NumericValue
  }

  keep(from: number, to: number): void {
    if (to >= this.#whole.length) this.#grow(to)
    this.#whole[to] = this.#whole[from] as number
    this.#fraction[to] = this.#fraction[from] as number
    this.#long[to] = this.#long[from]
  }

  identity(slot: number): string {
    const long = this.#long[slot]
    if (long) return numericIdentity(long)
    return `${(this.#whole[slot] as number) + 0},${(this.#fraction[slot] as number) + 0}`
  }

  #grow(slot: number): void {
    this.#whole = grown(this.#whole, slot)
    this.#fraction = grown(this.#fraction, slot)
  }
}
