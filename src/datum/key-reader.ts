/**
 * Reads one value of a key type from its text or binary form, then hashes it as PostgreSQL's partitions do, or hands it
 * out for comparing. One reader holds one value at a time; bytes given to it are borrowed until the next call.
 */
import { createHash } from 'node:crypto'
import { engineError } from '../errors/engine-error.js'
import { hashBytes, hashInt32, hashInt64, hashNumeric, hashSpecialNumeric } from './hash.js'
import {
  integerWords,
  readIntegerBinary,
  readIntegerText,
  wordsAsValue,
  wordsFit,
} from './integer.js'
import type { KeyType } from './key-type.js'
import { cutVarchar, roundNumeric, roundTimestamp } from './modifier.js'
import {
  compareNumeric,
  type NumericValue,
  numericIdentity,
  readNumericBinary,
  readNumericText,
} from './numeric.js'
import { readDateText, readTimestampText, type TimeStatus } from './timestamp.js'
import { readUuidText } from './uuid.js'
import { readVectorBinary, readVectorText } from './vector.js'

/** A value taken out of a reader; compare with `KeyReader.compare` only. */
export type KeyValue = number | bigint | string | NumericValue | Float32Array

export interface KeyReader {
  readonly type: KeyType
  /** @throws KEY_INVALID, KEY_OUT_OF_RANGE, KEY_AMBIGUOUS */
  readText(bytes: Buffer, from: number, to: number): void
  /** @throws KEY_BINARY_INVALID */
  readBinary(bytes: Buffer, from: number, to: number): void
  /** Hashes the value read into `partitionHash` of hash.ts. */
  hash(): void
  value(): KeyValue
  /** PgDog's sha1 hash of the value read: the last four bytes of the digest. */
  sha1(): number
  /** Order of the type's btree class; text by bytes (collation "C"). */
  compare(a: KeyValue, b: KeyValue): number
  /** Equal strings for equal values. */
  identity(value: KeyValue): string
}

const shown = (bytes: Buffer, from: number, to: number): string =>
  bytes.toString('utf8', from, Math.min(to, from + 64))

function invalid(type: KeyType, value: string): Error {
  return engineError('KEY_INVALID', { type, value })
}

const binaryInvalid = (type: KeyType): Error => engineError('KEY_BINARY_INVALID', { type })

const comparePlain = (a: KeyValue, b: KeyValue): number => (a < b ? -1 : a > b ? 1 : 0)

const lastWord = (digest: Buffer): number => digest.readUInt32BE(digest.length - 4)

const sizes = { smallint: 2, integer: 4, bigint: 8 } as const

/** PostgreSQL meets an overflow of the leading digits before what follows them (`pg_strtoint64`). */
function digitsOverflow(text: string, size: number): boolean {
  const digits = /^\s*[+-]?(\d{1,100})/.exec(text)?.[1]
  return digits !== undefined && BigInt(digits) > 1n << BigInt(size * 8 - 1)
}

function integerReader(type: 'bigint' | 'integer' | 'smallint'): KeyReader {
  const size = sizes[type]
  const words = new Int32Array(2)
  const keep = (): void => {
    words[0] = integerWords[0]!
    words[1] = integerWords[1]!
  }
  const value = (): number | bigint => {
    integerWords[0] = words[0]!
    integerWords[1] = words[1]!
    return wordsAsValue()
  }
  return {
    type,
    readText(bytes, from, to) {
      const status = readIntegerText(bytes, from, to, size)
      const overflows =
        status === 'syntax' && digitsOverflow(bytes.toString('latin1', from, to), size)
      if (status === 'syntax' && !overflows) throw invalid(type, shown(bytes, from, to))
      if (status === 'range' || overflows) {
        throw engineError('KEY_OUT_OF_RANGE', { type, value: shown(bytes, from, to) })
      }
      keep()
    },
    readBinary(bytes, from, to) {
      if (!readIntegerBinary(bytes, from, to) || !wordsFit(size)) throw binaryInvalid(type)
      keep()
    },
    hash: () => hashInt64(words[0]!, words[1]!),
    value,
    sha1: () => lastWord(createHash('sha1').update(String(value())).digest()),
    compare: comparePlain,
    identity: String,
  }
}

function uuidReader(): KeyReader {
  const own = Buffer.alloc(16)
  return {
    type: 'uuid',
    readText(bytes, from, to) {
      if (!readUuidText(bytes, from, to, own)) throw invalid('uuid', shown(bytes, from, to))
    },
    readBinary(bytes, from, to) {
      if (to - from !== 16) throw binaryInvalid('uuid')
      bytes.copy(own, 0, from, to)
    },
    hash: () => hashBytes(own, 0, 16),
    value: () => own.toString('hex'),
    sha1: () => lastWord(createHash('sha1').update(own).digest()),
    compare: comparePlain,
    identity: String,
  }
}

/** latin1 keeps one character a byte, so that strings compare as the bytes do. */
function textReader(type: 'text' | 'varchar' | 'bpchar', typmod: number): KeyReader {
  let held: Buffer = Buffer.alloc(0)
  let start = 0
  let end = 0
  const read = (bytes: Buffer, from: number, to: number): void => {
    held = bytes
    start = from
    end = to
    if (type === 'bpchar') while (end > start && bytes[end - 1] === 32) end--
    else if (typmod >= 4) end = cutVarchar(bytes, start, end, typmod - 4)
  }
  return {
    type,
    readText: read,
    readBinary: read,
    hash: () => hashBytes(held, start, end),
    value: () => held.toString('latin1', start, end),
    sha1: () => lastWord(createHash('sha1').update(held.subarray(start, end)).digest()),
    compare: comparePlain,
    identity: String,
  }
}

