/**
 * The common half of the csv and text splitters: chunks, the row that straddles two of them, line ends.
 * Rows that lie whole in a chunk are lent from it; only a row that straddles is copied, into the carry, in growing pieces,
 * and scanning goes on where it stopped, so that a row of any length costs linear time.
 * Follows CopyReadLineText in PostgreSQL's `src/backend/commands/copyfromparse.c`.
 */
import type { ErrorCode } from '../errors/catalogue.js'
import { type EngineError, engineError, isEngineError, withWhere } from '../errors/engine-error.js'
import type { CopyOptions } from './copy-options.js'
import {
  type CopyLayout,
  copyWhere,
  MAX_ROW_BYTES,
  noKey,
  type RowKey,
  type RowSink,
  type RowSplitter,
} from './copy-row.js'
import { invalidUtf8, isUtf8Name, type KeyConverter, makeKeyConverter } from './key-encoding.js'

export const NEWLINE = 10
export const CARRIAGE_RETURN = 13
export const BACKSLASH = 92

export type LineEnd = 'unknown' | 'lf' | 'cr' | 'crlf'

/** A smaller first piece would be copied twice as often, a bigger one copies rows that could be lent. */
const FIRST_PIECE_BYTES = 4096

export abstract class LineSplitter implements RowSplitter {
  line = 0
  ended = false
  protected lineEnd: LineEnd = 'unknown'
  /** Set by `scan`: where it must go on when it found no end. */
  protected resume = 0
  /** Set by `scan`: end of the row's content, before its line end or `\.`. */
  protected contentEnd = 0
  /** Lines inside quotes of the row at hand. */
  protected innerLines = 0
  protected readonly key: RowKey = noKey()
  protected readonly keyIndex: number
  protected readonly serverMajor: number
  protected readonly layout: CopyLayout
  protected readonly options: CopyOptions
  protected readonly delimiter: number
  readonly #convert: KeyConverter | undefined
  #headerPending: boolean
  #carry = Buffer.allocUnsafe(FIRST_PIECE_BYTES)
  #carryLength = 0
  protected nextNewline = -1
  protected nextReturn = -1

  constructor(options: CopyOptions, layout: CopyLayout) {
    this.options = options
    this.layout = layout
    this.keyIndex = layout.keyIndex ?? -1
    this.serverMajor = layout.serverMajor ?? 15
    this.delimiter = options.delimiter
    this.#headerPending = options.header !== 'none'
    this.#convert =
      this.keyIndex < 0 ? undefined : makeKeyConverter(options.encoding ?? layout.encoding)
  }

  get endsInReturn(): boolean {
    return this.lineEnd === 'cr'
  }

  /** End of the row that starts at `rowStart`, scanning on from `at`; -1: not in these bytes. `eof`: nothing follows. */
  protected abstract scan(bytes: Buffer, rowStart: number, at: number, eof: boolean): number
  /** Forgets what was cached of the last buffer. */
  protected abstract forget(): void
  /** Forgets what was found of the last row. */
  protected abstract startRow(): void
  /** Fills `key` from the row; false when the row has no such column. */
  protected abstract locateKey(bytes: Buffer, start: number, end: number): boolean
  protected abstract countColumns(bytes: Buffer, start: number, end: number): number
  /** Data that ends inside a quote. */
  protected abstract get isOpen(): boolean

  push(chunk: Buffer, sink: RowSink): void {
    let at = this.#carryLength > 0 ? this.#pushCarry(chunk, sink) : 0
    if (at < 0 || this.ended || at >= chunk.length) return
    this.#forgetBuffer()
    for (;;) {
      if (this.lineEnd === 'lf' && !this.#headerPending) at = this.#passPlain(chunk, at, sink)
      if (at === chunk.length) return
      const end = this.#scan(chunk, at, at, false)
      if (end < 0) break
      this.#emit(chunk, at, end, sink)
      if (this.ended) return
      at = end
    }
    this.resume -= at
    this.#append(chunk, at, chunk.length)
  }

  /** Rows that the sink takes as they stand; where the next begins. */
  #passPlain(chunk: Buffer, at: number, sink: RowSink): number {
    const next = sink.takePlain?.(at, chunk.length, this.line) ?? at
    if (next > at) this.line += sink.taken ?? 0
    return next
  }

