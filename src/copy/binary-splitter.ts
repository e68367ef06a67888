/**
 * COPY's binary format into rows, by hopping over the lengths; the key is lent as it was sent.
 *
 *   "PGCOPY\n\xff\r\n\0" · Int32 flags · Int32 extension length · extension
 *   per row: Int16 fields · per field: Int32 length (−1 is NULL) · bytes
 *   Int16 −1, which may be missing
 *
 * Follows NextCopyFrom and CopyReadBinaryAttribute in `src/backend/commands/copyfromparse.c`.
 */
import type { ErrorCode } from '../errors/catalogue.js'
import { engineError } from '../errors/engine-error.js'
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
import { makeKeyConverter } from './key-encoding.js'

const SIGNATURE = Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1')
/** Signature, flags, length of the extension. */
const FIXED_HEADER_BYTES = 19
/** Bits 16–31 are critical; 16 alone was OIDS. */
const OIDS_FLAG = 1 << 16

export class BinarySplitter implements RowSplitter {
  line = 0
  ended = false
  readonly endsInReturn = false
  readonly #layout: CopyLayout
  readonly #keyIndex: number
  readonly #key: RowKey = noKey()
  #phase: 'signature' | 'extension' | 'rows' = 'signature'
  /** Bytes of a header or row that began in an earlier chunk. */
  #carry = Buffer.allocUnsafe(4096)
  #carryLength = 0
  /** Field that the row at hand waits for (−1: its field count), and where that starts from the row's start. */
  #field = -1
  #offset = 0
  #keyStart = 0
  #keyLength = -1

