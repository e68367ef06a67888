/**
 * Client encodings: which can be split byte by byte, and how a key gets from them into UTF-8.
 * Names are compared as PostgreSQL does: letters and digits only, any case (`src/common/encnames.c`).
 */
import { isUtf8 } from 'node:buffer'
import { engineError } from '../errors/engine-error.js'
import type { RowKey } from './copy-row.js'

/** Brings a key to UTF-8 in place; false when that is not known of its encoding. */
export type KeyConverter = (key: RowKey) => boolean

/** Second bytes may be ASCII, so that a delimiter or backslash may be half a character. */
const unsafe = new Set(
  'sjis mskanji shiftjis win932 windows932 big5 win950 windows950 gbk win936 windows936 uhc win949 windows949 johab gb18030 shiftjis2004'.split(
    ' ',
  ),
)

const asIs = new Set(['utf8', 'unicode', 'sqlascii'])

/** Single-byte encodings whose tables in PostgreSQL and in the WHATWG standard agree. */
const decoders: Readonly<Record<string, string>> = {
  latin2: 'iso-8859-2',
  iso88592: 'iso-8859-2',
  latin9: 'iso-8859-15',
  iso885915: 'iso-8859-15',
  iso88595: 'iso-8859-5',
  iso88597: 'iso-8859-7',
  koi8r: 'koi8-r',
  koi8: 'koi8-r',
  koi8u: 'koi8-u',
  win1250: 'windows-1250',
  windows1250: 'windows-1250',
  win1251: 'windows-1251',
  windows1251: 'windows-1251',
  win1252: 'windows-1252',
  windows1252: 'windows-1252',
  win1253: 'windows-1253',
  windows1253: 'windows-1253',
  win1254: 'windows-1254',
  windows1254: 'windows-1254',
}

const plainName = (encoding: string): string => encoding.toLowerCase().replace(/[^a-z0-9]/g, '')

/** @throws COPY_ENCODING_UNSAFE when text in this encoding cannot be split */
export function checkSplittable(encoding: string | undefined): void {
  if (encoding !== undefined && unsafe.has(plainName(encoding)))
    throw engineError('COPY_ENCODING_UNSAFE', { encoding })
}

export const isUtf8Name = (encoding: string): boolean =>
  ['utf8', 'unicode'].includes(plainName(encoding))

/** Undefined when keys are UTF-8 already. */
export function makeKeyConverter(encoding: string | undefined): KeyConverter | undefined {
  if (encoding === undefined) return undefined
  const name = plainName(encoding)
  if (asIs.has(name)) return undefined
  const decode = decoderOf(name)
  return (key) => {
    if (!hasHighByte(key)) return true
    const text = decode?.(key.bytes.subarray(key.start, key.end))
    if (text === undefined) return false
    key.bytes = Buffer.from(text)
    key.start = 0
    key.end = key.bytes.length
    return true
  }
}

function decoderOf(name: string): ((bytes: Buffer) => string) | undefined {
  if (name === 'latin1' || name === 'iso88591') return (bytes) => bytes.toString('latin1')
  const label = decoders[name]
  if (label === undefined) return undefined
  const decoder = new TextDecoder(label)
  return (bytes) => decoder.decode(bytes)
}

function hasHighByte(key: RowKey): boolean {
  for (let at = key.start; at < key.end; at++) if ((key.bytes[at] as number) >= 0x80) return true
  return false
}

/** The first bytes before `until` that are no UTF-8, as PostgreSQL prints them (`0xe2 0x82`); undefined when all is well. */
export function invalidUtf8(bytes: Buffer, until = bytes.length): string | undefined {
  for (let at = 0; at < until; ) {
    const next = bytes.subarray(at, at + characterBytes(bytes[at] as number))
    if (!isUtf8(next) || next[0] === 0)
      return [...next].map((byte) => `0x${byte.toString(16).padStart(2, '0')}`).join(' ')
    at += next.length
  }
  return undefined
}

/** pg_utf_mblen: by the first byte alone. */
function characterBytes(first: number): number {
  if (first >= 0xc0 && first < 0xe0) return 2
  if (first >= 0xe0 && first < 0xf0) return 3
  return first >= 0xf0 && first < 0xf8 ? 4 : 1
}