  finish(sink: RowSink): void {
    if (this.ended || this.#carryLength === 0) return
    const bytes = this.#carry.subarray(0, this.#carryLength)
    this.#forgetBuffer()
    let at = 0
    let from = this.resume
    // A \r that waited for its \n may end a row before the end of the data.
    while (at < bytes.length && !this.ended) {
      let end = this.#scan(bytes, at, from, true)
      if (end < 0) {
        this.contentEnd = end = bytes.length
        if (this.isOpen && !this.#headerPending) {
          this.line += 1 + this.innerLines
          sink.broken?.(bytes, at, end, this.line)
          throw this.failRow('COPY_UNTERMINATED_QUOTE', bytes, at, end)
        }
      }
      this.#emit(bytes, at, end, sink)
      at = end
      from = end
    }
    this.#carryLength = 0
  }

  hasExtraColumns(bytes: Buffer, start: number, end: number): boolean {
    return (
      this.countColumns(bytes, start, contentEndOf(bytes, start, end)) > this.layout.columns.length
    )
  }

  protected fail(code: PlainCode): EngineError {
    const { table } = this.layout
    return engineError(code, undefined, {
      where: copyWhere(table, this.line + 1 + this.innerLines),
    })
  }

  protected failRow(code: PlainCode, bytes: Buffer, start: number, end: number): EngineError {
    return withWhere(engineError(code), this.#whereRow(bytes, start, end))
  }

  /** A newline outside quotes at the place given; true: it ends the row. */
  protected endAtNewline(literal: PlainCode): void {
    if (this.lineEnd === 'cr' || this.lineEnd === 'crlf') throw this.fail(literal)
    this.lineEnd = 'lf'
  }

  /** A carriage return outside quotes at `at`: end of the row, or -1 when the next byte is needed. */
  protected endAtReturn(bytes: Buffer, at: number, eof: boolean, literal: PlainCode): number {
    if (this.lineEnd === 'lf') throw this.fail(literal)
    if (this.lineEnd === 'cr') return at + 1
    if (at + 1 === bytes.length && !eof) {
      this.resume = at
      return -1
    }
    if (bytes[at + 1] === NEWLINE) {
      this.lineEnd = 'crlf'
      return at + 2
    }
    if (this.lineEnd === 'crlf') throw this.fail(literal)
    this.lineEnd = 'cr'
    return at + 1
  }

  protected newlineFrom(bytes: Buffer, at: number): number {
    if (this.nextNewline >= at) return this.nextNewline
    const found = bytes.indexOf(NEWLINE, at)
    this.nextNewline = found < 0 ? bytes.length : found
    return this.nextNewline
  }

  protected returnFrom(bytes: Buffer, at: number): number {
    if (this.nextReturn >= at) return this.nextReturn
    const found = bytes.indexOf(CARRIAGE_RETURN, at)
    this.nextReturn = found < 0 ? bytes.length : found
    return this.nextReturn
  }

  #scan(bytes: Buffer, rowStart: number, at: number, eof: boolean): number {
    try {
      return this.scan(bytes, rowStart, at, eof)
    } catch (error) {
      throw this.#invalidBytes(bytes, rowStart, error) ?? error
    }
  }

  /** PostgreSQL looks at the encoding first, as far as it reads. */
  #invalidBytes(bytes: Buffer, rowStart: number, error: unknown): EngineError | undefined {
    const encoding = this.options.encoding ?? this.layout.encoding
    if (encoding !== undefined && !isUtf8Name(encoding)) return undefined
    const isMarker = isEngineError(error) && error.code.startsWith('COPY_END_MARKER')
    const lookahead = (isMarker ? 2 : 0) + (this.lineEnd === 'crlf' ? 2 : 1)
    const until = Math.max(0, this.contentEnd - rowStart) + lookahead
    const invalid = invalidUtf8(bytes.subarray(rowStart), Math.min(until, bytes.length - rowStart))
    if (invalid === undefined) return undefined
    const where = copyWhere(this.layout.table, this.line + 1 + this.innerLines)
    return engineError('COPY_INVALID_BYTES', { bytes: invalid }, { where })
  }