const noSha1 = (type: KeyType) => (): never => {
  throw engineError('KEY_HASHER_TYPE', { type, column: '' })
}

function numericReader(typmod: number): KeyReader {
  let held: NumericValue = { kind: 'finite', negative: false, weight: 0, digits: [] }
  return {
    type: 'numeric',
    readText(bytes, from, to) {
      const text = bytes.toString('latin1', from, to)
      const value = readNumericText(text)
      if (value === 'syntax') throw invalid('numeric', shown(bytes, from, to))
      if (value === 'range') {
        throw engineError('KEY_OUT_OF_RANGE', { type: 'numeric', value: text.slice(0, 64) })
      }
      held = roundNumeric(value, typmod)
    },
    readBinary(bytes, from, to) {
      const value = readNumericBinary(bytes, from, to)
      if (!value) throw binaryInvalid('numeric')
      held = roundNumeric(value, typmod)
    },
    hash: () =>
      held.kind === 'finite' ? hashNumeric(held.digits, held.weight) : hashSpecialNumeric(),
    value: () => held,
    sha1: noSha1('numeric'),
    compare: (a, b) => compareNumeric(a as NumericValue, b as NumericValue),
    identity: (value) => numericIdentity(value as NumericValue),
  }
}

const advice = {
  date: 'write dates as YYYY-MM-DD, infinity or -infinity',
  timestamp: 'write timestamps as YYYY-MM-DD HH:MM:SS, infinity or -infinity',
  timestamptz: 'write timestamps with their zone as YYYY-MM-DD HH:MM:SS+00, infinity or -infinity',
} as const

const readTime = {
  date: readDateText,
  timestamp: (text: string) => readTimestampText(text, false),
  timestamptz: (text: string) => readTimestampText(text, true),
} as const

function refuseTime(type: keyof typeof advice, status: TimeStatus, value: string): never {
  if (status === 'range') throw engineError('KEY_DATE_OUT_OF_RANGE', { value })
  throw engineError('KEY_AMBIGUOUS', { type, value, advice: advice[type] })
}

function timeReader(type: 'date' | 'timestamp' | 'timestamptz', typmod: number): KeyReader {
  const words = new Int32Array(2)
  const size = type === 'date' ? 4 : 8
  const keep = (): void => {
    if (typmod >= 0 && type !== 'date') roundTimestamp(typmod)
    words[0] = integerWords[0]!
    words[1] = integerWords[1]!
  }
  return {
    type,
    readText(bytes, from, to) {
      const status = readTime[type](bytes.toString('latin1', from, to))
      if (status !== 'ok') refuseTime(type, status, shown(bytes, from, to))
      keep()
    },
    readBinary(bytes, from, to) {
      if (to - from !== size || !readIntegerBinary(bytes, from, to)) throw binaryInvalid(type)
      keep()
    },
    hash: () => (type === 'date' ? hashInt32(words[1]!) : hashInt64(words[0]!, words[1]!)),
    value: () => {
      integerWords[0] = words[0]!
      integerWords[1] = words[1]!
      return wordsAsValue()
    },
    sha1: noSha1(type),
    compare: comparePlain,
    identity: String,
  }
}

/** Vectors are placed by their value, and never hashed. */
function vectorReader(): KeyReader {
  let held: Float32Array = new Float32Array(0)
  const refuse = (): never => {
    throw engineError('INTERNAL', { message: 'a vector has no partition hash' })
  }
  return {
    type: 'vector',
    readText(bytes, from, to) {
      const value = readVectorText(bytes.toString('latin1', from, to))
      if (typeof value === 'object') held = value
      else if (value === 'syntax') throw invalid('vector', shown(bytes, from, to))
      else if (value === 'range') {
        throw engineError('KEY_OUT_OF_RANGE', { type: 'vector', value: shown(bytes, from, to) })
      } else {
        const advice = 'write the elements as decimal numbers of at most 15 digits'
        throw engineError('KEY_AMBIGUOUS', {
          type: 'vector',
          value: shown(bytes, from, to),
          advice,
        })
      }
    },
    readBinary(bytes, from, to) {
      const value = readVectorBinary(bytes, from, to)
      if (!value) throw binaryInvalid('vector')
      held = value
    },
    hash: refuse,
    value: () => held,
    sha1: refuse,
    compare: (a, b) => comparePlain(String(a), String(b)),
    // -0 equals 0.
    identity: (value) => (value as Float32Array).map((one) => one + 0).join(),
  }
}

/** `typmod`: the modifier of the column, by which values are cut or rounded as PostgreSQL stores them; -1 for none. */
export function makeKeyReader(type: KeyType, typmod = -1): KeyReader {
  switch (type) {
    case 'bigint':
    case 'integer':
    case 'smallint':
      return integerReader(type)
    case 'uuid':
      return uuidReader()
    case 'text':
    case 'varchar':
    case 'bpchar':
      return textReader(type, typmod)
    case 'numeric':
      return numericReader(typmod)
    case 'date':
    case 'timestamp':
    case 'timestamptz':
      return timeReader(type, typmod)
    case 'vector':
      return vectorReader()
  }
}
