/**
 * What storing in a column with a type modifier makes of a value: varchar(n), numeric(p, s), timestamp(p). A value that the
 * column cannot take is left as it is: the server raises its error wherever the row goes.
 * Follows `varchar_input`, `apply_typmod` and `AdjustTimestampForTypmod` of PostgreSQL.
 */
import { integerWords, setWordsOfBigInt } from './integer.js'
import { type NumericValue, readNumericText } from './numeric.js'

const isContinuation = (byte: number): boolean => (byte & 0xc0) === 0x80

/** End of the first `length` characters when only blanks stand behind them; else `to`. */
export function cutVarchar(bytes: Buffer, from: number, to: number, length: number): number {
  if (to - from <= length) return to
  let at = from
  for (let seen = 0; at < to; at++) {
    if (!isContinuation(bytes[at]!) && seen++ === length) break
  }
  for (let rest = at; rest < to; rest++) if (bytes[rest] !== 32) return to
  return at
}

/** Scale of a modifier: eleven bits with a sign since PostgreSQL 15. */
const scaleOf = (typmod: number): number => (((typmod - 4) & 0x7ff) ^ 1024) - 1024

/** Rounded half away from zero, as numeric(p, s) does. */
export function roundNumeric(value: NumericValue, typmod: number): NumericValue {
  if (typmod < 4 || value.kind !== 'finite') return value
  const scale = scaleOf(typmod)
  const { digits, negative, weight } = value
  const dropped = 4 * (digits.length - 1 - weight) - scale
  if (dropped <= 0) return value
  const whole = BigInt(digits.map((digit) => String(digit).padStart(4, '0')).join('') || '0')
  const unit = 10n ** BigInt(dropped)
  const rounded = (whole + unit / 2n) / unit
  const read = readNumericText(`${negative ? '-' : ''}${rounded}e${-scale}`)
  return typeof read === 'string' ? value : read
}

/** Rounds the microseconds in `integerWords` to `precision` digits of a second; the infinities stay. */
export function roundTimestamp(precision: number): void {
  if (precision >= 6) return
  const micros = (BigInt(integerWords[0]!) << 32n) | BigInt(integerWords[1]! >>> 0)
  if (micros === 2n ** 63n - 1n || micros === -(2n ** 63n)) return
  const unit = 10n ** BigInt(6 - precision)
  const half = unit / 2n
  setWordsOfBigInt(
    micros >= 0n ? ((micros + half) / unit) * unit : -(((-micros + half) / unit) * unit),
  )
}