  #forgetBuffer(): void {
    this.nextNewline = -1
    this.nextReturn = -1
    this.forget()
  }

  /** Grows the carried row from the chunk until it ends; where the chunk goes on, or -1 when it is used up. */
  #pushCarry(chunk: Buffer, sink: RowSink): number {
    let used = 0
    let piece = FIRST_PIECE_BYTES
    while (used < chunk.length) {
      const before = this.#carryLength
      const until = Math.min(used + piece, chunk.length)
      this.#append(chunk, used, until)
      const bytes = this.#carry.subarray(0, this.#carryLength)
      this.#forgetBuffer()
      const end = this.#scan(bytes, 0, this.resume, false)
      if (end >= 0) {
        this.#carryLength = 0
        this.#emit(bytes, 0, end, sink)
        this.#shrink()
        return used + end - before
      }
      used = until
      piece *= 2
    }
    return -1
  }

  #append(chunk: Buffer, from: number, to: number): void {
    const length = this.#carryLength + to - from
    if (length > MAX_ROW_BYTES)
      throw engineError(
        'COPY_ROW_TOO_LONG',
        { limit: MAX_ROW_BYTES },
        { where: copyWhere(this.layout.table, this.line + 1 + this.innerLines) },
      )
    if (length > this.#carry.length) {
      const bigger = Buffer.allocUnsafe(
        Math.min(MAX_ROW_BYTES, Math.max(length, this.#carry.length * 2)),
      )
      this.#carry.copy(bigger, 0, 0, this.#carryLength)
      this.#carry = bigger
    }
    chunk.copy(this.#carry, this.#carryLength, from, to)
    this.#carryLength = length
  }

  /** One huge row must not hold its memory for the rest of the data. */
  #shrink(): void {
    if (this.#carry.length > 1 << 20) this.#carry = Buffer.allocUnsafe(FIRST_PIECE_BYTES)
  }

  #emit(bytes: Buffer, start: number, end: number, sink: RowSink): void {
    const contentEnd = this.contentEnd
    // `\.` at the start of a line: no row.
    if (this.ended && contentEnd === start) return
    this.line += 1 + this.innerLines
    if (this.#headerPending) {
      this.#headerPending = false
      sink.header(bytes, start, end)
    } else {
      this.key.line = this.line
      const rowEnd = this.ended ? contentEnd : end
      const failure = this.keyIndex >= 0 ? this.#readKey(bytes, start, contentEnd) : undefined
      if (failure === undefined) sink.row(bytes, start, rowEnd, this.key)
      else if (sink.bad === undefined) throw failure
      else sink.bad(failure, bytes, start, rowEnd, this.line)
    }
    this.innerLines = 0
    this.startRow()
  }

  #readKey(bytes: Buffer, start: number, end: number): EngineError | undefined {
    if (!this.locateKey(bytes, start, end)) {
      const column = this.layout.columns[this.countColumns(bytes, start, end)] ?? ''
      return withWhere(
        engineError('COPY_MISSING_DATA', { column }),
        this.#whereRow(bytes, start, end),
      )
    }
    if (this.#convert === undefined || this.key.kind !== 'value') return undefined
    if (this.#convert(this.key)) return undefined
    const encoding = this.options.encoding ?? this.layout.encoding ?? ''
    return withWhere(
      engineError('COPY_KEY_ENCODING', { encoding }),
      copyWhere(this.layout.table, this.line),
    )
  }

  #whereRow(bytes: Buffer, start: number, end: number): string {
    const text = bytes.toString('utf8', start, Math.min(end, start + 400))
    return copyWhere(this.layout.table, this.line, undefined, text)
  }
}

/** Codes without parameters. */
export type PlainCode = Extract<
  ErrorCode,
  | 'COPY_LITERAL_CR'
  | 'COPY_LITERAL_NEWLINE'
  | 'COPY_UNQUOTED_CR'
  | 'COPY_UNQUOTED_NEWLINE'
  | 'COPY_END_MARKER_STYLE'
  | 'COPY_END_MARKER_CORRUPT'
  | 'COPY_END_MARKER_NOT_ALONE'
  | 'COPY_UNTERMINATED_QUOTE'
>

function contentEndOf(bytes: Buffer, start: number, end: number): number {
  let at = end
  if (at > start && bytes[at - 1] === NEWLINE) at--
  if (at > start && bytes[at - 1] === CARRIAGE_RETURN) at--
  return at
}

/** How many `byte` lie in from…to. */
export function countByte(bytes: Buffer, from: number, to: number, byte: number): number {
  let count = 0
  for (let at = bytes.indexOf(byte, from); at >= 0 && at < to; at = bytes.indexOf(byte, at + 1))
    count++
  return count
}
