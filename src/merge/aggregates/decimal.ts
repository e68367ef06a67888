/**
 * numeric with its display scale, as far as partial aggregates are combined: sums are exact, quotients and roots have the
 * scale that PostgreSQL gives them. @see select_div_scale, div_var, sqrt_var in src/backend/utils/adt/numeric.c
 */

export interface Decimal {
  /** value × 10^scale; unused with a special one. */
  readonly unscaled: bigint
  readonly scale: number
  readonly special?: 'NaN' | 'Infinity' | '-Infinity'
}

const MIN_SIGNIFICANT = 16
const MAX_SCALE = 1000
const GROUP = 4
const GROUP_BASE = 10_000n

const special = (name: NonNullable<Decimal['special']>): Decimal => ({
  unscaled: 0n,
  scale: 0,
  special: name,
})
export const notANumber = special('NaN')
export const zero: Decimal = { unscaled: 0n, scale: 0 }

const pow10 = (power: number): bigint => 10n ** BigInt(power)

export const ofInteger = (value: bigint): Decimal => ({ unscaled: value, scale: 0 })

export function decimalOfText(text: string): Decimal {
  if (text === 'NaN' || text === 'Infinity' || text === '-Infinity') return special(text)
  const dot = text.indexOf('.')
  if (dot < 0) return ofInteger(BigInt(text))
  return {
    unscaled: BigInt(text.slice(0, dot) + text.slice(dot + 1)),
    scale: text.length - dot - 1,
  }
}

/** Int16 count · Int16 weight · Int16 sign · Int16 display scale · count × Int16. */
export function decimalOfBinary(bytes: Buffer, from: number): Decimal {
  const sign = bytes.readUInt16BE(from + 4)
  if (sign === 0xc000) return notANumber
  if (sign === 0xd000) return special('Infinity')
  if (sign === 0xf000) return special('-Infinity')
  const count = bytes.readUInt16BE(from)
  const weight = bytes.readInt16BE(from + 2)
  const scale = bytes.readUInt16BE(from + 6)
  let digits = 0n
  for (let i = 0; i < count; i++) {
    digits = digits * GROUP_BASE + BigInt(bytes.readUInt16BE(from + 8 + i * 2))
  }
  const power = GROUP * (weight - count + 1) + scale
  const unscaled = power >= 0 ? digits * pow10(power) : digits / pow10(-power)
  return { unscaled: sign === 0 ? unscaled : -unscaled, scale }
}

export function textOfDecimal({ unscaled, scale, special: name }: Decimal): string {
  if (name) return name
  const sign = unscaled < 0n ? '-' : ''
  const digits = String(unscaled < 0n ? -unscaled : unscaled).padStart(scale + 1, '0')
  if (scale === 0) return sign + digits
  return `${sign}${digits.slice(0, -scale)}.${digits.slice(-scale)}`
}

/** Groups of four digits around the point, without zeros at either end, and the weight of the first. */
function groupsOf({ unscaled, scale }: Decimal): { groups: number[]; weight: number } {
  const padding = (GROUP - (scale % GROUP)) % GROUP
  const digits = String((unscaled < 0n ? -unscaled : unscaled) * pow10(padding))
  const whole = digits.padStart(Math.ceil(digits.length / GROUP) * GROUP, '0')
  const groups: number[] = []
  for (let at = 0; at < whole.length; at += GROUP) groups.push(Number(whole.slice(at, at + GROUP)))
  let weight = groups.length - 1 - (scale + padding) / GROUP
  while (groups.length > 0 && groups[0] === 0) {
    groups.shift()
    weight--
  }
  while (groups.at(-1) === 0) groups.pop()
  return groups.length === 0 ? { groups, weight: 0 } : { groups, weight }
}

/** What stands where a short header would have its scale; `numeric_send` sends it. */
const specialScales = { NaN: 0, Infinity: 32, '-Infinity': 32 } as const
const specialSigns = { NaN: 0xc000, Infinity: 0xd000, '-Infinity': 0xf000 } as const

