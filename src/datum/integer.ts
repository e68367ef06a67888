/**
 * Integers in text and binary form as two 32-bit words. Follows `pg_strtoint64` in src/backend/utils/adt/numutils.c of
 * PostgreSQL 16 and later (an older server rejects 0x1F and 1_000 itself). Never throws, never uses BigInt for decimal digits.
 */

/** [high, low] of the last integer read; overwritten by the next call. */
export const integerWords = new Int32Array(2)

export type ReadStatus = 'ok' | 'syntax' | 'range'

const isSpace = (byte: number): boolean => byte === 32 || (byte >= 9 && byte <= 13)

/** Puts a whole number within ±2^53 into `integerWords`. */
export function setWords(value: number): void {
  integerWords[0] = Math.floor(value / 4294967296)
  integerWords[1] = value
}

export function setWordsOfBigInt(value: bigint): void {
  integerWords[0] = Number(BigInt.asIntN(32, value >> 32n))
  integerWords[1] = Number(BigInt.asIntN(32, value))
}

/** `integerWords` as a number where it is exact, else as a bigint; both compare rightly with each other. */
export function wordsAsValue(): number | bigint {
  const high = integerWords[0]!
  const low = integerWords[1]! >>> 0
  if (high >= -0x200000 && high < 0x200000) return high * 4294967296 + low
  return (BigInt(high) << 32n) | BigInt(low)
}

/** True when the value in `integerWords` fits in `size` bytes. */
export function wordsFit(size: 2 | 4 | 8): boolean {
  if (size === 8) return true
  const low = integerWords[1]!
  if (integerWords[0] !== low >> 31) return false
  return size === 4 || (low >= -32768 && low <= 32767)
}

/** Text input form of smallint, integer and bigint: blanks, sign, digits, blanks. */
export function readIntegerText(
  bytes: Uint8Array,
  from: number,
  to: number,
  size: 2 | 4 | 8,
): ReadStatus {
  let at = from
  let end = to
  while (at < end && isSpace(bytes[at]!)) at++
  while (end > at && isSpace(bytes[end - 1]!)) end--
  const sign = bytes[at]
  const negative = sign === 45
  if (negative || sign === 43) at++
  if (at === end) return 'syntax'
  if (end - at <= 9 && readShortest(bytes, at, end, negative))
    return wordsFit(size) ? 'ok' : 'range'
  const status = end - at <= 15 ? readShort(bytes, at, end, negative) : 'long'
  const done = status === 'ok' ? status : readLong(bytes, at, end, negative)
  if (done !== 'ok') return done
  return wordsFit(size) ? 'ok' : 'range'
}

/** Up to nine digits are 32-bit integers all the way. False: something else is among them. */
function readShortest(bytes: Uint8Array, from: number, to: number, negative: boolean): boolean {
  let value = 0
  for (let at = from; at < to; at++) {
    const digit = bytes[at]! - 48
    if (digit < 0 || digit > 9) return false
    value = (value * 10 + digit) | 0
  }
  const low = negative ? -value | 0 : value
  integerWords[0] = low >> 31
  integerWords[1] = low
  return true
}

/** Up to 15 digits are exact in a double. */
function readShort(bytes: Uint8Array, from: number, to: number, negative: boolean): 'ok' | 'other' {
  let value = 0
  for (let at = from; at < to; at++) {
    const digit = bytes[at]! - 48
    if (digit < 0 || digit > 9) return 'other'
    value = value * 10 + digit
  }
  setWords(negative ? -value : value)
  return 'ok'
}

function readLong(bytes: Uint8Array, from: number, to: number, negative: boolean): ReadStatus {
  let high = 0
  let low = 0
  for (let at = from; at < to; at++) {
    const digit = bytes[at]! - 48
    if (digit < 0 || digit > 9) return readPrefixed(bytes, from, to, negative)
    const next = low * 10 + digit
    low = next >>> 0
    high = high * 10 + (next - low) / 4294967296
    // Later digits can only make it larger; junk behind them is still a syntax error.
    if (high > 0xffffffff) return allDigits(bytes, at, to) ? 'range' : 'syntax'
  }
  return storeMagnitude(high, low, negative)
}

function storeMagnitude(high: number, low: number, negative: boolean): ReadStatus {
  if (high > 0x80000000 || (high === 0x80000000 && (low !== 0 || !negative))) return 'range'
  if (!negative) {
    integerWords[0] = high
    integerWords[1] = low
    return 'ok'
  }
  integerWords[1] = -low
  integerWords[0] = low === 0 ? -high : ~high
  return 'ok'
}

const allDigits = (bytes: Uint8Array, from: number, to: number): boolean => {
  for (let at = from; at < to; at++) if (bytes[at]! < 48 || bytes[at]! > 57) return false
  return true
}

const prefixed = /^(?:0x(?:_?[0-9a-f])+|0o(?:_?[0-7])+|0b(?:_?[01])+|\d(?:_?\d)*)$/i

/** 0x1F, 0o17, 0b11 and 1_000 of PostgreSQL 16. */
function readPrefixed(bytes: Uint8Array, from: number, to: number, negative: boolean): ReadStatus {
  if (to - from > 200) return 'syntax'
  const text = Buffer.from(bytes.subarray(from, to)).toString('latin1')
  if (!prefixed.test(text)) return 'syntax'
  const magnitude = BigInt(text.replaceAll('_', ''))
  const value = negative ? -magnitude : magnitude
  if (BigInt.asIntN(64, value) !== value) return 'range'
  setWordsOfBigInt(value)
  return 'ok'
}

/** Without the checks of Buffer's own: the length is known. */
const wordAt = (bytes: Uint8Array, at: number): number =>
  (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!

/** Binary form: two, four or eight bytes, by length. False when it is none of these. */
export function readIntegerBinary(bytes: Buffer, from: number, to: number): boolean {
  switch (to - from) {
    case 8:
      integerWords[0] = wordAt(bytes, from)
      integerWords[1] = wordAt(bytes, from + 4)
      return true
    case 4:
      setWords(bytes.readInt32BE(from))
      return true
    case 2:
      setWords(bytes.readInt16BE(from))
      return true
    default:
      return false
  }
}
