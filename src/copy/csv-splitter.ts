/**
 * CSV into rows, by PostgreSQL's grammar and not by RFC 4180: quotes may open in mid-field, `\.` alone on a line ends the
 * data before version 18, and a header is one record, however many lines it has.
 * memchr for the next quote, newline and carriage return, all cached; bytes are walked only inside quotes and up to the key.
 * Follows CopyReadLineText and CopyReadAttributesCSV in `src/backend/commands/copyfromparse.c`.
 */
import type { CopyOptions } from './copy-options.js'
import type { CopyLayout } from './copy-row.js'
import { BACKSLASH, CARRIAGE_RETURN, countByte, LineSplitter, NEWLINE } from './line-splitter.js'

/** Quoted fields are mostly shorter than what a call of memchr costs. */
const WALK_BYTES = 16

export class CsvSplitter extends LineSplitter {
  readonly #quote: number
  readonly #escape: number
  readonly #nullMark: Buffer
  readonly #defaultMark: Buffer | undefined
  readonly #forceNull: boolean
  readonly #forceNotNull: boolean
  readonly #hasEndMarker: boolean
  #nextQuote = -1
  #inQuote = false
  #afterEscape = false
  #sawQuote = false
  #unquoted = Buffer.allocUnsafe(256)

  constructor(options: CopyOptions, layout: CopyLayout) {
    super(options, layout)
    this.#quote = options.quote
    this.#escape = options.escape
    this.#nullMark = options.nullMark
    this.#defaultMark = options.defaultMark
    const column = layout.keyIndex === undefined ? '' : (layout.columns[layout.keyIndex] ?? '')
    const covers = (columns: 'all' | readonly string[]) =>
      columns === 'all' || columns.includes(column)
    this.#forceNull = covers(options.forceNull)
    this.#forceNotNull = covers(options.forceNotNull)
    this.#hasEndMarker = this.serverMajor < 18
  }

  protected override get isOpen(): boolean {
    return this.#inQuote
  }

  protected override forget(): void {
    this.#nextQuote = -1
  }

  protected override startRow(): void {
    this.#inQuote = false
    this.#afterEscape = false
    this.#sawQuote = false
  }

  protected override scan(bytes: Buffer, rowStart: number, from: number, eof: boolean): number {
    if (from === rowStart && this.#hasEndMarker && bytes[from] === BACKSLASH) {
      const marker = this.#endMarker(bytes, from, eof)
      if (marker !== NOT_MARKER) return marker
    }
    let at = this.#inQuote ? this.#walkQuote(bytes, from) : from
    while (!this.#inQuote) {
      const quote = this.#openingFrom(bytes, at)
      const lineEnd = Math.min(this.newlineFrom(bytes, at), this.returnFrom(bytes, at))
      if (lineEnd <= quote && lineEnd < bytes.length) return this.#endRow(bytes, lineEnd, eof)
      if (quote === bytes.length) break
      this.#inQuote = true
      this.#sawQuote = true
      at = this.#walkQuote(bytes, quote + 1)
    }
    this.resume = bytes.length
    return -1
  }

  /** The next quote. Between quoted fields it is here, or behind the delimiter: a call of memchr is not worth it. */
  #openingFrom(bytes: Buffer, at: number): number {
    if (!this.#sawQuote) return this.#quoteFrom(bytes, at)
    if (bytes[at] === this.#quote) return at
    return bytes[at + 1] === this.#quote ? at + 1 : this.#quoteFrom(bytes, at)
  }

  #endRow(bytes: Buffer, at: number, eof: boolean): number {
    this.contentEnd = at
    if (bytes[at] === CARRIAGE_RETURN) return this.endAtReturn(bytes, at, eof, 'COPY_UNQUOTED_CR')
    this.endAtNewline('COPY_UNQUOTED_NEWLINE')
    return at + 1
  }

  #quoteFrom(bytes: Buffer, at: number): number {
    if (this.#nextQuote >= at) return this.#nextQuote
    const found = bytes.indexOf(this.#quote, at)
    this.#nextQuote = found < 0 ? bytes.length : found
    return this.#nextQuote
  }

  /** From inside quotes to behind the closing quote; `#inQuote` stays true when the bytes end before it. */
  #walkQuote(bytes: Buffer, from: number): number {
    if (this.#quote !== this.#escape) return this.#walkEscapedQuote(bytes, from)
    const counted = this.lineEnd === 'lf' ? NEWLINE : CARRIAGE_RETURN
    const near = Math.min(from + WALK_BYTES, bytes.length)
    let at = from
    for (; at < near; at++) {
      const byte = bytes[at]
      if (byte === this.#quote) {
        this.#inQuote = false
        return at + 1
      }
      if (byte === counted) this.innerLines++
    }
    const quote = this.#quoteFrom(bytes, at)
    this.innerLines += countByte(bytes, at, quote, counted)
    if (quote === bytes.length) return quote
    this.#inQuote = false
    return quote + 1
  }

  #walkEscapedQuote(bytes: Buffer, from: number): number {
    const counted = this.lineEnd === 'lf' ? NEWLINE : CARRIAGE_RETURN
    for (let at = from; at < bytes.length; at++) {
      const byte = bytes[at]
      if (byte === this.#escape) {
        this.#afterEscape = !this.#afterEscape
        continue
      }
      if (byte === this.#quote && !this.#afterEscape) {
        this.#inQuote = false
        return at + 1
      }
      this.#afterEscape = false
      if (byte === counted) this.innerLines++
    }
    return bytes.length
  }

