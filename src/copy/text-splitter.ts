/**
 * COPY's text format into rows: memchr for the next newline, carriage return and `\.`, each checked for an odd number of
 * backslashes before it. Only the key column is unescaped.
 * Follows CopyReadLineText and CopyReadAttributesText in `src/backend/commands/copyfromparse.c`.
 */
import type { CopyOptions } from './copy-options.js'
import type { CopyLayout } from './copy-row.js'
import { BACKSLASH, CARRIAGE_RETURN, LineSplitter, NEWLINE } from './line-splitter.js'

const END_MARKER = Buffer.from('\\.')

export class TextSplitter extends LineSplitter {
  readonly #nullMark: Buffer
  readonly #defaultMark: Buffer | undefined
  /** The marks have backslashes: a field without one is a value. */
  readonly #isPlain: boolean
  #nextMarker = -1
  #unescaped = Buffer.allocUnsafe(256)
  /** The field skipped last has a backslash. */
  #hasBackslash = false

  constructor(options: CopyOptions, layout: CopyLayout) {
    super(options, layout)
    this.#nullMark = options.nullMark
    this.#defaultMark = options.defaultMark
    this.#isPlain =
      this.#nullMark.includes(BACKSLASH) && this.#defaultMark?.includes(BACKSLASH) !== false
  }

  protected override get isOpen(): boolean {
    return false
  }

  protected override forget(): void {
    this.#nextMarker = -1
  }

  protected override startRow(): void {}

  protected override scan(bytes: Buffer, rowStart: number, from: number, eof: boolean): number {
    let at = from
    for (;;) {
      const newline = this.newlineFrom(bytes, at)
      const carriageReturn = this.returnFrom(bytes, at)
      const marker = this.#markerFrom(bytes, at)
      const next = Math.min(newline, carriageReturn, marker)
      if (next === bytes.length) break
      if (isEscaped(bytes, rowStart, next)) {
        at = next + 1
        continue
      }
      this.contentEnd = next
      if (next === marker) return this.#endMarker(bytes, rowStart, marker, eof)
      if (next === carriageReturn) return this.endAtReturn(bytes, next, eof, 'COPY_LITERAL_CR')
      this.endAtNewline('COPY_LITERAL_NEWLINE')
      return next + 1
    }
    // The last byte may be the backslash of a `\.` that straddles.
    this.resume = Math.max(at, bytes.length - 1)
    return -1
  }

  #markerFrom(bytes: Buffer, at: number): number {
    if (this.#nextMarker >= at) return this.#nextMarker
    const found = bytes.indexOf(END_MARKER, at)
    this.#nextMarker = found < 0 ? bytes.length : found
    return this.#nextMarker
  }

