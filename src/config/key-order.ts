/**
 * Literals of mappings by the type of their key: whether they are one, when two are the same, which comes first.
 * Only for checking a configuration; rows are placed by sharding/.
 */
import type { KeyType } from '../datum/key-type.js'

/** A literal made comparable. Two of one type compare as PostgreSQL compares them. */
export type ComparableKey = bigint | string | DecimalKey

interface DecimalKey {
  readonly digits: bigint
  readonly scale: number
}

const limits: Partial<Record<KeyType, bigint>> = {
  smallint: 32_768n,
  integer: 2_147_483_648n,
  bigint: 9_223_372_036_854_775_808n,
}

function integerKey(type: KeyType, text: string): bigint | undefined {
  if (!/^\s*[+-]?\d+\s*$/.test(text)) return undefined
  const value = BigInt(text.trim().replace(/^\+/, ''))
  const limit = limits[type] ?? 0n
  return value >= -limit && value < limit ? value : undefined
}

function decimalKey(text: string): DecimalKey | undefined {
  const match = /^\s*([+-]?)(\d*)(?:\.(\d*))?(?:e([+-]?\d{1,4}))?\s*$/i.exec(text)
  if (!match) return undefined
  const [, sign, whole = '', part = '', exponent = '0'] = match
  if (whole === '' && part === '') return undefined
  const digits = BigInt(`${whole}${part}`) * (sign === '-' ? -1n : 1n)
  return { digits, scale: part.length - Number(exponent) }
}

function uuidKey(text: string): string | undefined {
  const hex = text
    .trim()
    .replace(/^\{(.*)\}$/, '$1')
    .replaceAll('-', '')
    .toLowerCase()
  return /^[0-9a-f]{32}$/.test(hex) ? hex : undefined
}

const instant =
  /^(\d{4}-\d{2}-\d{2})(?:[ T](\d{2}:\d{2}(?::\d{2})?)(\.\d{1,6})?)? ?(Z|[+-]\d{2}(?::?\d{2})?)?$/

/** ISO only: other forms mean different days under different DateStyle settings. */
function instantKey(type: KeyType, text: string): bigint | undefined {
  const match = instant.exec(text.trim())
  if (!match) return undefined
  const [, day = '', time = '00:00', fraction = '.0', zone] = match
  // Without a zone it would mean another instant in every session.
  if (type === 'timestamptz' && zone === undefined) return undefined
  if (type === 'date' && (match[2] !== undefined || zone !== undefined)) return undefined
  const hours = zone === undefined || type === 'timestamp' || zone === 'Z' ? '+00:00' : zone
  const offset =
    hours.length === 3
      ? `${hours}:00`
      : hours.length === 5
        ? `${hours.slice(0, 3)}:${hours.slice(3)}`
        : hours
  const ms = Date.parse(`${day}T${time}${time.length === 5 ? ':00' : ''}${offset}`)
  if (Number.isNaN(ms)) return undefined
  return BigInt(ms) * 1000n + BigInt(fraction.slice(1).padEnd(6, '0'))
}

/** undefined: not a literal of the type. */
export function comparableKey(type: KeyType, text: string): ComparableKey | undefined {
  switch (type) {
    case 'smallint':
    case 'integer':
    case 'bigint':
      return integerKey(type, text)
    case 'numeric':
      return decimalKey(text)
    case 'uuid':
      return uuidKey(text)
    case 'date':
    case 'timestamp':
    case 'timestamptz':
      return instantKey(type, text)
    case 'bpchar':
      return text.replace(/ +$/, '')
    case 'text':
    case 'varchar':
      return text
    case 'vector':
      return undefined
  }
}

const scaled = (key: DecimalKey, scale: number): bigint =>
  key.digits * 10n ** BigInt(scale - key.scale)

/** Below, at or above zero. Text compares by its UTF-8 bytes, as under collation C. */
export function compareKeys(a: ComparableKey, b: ComparableKey): number {
  if (typeof a === 'string' && typeof b === 'string')
    return Buffer.compare(Buffer.from(a), Buffer.from(b))
  if (typeof a === 'bigint' && typeof b === 'bigint') return a < b ? -1 : a > b ? 1 : 0
  if (typeof a === 'object' && typeof b === 'object') {
    const scale = Math.max(a.scale, b.scale)
    return compareKeys(scaled(a, scale), scaled(b, scale))
  }
  throw new TypeError('keys of different types')
}