  /** `\.` alone on a line: end of the row that it is, -1 when more bytes are needed, or NOT_MARKER. */
  #endMarker(bytes: Buffer, start: number, eof: boolean): number {
    const lead = this.lineEnd === 'crlf' ? '\\.\r' : '\\.'
    const seen = bytes.toString('latin1', start, start + lead.length + 1)
    if (seen.length <= lead.length) {
      this.resume = start
      return lead.startsWith(seen) && !eof ? -1 : NOT_MARKER
    }
    const last = seen.charCodeAt(lead.length)
    if (!seen.startsWith(lead) || (last !== NEWLINE && last !== CARRIAGE_RETURN)) return NOT_MARKER
    const wanted = this.lineEnd === 'cr' ? CARRIAGE_RETURN : NEWLINE
    if (this.lineEnd !== 'unknown' && last !== wanted) throw this.fail('COPY_END_MARKER_STYLE')
    this.ended = true
    this.contentEnd = start
    return start + lead.length + 1
  }

  protected override locateKey(bytes: Buffer, start: number, end: number): boolean {
    const { key, delimiter, keyIndex } = this
    let at = start
    for (let field = 0; field < keyIndex; field++) {
      at = this.#sawQuote ? this.#skipField(bytes, at, end) : skipPlain(bytes, at, end, delimiter)
      if (at >= end) return false
      at++
    }
    const fieldEnd = this.#sawQuote
      ? this.#skipField(bytes, at, end)
      : skipPlain(bytes, at, end, delimiter)
    key.bytes = bytes
    key.start = at
    key.end = fieldEnd
    key.kind = 'value'
    const isQuoted = this.#sawQuote && this.#unquote(bytes, at, fieldEnd)
    if (!isQuoted && equals(bytes, at, fieldEnd, this.#nullMark)) {
      if (!this.#forceNotNull) key.kind = 'null'
    } else if (!isQuoted && this.#isDefault(bytes, at, fieldEnd)) {
      key.kind = 'default'
    } else if (this.#forceNull && equals(key.bytes, key.start, key.end, this.#nullMark)) {
      key.kind = 'null'
    }
    return true
  }

  #isDefault(bytes: Buffer, start: number, end: number): boolean {
    return this.#defaultMark !== undefined && equals(bytes, start, end, this.#defaultMark)
  }

  protected override countColumns(bytes: Buffer, start: number, end: number): number {
    let count = 1
    for (let at = this.#skipField(bytes, start, end); at < end; count++)
      at = this.#skipField(bytes, at + 1, end)
    return count
  }

  /** Where the field ends: at its delimiter or at `end`. */
  #skipField(bytes: Buffer, start: number, end: number): number {
    let isQuoted = false
    for (let at = start; at < end; at++) {
      const byte = bytes[at]
      if (isQuoted) {
        if (byte === this.#escape && at + 1 < end && this.#isEscapable(bytes[at + 1])) at++
        else if (byte === this.#quote) isQuoted = false
      } else if (byte === this.delimiter) return at
      else if (byte === this.#quote) isQuoted = true
    }
    return end
  }

  /** Quotes at both ends, and nothing between that means anything. */
  #isWrapped(bytes: Buffer, start: number, end: number): boolean {
    const last = end - 1
    if (last === start || bytes[last] !== this.#quote) return false
    for (let at = start + 1; at < last; at++)
      if (bytes[at] === this.#quote || bytes[at] === this.#escape) return false
    return true
  }

  #isEscapable(byte: number | undefined): boolean {
    return byte === this.#escape || byte === this.#quote
  }

  /** Points the key at the field without its quotes; false when it has none. */
  #unquote(bytes: Buffer, start: number, end: number): boolean {
    let first = start
    while (first < end && bytes[first] !== this.#quote) first++
    if (first === end) return false
    if (first === start && this.#isWrapped(bytes, start, end)) {
      this.key.start = start + 1
      this.key.end = end - 1
      return true
    }
    if (this.#unquoted.length < end - start) this.#unquoted = Buffer.allocUnsafe((end - start) * 2)
    const into = this.#unquoted
    let length = 0
    let isQuoted = false
    for (let at = start; at < end; at++) {
      const byte = bytes[at] as number
      if (isQuoted && byte === this.#escape && at + 1 < end && this.#isEscapable(bytes[at + 1])) {
        into[length++] = bytes[++at] as number
      } else if (byte === this.#quote) {
        isQuoted = !isQuoted
      } else into[length++] = byte
    }
    this.key.bytes = into
    this.key.start = 0
    this.key.end = length
    return true
  }
}

const NOT_MARKER = -2

function skipPlain(bytes: Buffer, start: number, end: number, delimiter: number): number {
  let at = start
  while (at < end && bytes[at] !== delimiter) at++
  return at
}

function equals(bytes: Buffer, start: number, end: number, mark: Buffer): boolean {
  if (end - start !== mark.length) return false
  for (let at = 0; at < mark.length; at++) if (bytes[start + at] !== mark[at]) return false
  return true
}
