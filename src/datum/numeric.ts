/**
 * numeric as PostgreSQL keeps it: base-10,000 digits without leading and trailing zeros, and the weight of the first.
 * Follows `set_var_from_str`, `numeric_recv` and `cmp_var` in src/backend/utils/adt/numeric.c.
 */

export interface NumericValue {
  readonly kind: 'finite' | 'nan' | 'infinity'
  readonly negative: boolean
  /** Of the first digit: it stands for digit × 10,000^weight. */
  readonly weight: number
  readonly digits: readonly number[]
}

const nan: NumericValue = { kind: 'nan', negative: false, weight: 0, digits: [] }
const infinity: NumericValue = { kind: 'infinity', negative: false, weight: 0, digits: [] }
const minusInfinity: NumericValue = { kind: 'infinity', negative: true, weight: 0, digits: [] }

const decimal =
  /^([+-]?)(?:(\d(?:_?\d)*)(?:\.((?:\d(?:_?\d)*)?))?|\.(\d(?:_?\d)*))(?:e([+-]?\d+))?$/i
const prefixed = /^([+-]?)(0x(?:_?[0-9a-f])+|0o(?:_?[0-7])+|0b(?:_?[01])+)$/i
const special = /^([+-]?)(?:(nan)|inf(?:inity)?)$/i

/** The text input form; `range` where PostgreSQL says that the value overflows the format. */
export function readNumericText(text: string): NumericValue | 'syntax' | 'range' {
  const trimmed = text.replace(/^[ \t\n\v\f\r]+|[ \t\n\v\f\r]+$/g, '')
  const word = special.exec(trimmed)
  if (word) {
    if (word[2]) return word[1] === '' ? nan : 'syntax'
    return word[1] === '-' ? minusInfinity : infinity
  }
  const based = prefixed.exec(trimmed)
  if (based) return finite(based[1] === '-', BigInt(based[2]!.replaceAll('_', '')).toString(), 0)
  const match = decimal.exec(trimmed)
  return match ? readDecimal(match) : 'syntax'
}

function readDecimal(match: RegExpExecArray): NumericValue | 'range' {
  const whole = (match[2] ?? '').replaceAll('_', '')
  const fraction = (match[3] ?? match[4] ?? '').replaceAll('_', '')
  const exponent = match[5] === undefined ? 0 : Number(match[5])
  if (Math.abs(exponent) > 1_000_000) return 'range'
  if (fraction.length - exponent > 16383 || whole.length + exponent > 131072) return 'range'
  return finite(match[1] === '-', whole + fraction, exponent - fraction.length)
}

/** digits × 10^exponent. */
function finite(negative: boolean, digits: string, exponent: number): NumericValue {
  let from = 0
  while (digits[from] === '0') from++
  if (from === digits.length) return { kind: 'finite', negative: false, weight: 0, digits: [] }
  let to = digits.length
  while (digits[to - 1] === '0') to--
  let scale = exponent + (digits.length - to)
  let significant = digits.slice(from, to)
  const pad = ((scale % 4) + 4) % 4
  significant += '0'.repeat(pad)
  scale -= pad
  significant = '0'.repeat((4 - (significant.length % 4)) % 4) + significant
  const groups: number[] = []
  for (let at = 0; at < significant.length; at += 4)
    groups.push(Number(significant.slice(at, at + 4)))
  return trim(negative, groups, groups.length - 1 + scale / 4)
}

function trim(negative: boolean, groups: readonly number[], weight: number): NumericValue {
  let from = 0
  let to = groups.length
  while (from < to && groups[from] === 0) from++
  while (to > from && groups[to - 1] === 0) to--
  if (from === to) return { kind: 'finite', negative: false, weight: 0, digits: [] }
  return { kind: 'finite', negative, weight: weight - from, digits: groups.slice(from, to) }
}

/** Int16 count · Int16 weight · Int16 sign · Int16 display scale · count × Int16. */
export function readNumericBinary(
  bytes: Buffer,
  from: number,
  to: number,
): NumericValue | undefined {
  if (to - from < 8) return undefined
  const count = bytes.readUInt16BE(from)
  const weight = bytes.readInt16BE(from + 2)
  const sign = bytes.readUInt16BE(from + 4)
  const scale = bytes.readUInt16BE(from + 6)
  if (to - from !== 8 + count * 2 || scale > 0x3fff) return undefined
  if (sign === 0xc000) return nan
  if (sign === 0xd000) return infinity
  if (sign === 0xf000) return minusInfinity
  if (sign !== 0 && sign !== 0x4000) return undefined
  const groups: number[] = []
  for (let i = 0; i < count; i++) {
    const digit = bytes.readUInt16BE(from + 8 + i * 2)
    if (digit > 9999) return undefined
    groups.push(digit)
  }
  return trim(sign === 0x4000, cutToScale(groups, weight, scale), weight)
}

/** `numeric_recv` drops digits behind the display scale. */
function cutToScale(groups: number[], weight: number, scale: number): readonly number[] {
  const kept = Math.max(weight + 1 + Math.ceil(scale / 4), 0)
  if (groups.length < kept) return groups
  const cut = groups.slice(0, kept)
  const unit = 10 ** ((4 - (scale % 4)) % 4)
  if (cut.length === kept && kept > 0) cut[kept - 1] = cut[kept - 1]! - (cut[kept - 1]! % unit)
  return cut
}

const rank = (value: NumericValue): number => {
  if (value.kind === 'nan') return 2
  if (value.kind === 'infinity') return value.negative ? -1 : 1
  return 0
}

/** Order of numeric's btree class: NaN is above everything. */
export function compareNumeric(a: NumericValue, b: NumericValue): number {
  const ranks = rank(a) - rank(b)
  if (ranks !== 0 || a.kind !== 'finite') return ranks
  const signA = a.digits.length === 0 ? 0 : a.negative ? -1 : 1
  const signB = b.digits.length === 0 ? 0 : b.negative ? -1 : 1
  if (signA !== signB) return signA - signB
  return signA * compareMagnitude(a, b)
}

function compareMagnitude(a: NumericValue, b: NumericValue): number {
  if (a.weight !== b.weight) return a.weight - b.weight
  const length = Math.max(a.digits.length, b.digits.length)
  for (let i = 0; i < length; i++) {
    const difference = (a.digits[i] ?? 0) - (b.digits[i] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}

/** One string per value: equal exactly when the numerics are equal. */
export function numericIdentity(value: NumericValue): string {
  return `${value.kind}${value.negative ? '-' : '+'}${value.weight}:${value.digits.join(',')}`
}

/** The value as an integer when it is whole and within ±2^63 or so; else undefined. */
export function numericAsBigInt(value: NumericValue): bigint | undefined {
  if (value.kind !== 'finite' || value.weight > 5) return undefined
  if (value.digits.length === 0) return 0n
  if (value.digits.length > value.weight + 1) return undefined
  let whole = 0n
  for (let i = 0; i <= value.weight; i++) whole = whole * 10000n + BigInt(value.digits[i] ?? 0)
  return value.negative ? -whole : whole
}
