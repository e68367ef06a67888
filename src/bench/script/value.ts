/**
 * Values of the script language: int is a bigint, double a number, boolean and null are themselves.
 * Source followed: coerceToInt, makeVariableValue, getVariable in pgbench.c.
 */
import { engineError } from '../../errors/engine-error.js'

export type Value = bigint | number | boolean | null

export const minInt = -(2n ** 63n)
export const maxInt = 2n ** 63n - 1n

/** An error while a script runs; it ends that client, as in pgbench. */
export const scriptFailure = (message: string) => engineError('BENCH_SCRIPT_FAILED', { message })

export function typeName(value: Value): string {
  if (value === null) return 'null'
  if (typeof value === 'bigint') return 'int'
  return typeof value === 'number' ? 'double' : 'boolean'
}

/** C's rint: halves go to the even neighbour. */
function roundHalfEven(value: number): number {
  const floor = Math.floor(value)
  const rest = value - floor
  if (rest < 0.5) return floor
  if (rest > 0.5) return floor + 1
  return floor % 2 === 0 ? floor : floor + 1
}

export function toInt(value: Value): bigint {
  if (typeof value === 'bigint') return value
  if (typeof value !== 'number') throw scriptFailure(`cannot coerce ${typeName(value)} to int`)
  const rounded = roundHalfEven(value)
  if (!(rounded >= -(2 ** 63) && rounded < 2 ** 63))
    throw scriptFailure(`double to int overflow for ${rounded.toFixed(6)}`)
  return BigInt(rounded)
}

export function toDouble(value: Value): number {
  if (typeof value === 'number') return value
  if (typeof value === 'bigint') return Number(value)
  throw scriptFailure(`cannot coerce ${typeName(value)} to double`)
}

export function toBoolean(value: Value): boolean {
  if (typeof value === 'boolean') return value
  throw scriptFailure(`cannot coerce ${typeName(value)} to boolean`)
}

/** For conditions: null and zero are false. */
export function isTrue(value: Value): boolean {
  if (typeof value === 'bigint') return value !== 0n
  if (typeof value === 'number') return value !== 0
  return value === true
}

/** %.15g of PostgreSQL's own printf, which writes NaN and Infinity as JavaScript does. */
export function formatDouble(value: number): string {
  if (!Number.isFinite(value)) return String(value)
  if (value === 0) return Object.is(value, -0) ? '-0' : '0'
  const [digits = '', exponentText = '0'] = value.toExponential(14).split('e')
  const exponent = Number(exponentText)
  const strip = (text: string) => (text.includes('.') ? text.replace(/\.?0+$/, '') : text)
  if (exponent >= -4 && exponent < 15) return strip(value.toFixed(14 - exponent))
  const sign = exponent < 0 ? '-' : '+'
  return `${strip(digits)}e${sign}${String(Math.abs(exponent)).padStart(2, '0')}`
}

/** The text that takes the place of a variable in SQL. */
export function formatValue(value: Value): string {
  if (value === null) return 'NULL'
  return typeof value === 'number' ? formatDouble(value) : String(value)
}

const isPrefix = (text: string, word: string): boolean => word.startsWith(text)

function booleanOf(text: string): boolean | undefined {
  const lower = text.toLowerCase()
  if (isPrefix(lower, 'true') || isPrefix(lower, 'yes') || lower === 'on') return true
  if (isPrefix(lower, 'false') || isPrefix(lower, 'no') || lower === 'off' || lower === 'of')
    return false
  return undefined
}

/** A variable's text as a value, as an expression sees it. */
export function parseValue(text: string, name: string): Value {
  const malformed = () => scriptFailure(`malformed variable "${name}" value: "${text}"`)
  if (text === '') throw malformed()
  if (text.toLowerCase() === 'null') return null
  const word = booleanOf(text)
  if (word !== undefined) return word
  if (/^\s*[-+]?\d+$/.test(text)) {
    const value = BigInt(text.trim().replace(/^\+/, ''))
    if (value < minInt || value > maxInt)
      throw scriptFailure(`value "${text}" is out of range for type bigint`)
    return value
  }
  const number = parseDouble(text)
  if (number === undefined) throw malformed()
  return number
}

/** The least double that is not denormal: strtod calls what is below it out of range. */
const LEAST = 2.2250738585072014e-308

/** As strtod reads the whole of a text; undefined also when the number is too large or too small for a double. */
export function parseDouble(text: string): number | undefined {
  const [, sign = '', rest = ''] = /^\s*([-+]?)(.*)$/s.exec(text) as RegExpExecArray
  const size = sizeOf(rest.toLowerCase())
  if (size === undefined) return undefined
  return sign === '-' ? -size : size
}

function sizeOf(text: string): number | undefined {
  if (text === 'inf' || text === 'infinity') return Number.POSITIVE_INFINITY
  if (/^nan(\(\w*\))?$/.test(text)) return Number.NaN
  const hex = /^0x(?=\.?[0-9a-f])([0-9a-f]*)\.?([0-9a-f]*)(?:p([-+]?\d+))?$/.exec(text)
  if (hex === null && !/^(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/.test(text)) return undefined
  const value = hex === null ? Number(text) : hexSize(hex)
  const isZero = !/[1-9]/.test(
    hex === null ? text.split('e')[0]! : `${hex[1]}${hex[2]}`.replace(/[a-f]/g, '1'),
  )
  return isZero || (value >= LEAST && value < Number.POSITIVE_INFINITY) ? value : undefined
}

const hexSize = ([, whole = '', fraction = '', exponent = '0']: RegExpExecArray): number =>
  Number(BigInt(`0x0${whole}${fraction}`)) * 2 ** (Number(exponent) - 4 * fraction.length)