export function binaryOfDecimal(value: Decimal): Buffer {
  const { groups, weight } = value.special ? { groups: [], weight: 0 } : groupsOf(value)
  const bytes = Buffer.alloc(8 + groups.length * 2)
  bytes.writeUInt16BE(groups.length, 0)
  bytes.writeInt16BE(weight, 2)
  const sign = value.unscaled < 0n ? 0x4000 : 0
  bytes.writeUInt16BE(value.special ? specialSigns[value.special] : sign, 4)
  bytes.writeUInt16BE(value.special ? specialScales[value.special] : value.scale, 6)
  for (const [i, group] of groups.entries()) bytes.writeUInt16BE(group, 8 + i * 2)
  return bytes
}

const rescaled = ({ unscaled, scale }: Decimal, to: number): bigint => unscaled * pow10(to - scale)

function addSpecial(a: Decimal, b: Decimal): Decimal {
  if (a.special === 'NaN' || b.special === 'NaN') return notANumber
  if (a.special && b.special && a.special !== b.special) return notANumber
  return a.special ? a : b
}

export function addDecimals(a: Decimal, b: Decimal): Decimal {
  if (a.special || b.special) return addSpecial(a, b)
  const scale = Math.max(a.scale, b.scale)
  return { unscaled: rescaled(a, scale) + rescaled(b, scale), scale }
}

export function subtractDecimals(a: Decimal, b: Decimal): Decimal {
  return addDecimals(a, { ...b, unscaled: -b.unscaled })
}

export const multiplyDecimals = (a: Decimal, b: Decimal): Decimal => ({
  unscaled: a.unscaled * b.unscaled,
  scale: a.scale + b.scale,
})

/** The scale that PostgreSQL gives a quotient: about 16 significant digits, and no fewer than its operands have. */
export function divisionScale(a: Decimal, b: Decimal): number {
  const [first, second] = [groupsOf(a), groupsOf(b)]
  let weight = first.weight - second.weight
  if ((first.groups[0] ?? 0) <= (second.groups[0] ?? 0)) weight--
  const scale = Math.max(MIN_SIGNIFICANT - weight * GROUP, a.scale, b.scale, 0)
  return Math.min(scale, MAX_SCALE)
}

/** Rounds half away from zero. */
function quotient(numerator: bigint, denominator: bigint): bigint {
  const negative = numerator < 0n !== denominator < 0n
  const [a, b] = [
    numerator < 0n ? -numerator : numerator,
    denominator < 0n ? -denominator : denominator,
  ]
  const rounded = (2n * a + b) / (2n * b)
  return negative ? -rounded : rounded
}

/** `b` is finite and not zero. */
export function divideDecimals(a: Decimal, b: Decimal, scale = divisionScale(a, b)): Decimal {
  if (a.special) return a
  const power = scale + b.scale - a.scale
  const unscaled =
    power >= 0
      ? quotient(a.unscaled * pow10(power), b.unscaled)
      : quotient(a.unscaled, b.unscaled * pow10(-power))
  return { unscaled, scale }
}

/** The greatest integer whose square is not above `value`. */
function integerRoot(value: bigint): bigint {
  if (value < 2n) return value
  let guess = 1n << BigInt((value.toString(2).length + 1) >> 1)
  for (;;) {
    const next = (guess + value / guess) >> 1n
    if (next >= guess) return guess
    guess = next
  }
}

/** Rounded to `scale`; `value` is not negative. */
export function rootOf(value: Decimal, scale: number): Decimal {
  const power = 2 * (scale + 1) - value.scale
  const radicand = power >= 0 ? value.unscaled * pow10(power) : value.unscaled / pow10(-power)
  return { unscaled: (integerRoot(radicand) + 5n) / 10n, scale }
}
