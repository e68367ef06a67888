/** Floats as PostgreSQL writes them with extra_float_digits = 1: the fewest digits that say which value it is. */

/** Exponents from which the scientific form is used. */
const MOST_FIXED = { float4: 6, float8: 15 } as const

/** Bits of the fraction, and the exponent of the last of them in the smallest numbers. */
const forms = {
  float4: { bits: 23, lowest: -149 },
  float8: { bits: 52, lowest: -1074 },
} as const

/** Of the open interval of numbers that are read as the value: halves of the distance to its neighbours, and itself. */
interface Span {
  readonly low: bigint
  readonly middle: bigint
  readonly high: bigint
  readonly denominator: bigint
}

/** `value` is positive and finite. */
function spanOf(value: number, type: 'float4' | 'float8'): Span {
  const { bits, lowest } = forms[type]
  let power = Math.max(Math.floor(Math.log2(value)) - bits, lowest)
  // the logarithm may be rounded up
  if (power > lowest && value / 2 ** power < 2 ** bits) power--
  const mantissa = BigInt(
    power < -1022 ? value * 2 ** 537 * 2 ** (-power - 537) : value / 2 ** power,
  )
  const isEdge = mantissa === 1n << BigInt(bits) && power > lowest
  const up = power > 2 ? 1n << BigInt(power - 2) : 1n
  return {
    low: (4n * mantissa - (isEdge ? 1n : 2n)) * up,
    middle: 4n * mantissa * up,
    high: (4n * mantissa + 2n) * up,
    denominator: power < 2 ? 1n << BigInt(2 - power) : 1n,
  }
}

/** The digits of `candidate` in scientific form. */
function scientific(candidate: bigint, lastPower: number): string {
  const all = String(candidate)
  const text = all.replace(/(?<=.)0+$/, '')
  const exponent = lastPower + all.length - 1
  const rest = text.length > 1 ? `.${text.slice(1)}` : ''
  return `${text[0]}${rest}e${exponent < 0 ? '' : '+'}${exponent}`
}

/** The multiple of 10^power strictly inside the span and nearest to its middle, an even one when two are as near. */
function multipleInside(
  { low, middle, high, denominator }: Span,
  power: number,
): bigint | undefined {
  const scale = 10n ** BigInt(Math.abs(power))
  const unit = power < 0 ? denominator : denominator * scale
  const by = power < 0 ? scale : 1n
  const below = (middle * by) / unit
  const twice = 2n * (middle * by - below * unit)
  const isAbove = twice > unit || (twice === unit && below % 2n === 1n)
  const order = isAbove ? [below + 1n, below] : [below, below + 1n]
  return order.find((candidate) => candidate * unit > low * by && candidate * unit < high * by)
}

/**
 * The fewest digits by which a positive value is read again. Numbers just between two values are never written, though
 * they would be read rightly. @see `d2d` in src/common/d2s.c
 */
function shortest(value: number, type: 'float4' | 'float8'): string {
  const span = spanOf(value, type)
  const exponent = Number(value.toExponential().split('e')[1])
  for (let power = exponent; ; power--) {
    const candidate = multipleInside(span, power)
    if (candidate !== undefined) return scientific(candidate, power)
  }
}

export function textOfFloat(value: number, type: 'float4' | 'float8'): string {
  if (!Number.isFinite(value)) return String(value)
  if (value === 0) return Object.is(value, -0) ? '-0' : '0'
  const short = `${value < 0 ? '-' : ''}${shortest(Math.abs(value), type)}`
  const match = /^(-?)(\d)(?:\.(\d+))?e([+-]\d+)$/.exec(short)
  const [sign, exponent] = [match?.[1] ?? '', Number(match?.[4])]
  const digits = `${match?.[2]}${match?.[3] ?? ''}`
  if (exponent < -4 || exponent >= MOST_FIXED[type]) {
    const rest = digits.length > 1 ? `.${digits.slice(1)}` : ''
    const power = String(Math.abs(exponent)).padStart(2, '0')
    return `${sign}${digits[0]}${rest}e${exponent < 0 ? '-' : '+'}${power}`
  }
  if (exponent < 0) return `${sign}0.${'0'.repeat(-exponent - 1)}${digits}`
  const whole = digits.slice(0, exponent + 1).padEnd(exponent + 1, '0')
  const fraction = digits.slice(exponent + 1)
  return fraction === '' ? sign + whole : `${sign}${whole}.${fraction}`
}