  /** `\.`: ends the data; -1 when more bytes are needed to be sure. */
  #endMarker(bytes: Buffer, rowStart: number, marker: number, eof: boolean): number {
    const lineEndBytes = this.lineEnd === 'crlf' ? 2 : 1
    if (marker + 2 + lineEndBytes > bytes.length && !eof) {
      this.resume = marker
      return -1
    }
    this.#checkMarker(bytes, marker + 2)
    if (this.serverMajor >= 18 && marker > rowStart) throw this.fail('COPY_END_MARKER_NOT_ALONE')
    this.ended = true
    return marker + 2 + lineEndBytes
  }

  /** What follows `\.` must be a line end, of the style seen so far. */
  #checkMarker(bytes: Buffer, from: number): void {
    const corrupt = this.serverMajor < 18 ? 'COPY_END_MARKER_CORRUPT' : 'COPY_END_MARKER_NOT_ALONE'
    let at = from
    if (this.lineEnd === 'crlf') {
      if (bytes[at] === NEWLINE) throw this.fail('COPY_END_MARKER_STYLE')
      if (bytes[at] !== CARRIAGE_RETURN) throw this.fail(corrupt)
      at++
    }
    const last = bytes[at]
    if (last !== NEWLINE && last !== CARRIAGE_RETURN) throw this.fail(corrupt)
    const wanted = this.lineEnd === 'cr' ? CARRIAGE_RETURN : NEWLINE
    if (this.lineEnd !== 'unknown' && last !== wanted) throw this.fail('COPY_END_MARKER_STYLE')
  }

  protected override locateKey(bytes: Buffer, start: number, end: number): boolean {
    const { key, keyIndex } = this
    let at = start
    for (let field = 0; field < keyIndex; field++) {
      at = this.#skipField(bytes, at, end)
      if (at >= end) return false
      at++
    }
    const fieldEnd = this.#skipField(bytes, at, end)
    if (!this.#hasBackslash && this.#isPlain) {
      key.kind = 'value'
      this.#unescape(bytes, at, fieldEnd)
      return true
    }
    // A backslash at the very end of the data does not count.
    const rawEnd = fieldEnd === end && isEscaped(bytes, at, end) ? end - 1 : fieldEnd
    if (equals(bytes, at, rawEnd, this.#nullMark)) {
      key.kind = 'null'
    } else if (this.#defaultMark !== undefined && equals(bytes, at, rawEnd, this.#defaultMark)) {
      key.kind = 'default'
    } else {
      key.kind = 'value'
      this.#unescape(bytes, at, rawEnd)
    }
    return true
  }

  protected override countColumns(bytes: Buffer, start: number, end: number): number {
    let count = 1
    for (let at = this.#skipField(bytes, start, end); at < end; count++)
      at = this.#skipField(bytes, at + 1, end)
    return count
  }

  /** Where the field ends: at its delimiter or at `end`. */
  #skipField(bytes: Buffer, start: number, end: number): number {
    const { delimiter } = this
    this.#hasBackslash = false
    for (let at = start; at < end; at++) {
      const byte = bytes[at]
      if (byte === delimiter) return at
      if (byte !== BACKSLASH) continue
      this.#hasBackslash = true
      at++
    }
    return end
  }

  /** Points the key at the field's value. */
  #unescape(bytes: Buffer, start: number, end: number): void {
    const { key } = this
    if (!this.#hasBackslash) {
      key.bytes = bytes
      key.start = start
      key.end = end
      return
    }
    if (this.#unescaped.length < end - start)
      this.#unescaped = Buffer.allocUnsafe((end - start) * 2)
    key.bytes = this.#unescaped
    key.start = 0
    key.end = unescapeText(bytes, start, end, this.#unescaped)
  }
}

/** True when an odd number of backslashes stands before `at`. */
function isEscaped(bytes: Buffer, rowStart: number, at: number): boolean {
  let before = at - 1
  while (before >= rowStart && bytes[before] === BACKSLASH) before--
  return ((at - 1 - before) & 1) === 1
}

function equals(bytes: Buffer, start: number, end: number, mark: Buffer): boolean {
  if (end - start !== mark.length) return false
  for (let at = 0; at < mark.length; at++) if (bytes[start + at] !== mark[at]) return false
  return true
}

const letters: Readonly<Record<number, number>> = {
  98: 8,
  102: 12,
  110: 10,
  114: 13,
  116: 9,
  118: 11,
}

/** Writes the value of a text field to `into`; its length. */
export function unescapeText(bytes: Buffer, start: number, end: number, into: Buffer): number {
  let length = 0
  let at = start
  while (at < end) {
    const byte = bytes[at++] as number
    if (byte !== BACKSLASH) {
      into[length++] = byte
      continue
    }
    if (at >= end) break
    const escaped = bytes[at++] as number
    const base = escaped === 120 ? 16 : 8
    const first = base === 16 ? at : at - 1
    const last = digitsEnd(bytes, first, Math.min(end, first + (base === 16 ? 2 : 3)), base)
    if (last > first) {
      into[length++] = Number.parseInt(bytes.toString('latin1', first, last), base) & 0xff
      at = last
    } else into[length++] = letters[escaped] ?? escaped
  }
  return length
}

function digitsEnd(bytes: Buffer, from: number, limit: number, base: 8 | 16): number {
  let at = from
  while (at < limit && isDigit(bytes[at] as number, base)) at++
  return at
}

function isDigit(byte: number, base: 8 | 16): boolean {
  if (base === 8) return byte >= 48 && byte <= 55
  const lower = byte | 32
  return (byte >= 48 && byte <= 57) || (lower >= 97 && lower <= 102)
}
