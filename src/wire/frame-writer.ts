/**
 * Builds frames in one growing buffer; lengths are filled in at `end`.
 * What cannot be written (a zero byte in a string, more than 65,535 items) is an error and leaves no half frame behind.
 *
 *   writer.begin(tag).int16(n).cstring(s).end()
 */
import { engineError } from '../errors/engine-error.js'

export class FrameWriter {
  #buffer: Buffer
  #used = 0
  #frameStart = -1
  /** Where the open frame begins, its tag included. */
  #opened = 0

  constructor(initialBytes = 256) {
    this.#buffer = Buffer.allocUnsafeSlow(initialBytes)
  }

  get size(): number {
    return this.#used
  }

  /** Opens a frame with a tag. */
  begin(tag: number): this {
    this.#reserve(5)
    this.#opened = this.#used
    this.#buffer[this.#used] = tag
    this.#frameStart = this.#used + 1
    this.#used += 5
    return this
  }

  /** Opens a frame without a tag: startup packets and their kin. */
  beginUntagged(): this {
    this.#reserve(4)
    this.#opened = this.#used
    this.#frameStart = this.#used
    this.#used += 4
    return this
  }

  /** Closes the open frame: writes its length. */
  end(): this {
    this.#buffer.writeInt32BE(this.#used - this.#frameStart, this.#frameStart)
    this.#frameStart = -1
    return this
  }

  byte(value: number): this {
    this.#reserve(1)
    this.#buffer[this.#used++] = value
    return this
  }

  int16(value: number): this {
    this.#reserve(2)
    this.#used = this.#buffer.writeUInt16BE(value & 0xffff, this.#used)
    return this
  }

  /** A count as Int16, unsigned as PostgreSQL reads it. @throws WIRE_BAD_FIELD past 65,535 */
  count(value: number): this {
    if (value > 0xffff) this.#refuse('count', String(value))
    return this.int16(value)
  }

  int32(value: number): this {
    this.#reserve(4)
    this.#used = this.#buffer.writeInt32BE(value | 0, this.#used)
    return this
  }

  int64(value: bigint): this {
    this.#reserve(8)
    this.#used = this.#buffer.writeBigInt64BE(value, this.#used)
    return this
  }

  bytes(value: Uint8Array): this {
    this.#reserve(value.length)
    this.#buffer.set(value, this.#used)
    this.#used += value.length
    return this
  }

  /** The string in UTF-8 and a zero byte. @throws WIRE_BAD_FIELD when the string has a zero byte itself */
  cstring(value: string): this {
    if (value.includes('\0')) this.#refuse('string', 'it contains a zero byte')
    const length = Buffer.byteLength(value)
    this.#reserve(length + 1)
    this.#buffer.write(value, this.#used, length, 'utf8')
    this.#used += length
    this.#buffer[this.#used++] = 0
    return this
  }

  /** Int32 length (−1 for null) and the bytes: a field of DataRow or a parameter of Bind. */
  value(value: Uint8Array | string | null): this {
    if (value === null) return this.int32(-1)
    if (typeof value !== 'string') return this.int32(value.length).bytes(value)
    const length = Buffer.byteLength(value)
    this.int32(length).#reserve(length)
    this.#buffer.write(value, this.#used, length, 'utf8')
    this.#used += length
    return this
  }

  /** Lends all that was written, [0, end) of memory that is used again when `use` returns; the writer is then empty. */
  lend(use: (bytes: Buffer, end: number) => void): void {
    const end = this.#used
    this.#used = 0
    use(this.#buffer, end)
  }

  /** Drops all that was written. */
  clear(): void {
    this.#used = 0
  }

  /** A copy of all that was written, and an empty writer again. */
  take(): Buffer {
    const copy = Buffer.from(this.#buffer.subarray(0, this.#used))
    this.#used = 0
    return copy
  }

  #refuse(field: string, value: string): never {
    const tag = this.#frameStart > this.#opened ? (this.#buffer[this.#opened] as number) : 0
    this.#used = this.#opened
    this.#frameStart = -1
    throw engineError('WIRE_BAD_FIELD', {
      tag: tag === 0 ? 'startup' : String.fromCharCode(tag),
      field,
      value,
    })
  }

  #reserve(extraBytes: number): this {
    const needed = this.#used + extraBytes
    if (needed > this.#buffer.length) {
      const bigger = Buffer.allocUnsafeSlow(Math.max(needed, this.#buffer.length * 2))
      this.#buffer.copy(bigger, 0, 0, this.#used)
      this.#buffer = bigger
    }
    return this
  }
}
