/**
 * Reads the fields of one message body in order. Every read is checked against the bytes that are there:
 * counts and lengths inside a message are claims. Throws WIRE_* and nothing else.
 */
import { engineError } from '../errors/engine-error.js'

export class BodyReader {
  readonly #name: string
  readonly #body: Buffer
  #at = 0

  /** `name` stands in errors: the tag's letter, or a word for messages without a tag. */
  constructor(name: string, body: Buffer) {
    this.#name = name
    this.#body = body
  }

  get remaining(): number {
    return this.#body.length - this.#at
  }

  byte(field: string): number {
    this.#need(1, field)
    return this.#body[this.#at++] as number
  }

  int16(field: string): number {
    this.#need(2, field)
    const value = this.#body.readInt16BE(this.#at)
    this.#at += 2
    return value
  }

  uint16(field: string): number {
    return this.int16(field) & 0xffff
  }

  int32(field: string): number {
    this.#need(4, field)
    const value = this.#body.readInt32BE(this.#at)
    this.#at += 4
    return value
  }

  uint32(field: string): number {
    return this.int32(field) >>> 0
  }

  /** A zero-terminated string; invalid UTF-8 becomes U+FFFD. */
  cstring(field: string): string {
    const zero = this.#body.indexOf(0, this.#at)
    if (zero < 0) this.#truncated(field)
    const text = this.#body.toString('utf8', this.#at, zero)
    this.#at = zero + 1
    return text
  }

  /** A view of the next `length` bytes. */
  bytes(length: number, field: string): Buffer {
    this.#need(length, field)
    const view = this.#body.subarray(this.#at, this.#at + length)
    this.#at += length
    return view
  }

  /** Int32 length and that many bytes; null for length −1. */
  value(field: string): Buffer | null {
    const length = this.int32(field)
    if (length === -1) return null
    if (length < 0) this.bad(field, length)
    return this.bytes(length, field)
  }

  /** All that is left. */
  rest(): Buffer {
    return this.bytes(this.remaining, 'rest')
  }

  /** A count (unsigned Int16), then that many items of at least `itemBytes` bytes each. */
  list<T>(field: string, itemBytes: number, read: () => T): T[] {
    const count = this.uint16(field)
    this.#need(count * itemBytes, field)
    const items: T[] = []
    for (let i = 0; i < count; i++) items.push(read())
    return items
  }

  /** @throws WIRE_BAD_FIELD when bytes are left over */
  end(): void {
    if (this.remaining > 0) this.bad('length', `${this.remaining} bytes too many`)
  }

  bad(field: string, value: string | number): never {
    throw engineError('WIRE_BAD_FIELD', { tag: this.#name, field, value })
  }

  #need(length: number, field: string): void {
    if (length > this.#body.length - this.#at) this.#truncated(field)
  }

  #truncated(field: string): never {
    throw engineError('WIRE_TRUNCATED', { tag: this.#name, field })
  }
}