  constructor(options: CopyOptions, layout: CopyLayout) {
    this.#layout = layout
    this.#keyIndex = layout.keyIndex ?? -1
    const encoding = options.encoding ?? layout.encoding
    const isRaw = makeKeyConverter(encoding) === undefined
    if (this.#keyIndex >= 0 && !isRaw && layout.keyIsText !== false)
      throw engineError('COPY_KEY_ENCODING', { encoding: encoding ?? '' })
  }

  push(chunk: Buffer, sink: RowSink): void {
    let at = 0
    if (this.#carryLength > 0 || this.#phase !== 'rows') at = this.#pushCarry(chunk, sink)
    while (at >= 0 && at < chunk.length) {
      if (this.ended) throw this.#fail('COPY_AFTER_EOF')
      const next = sink.takePlain?.(at, chunk.length, this.line) ?? at
      if (next > at) {
        this.line += sink.taken ?? 0
        at = next
        continue
      }
      const whole = this.#hopRow(chunk, at)
      const end = whole < 0 ? this.#hop(chunk, at, chunk.length, sink) : whole
      if (end < 0) {
        this.#append(chunk, at, chunk.length)
        return
      }
      this.#emit(chunk, at, end, sink)
      at = end
    }
  }

  finish(sink: RowSink): void {
    if (this.#phase === 'signature') throw this.#headerError()
    if (this.#phase === 'extension')
      throw engineError('COPY_BINARY_HEADER', { what: 'wrong length' })
    // One byte is no row: PostgreSQL cannot read the field count and takes it for the end.
    if (this.ended || this.#carryLength < 2) return
    sink.broken?.(this.#carry, 0, this.#carryLength, this.line)
    throw this.#fail('COPY_UNEXPECTED_EOF', this.#layout.columns[this.#field])
  }

  hasExtraColumns(): boolean {
    return false
  }

  /** Completes what an earlier chunk began; where the chunk goes on, or −1 when it is used up. */
  #pushCarry(chunk: Buffer, sink: RowSink): number {
    let at = 0
    for (;;) {
      if (this.ended && at < chunk.length) throw this.#fail('COPY_AFTER_EOF')
      const wanted = this.#wantedBytes()
      const take = Math.min(wanted - this.#carryLength, chunk.length - at)
      this.#append(chunk, at, at + take)
      at += take
      if (this.#carryLength < wanted) return -1
      if (this.#step(sink)) return at
    }
  }

  /** How long the carry must be before the next step. */
  #wantedBytes(): number {
    if (this.#phase === 'signature') return FIXED_HEADER_BYTES
    if (this.#phase === 'extension') return FIXED_HEADER_BYTES + this.#offset
    if (this.#field < 0) return 2
    return this.#offset + 4 + this.#bodyAt(this.#carry, this.#offset, this.#carryLength)
  }

  /** Length of the field at `at` when it is known, else 0: its length is read first. */
  #bodyAt(bytes: Buffer, at: number, end: number): number {
    return at + 4 <= end ? Math.max(0, bytes.readInt32BE(at)) : 0
  }

  /** Takes the carry one step on; true when it is empty again and rows may be lent from the chunk. */
  #step(sink: RowSink): boolean {
    const bytes = this.#carry
    if (this.#phase === 'signature') {
      this.#offset = this.#checkHeader(bytes)
      this.#phase = 'extension'
      return false
    }
    const length = this.#carryLength
    if (this.#phase === 'extension') {
      this.#phase = 'rows'
      this.#offset = 0
      this.#carryLength = 0
      sink.header(bytes, 0, length)
      return true
    }
    const end = this.#hop(bytes, 0, length, sink)
    if (end < 0) return false
    this.#carryLength = 0
    this.#emit(bytes, 0, end, sink)
    if (bytes.length > 1 << 20) this.#carry = Buffer.allocUnsafe(4096)
    return true
  }

  /** End of a row that begins and ends in these bytes, with nothing wrong; −1: `#hop` looks closer. */
  #hopRow(bytes: Buffer, start: number): number {
    const count = this.#layout.columns.length
    const last = bytes.length - 4
    let at = start + 2
    if (
      this.#field >= 0 ||
      (((bytes[start] as number) << 8) | (bytes[start + 1] as number)) !== count
    )
      return -1
    for (let field = 0; field < count; field++) {
      if (at > last) return -1
      const length = readInt32(bytes, at)
      if (length < -1) return -1
      if (field === this.#keyIndex) {
        this.#keyStart = at + 4 - start
        this.#keyLength = length
      }
      at += length < 0 ? 4 : 4 + length
    }
    if (at > bytes.length) return -1
    this.line++
    return at
  }

  /** Hops on from the field that is waited for; end of the row, or −1 when the bytes end first. */
  #hop(bytes: Buffer, start: number, limit: number, sink: RowSink): number {
    if (this.#field < 0 && start + 2 > limit) return -1
    if (this.#field < 0 && this.#startRow(bytes.readInt16BE(start))) return start + 2
    const count = this.#layout.columns.length
    let field = this.#field
    let at = start + this.#offset
    for (; field < count && at + 4 <= limit; field++) {
      const length = readInt32(bytes, at)
      if (length < -1) {
        sink.broken?.(bytes, start, at + 4, this.line)
        throw this.#fail('COPY_FIELD_SIZE', this.#layout.columns[field])
      }
      const next = at + 4 + Math.max(length, 0)
      if (next > limit) break
      if (field === this.#keyIndex) {
        this.#keyStart = at + 4 - start
        this.#keyLength = length
      }
      at = next
    }
    const isWhole = field === count
    this.#field = isWhole ? -1 : field
    this.#offset = isWhole ? 0 : at - start
    return isWhole ? at : -1
  }

  /** Takes the field count of a row; true when it is the trailer. */
  #startRow(count: number): boolean {
    if (count === -1) {
      this.ended = true
      return true
    }
    this.line++
    if (count !== this.#layout.columns.length) throw this.#wrongCount(count)
    this.#keyLength = -1
    this.#field = 0
    this.#offset = 2
    return false
  }

  #emit(bytes: Buffer, start: number, end: number, sink: RowSink): void {
    if (this.ended) return
    const key = this.#key
    key.line = this.line
    if (this.#keyIndex >= 0) {
      key.kind = this.#keyLength < 0 ? 'null' : 'value'
      key.bytes = bytes
      key.start = start + this.#keyStart
      key.end = key.start + Math.max(0, this.#keyLength)
    }
    sink.row(bytes, start, end, key)
  }

  #append(chunk: Buffer, from: number, to: number): void {
    const length = this.#carryLength + to - from
    if (length > MAX_ROW_BYTES)
      throw engineError('COPY_ROW_TOO_LONG', { limit: MAX_ROW_BYTES }, this.#where(this.line))
    if (length > this.#carry.length) {
      const bigger = Buffer.allocUnsafe(Math.max(length, this.#carry.length * 2))
      this.#carry.copy(bigger, 0, 0, this.#carryLength)
      this.#carry = bigger
    }
    chunk.copy(this.#carry, this.#carryLength, from, to)
    this.#carryLength = length
  }

  /** Length of the extension. */
  #checkHeader(bytes: Buffer): number {
    if (SIGNATURE.compare(bytes, 0, SIGNATURE.length) !== 0) throw engineError('COPY_SIGNATURE')
    const flags = bytes.readInt32BE(11)
    const header = (what: string) => engineError('COPY_BINARY_HEADER', { what })
    if ((flags & OIDS_FLAG) !== 0) throw header('WITH OIDS')
    if (flags >> 16 !== 0) throw engineError('COPY_BINARY_FLAGS')
    const length = bytes.readInt32BE(15)
    if (length < 0) throw header('missing length')
    return length
  }

  #headerError() {
    const length = this.#carryLength
    if (length < 11 || SIGNATURE.compare(this.#carry, 0, SIGNATURE.length) !== 0)
      return engineError('COPY_SIGNATURE')
    const what = length < 15 ? 'missing flags' : 'missing length'
    return engineError('COPY_BINARY_HEADER', { what })
  }

  #wrongCount(got: number) {
    const expected = this.#layout.columns.length
    return engineError('COPY_FIELD_COUNT', { got, expected }, this.#where(this.line))
  }

  #fail(code: BinaryCode, column?: string) {
    const line = code === 'COPY_AFTER_EOF' ? this.line + 1 : this.line
    return engineError(code, undefined, this.#where(line, column))
  }

  #where(line: number, column?: string) {
    return { where: copyWhere(this.#layout.table, line, column) }
  }
}

type BinaryCode = Extract<ErrorCode, 'COPY_AFTER_EOF' | 'COPY_UNEXPECTED_EOF' | 'COPY_FIELD_SIZE'>

/** Big-endian, signed; without the bounds check of Buffer's own, the caller has made it. */
function readInt32(bytes: Buffer, at: number): number {
  return (
    ((bytes[at] as number) << 24) |
    ((bytes[at + 1] as number) << 16) |
    ((bytes[at + 2] as number) << 8) |
    (bytes[at + 3] as number)
  )
}
