/**
 * Cuts a server's byte stream into replies without copying rows: DataRow and CopyData bytes are handed on as
 * ranges of the read buffer, also in part; every other frame is handed on whole.
 * Pure. Follows the chapter "Message Formats" of the PostgreSQL documentation.
 *
 *   Byte1 tag · Int32 length (counts itself, not the tag) · body
 */
import { frameLength } from '../wire/frame-reader.js'
import { backend, MAX_BODY_BYTES } from '../wire/tags.js'
import { type NumbersHolder, tellAtHome } from './shard-numbers.js'

/** Takes what a server says. All buffers are borrowed until the call returns. */
export interface ReplyReceiver {
  /**
   * Bytes [start, end) of DataRow (D) and CopyData (d) frames, in order. They may begin or end inside a frame,
   * unless `wholeRows` is set.
   */
  rows(buffer: Buffer, start: number, end: number): void
  /** One whole frame of any other kind; the body is [start + 5, end). */
  frame(tag: number, buffer: Buffer, start: number, end: number): void
  /** All frames of one read were handed over: a good moment to flush. */
  endOfRead(): void
  /** With `passesPlain`: what `rows` is given there and the ReadyForQuery right behind it, in the place of both calls. */
  answer?(buffer: Buffer, start: number, end: number): void
  /** `rows` may be given whole frames too that mean something to the client only (`isPlain`), together with what is around them. */
  readonly passesPlain?: boolean
  /** Row frames are held until they are whole, so that rows of several servers can be interleaved. */
  readonly wholeRows?: boolean
}

const nothing = Buffer.alloc(0)
const READY_BYTES = 6

/** A whole ReadyForQuery begins there. */
const isReady = (chunk: Buffer, at: number): boolean =>
  chunk.length - at >= READY_BYTES &&
  chunk[at] === backend.readyForQuery &&
  frameLength(chunk, at, MAX_BODY_BYTES) === READY_BYTES - 1

export class ReplyScanner {
  receiver: ReplyReceiver
  /** Descriptions are told in the numbers of shard 0. */
  numbers: NumbersHolder | undefined
  readonly #traffic: { errors: number }
  #rowBytesLeft = 0
  #pending: Buffer = nothing
  #used = 0

  constructor(receiver: ReplyReceiver, traffic: { errors: number } = { errors: 0 }) {
    this.receiver = receiver
    this.#traffic = traffic
  }

  /** Bytes of a frame that is not whole, and what is set aside for it. */
  get kept(): { readonly used: number; readonly setAside: number } {
    return { used: this.#used, setAside: this.#pending.length }
  }

  /** A part of a row was handed on, and the rest has not come. */
  get isInRow(): boolean {
    return this.#rowBytesLeft > 0
  }

  /**
   * Feeds one read. The receiver may be exchanged inside a `frame` call; the rest goes to the new one.
   * @throws WIRE_FRAME_LENGTH, WIRE_FRAME_TOO_LONG; the scanner is then unusable
   */
  push(chunk: Buffer): void {
    let at = 0
    if (this.#rowBytesLeft > 0) at = this.#passRow(chunk, 0)
    if (this.#used > 0) at = this.#complete(chunk, at)
    if (at < chunk.length) this.#walk(chunk, at)
    this.receiver.endOfRead()
  }

  #passRow(chunk: Buffer, at: number): number {
    const end = Math.min(chunk.length, at + this.#rowBytesLeft)
    this.#rowBytesLeft -= end - at
    if (end > at) this.receiver.rows(chunk, at, end)
    return end
  }

  #walk(chunk: Buffer, from: number): void {
    let at = from
    while (chunk.length - at >= 5) {
      const passing = this.receiver.passesPlain === true ? ROW | PLAIN : ROW
      const next =
        (kinds[chunk[at] as number] as number) & passing
          ? this.#passRows(chunk, at, passing)
          : this.#passFrame(chunk, at)
      if (next === at) break
      at = next
    }
    if (at < chunk.length) this.#keepOrPass(chunk, at)
  }

  /** Hands on the run of whole frames of the kinds at `from`; returns where it ends. */
  #passRows(chunk: Buffer, from: number, passing: number): number {
    let at = from
    const numbers = passing === ROW ? undefined : this.numbers?.current
    while (chunk.length - at >= 5 && (kinds[chunk[at] as number] as number) & passing) {
      const next = at + frameLength(chunk, at, MAX_BODY_BYTES) + 1
      if (next > chunk.length) break
      if (numbers) tellAtHome(chunk, at, numbers)
      at = next
    }
    if (passing !== ROW && this.receiver.answer && isReady(chunk, at)) {
      this.receiver.answer(chunk, from, at + READY_BYTES)
      return at + READY_BYTES
    }
    if (at > from) this.receiver.rows(chunk, from, at)
    return at
  }

  #passFrame(chunk: Buffer, at: number): number {
    const next = at + frameLength(chunk, at, MAX_BODY_BYTES) + 1
    if (next > chunk.length) return at
    this.#tell(chunk, at)
    const tag = chunk[at] as number
    if (tag === backend.errorResponse) this.#traffic.errors++
    this.receiver.frame(tag, chunk, at, next)
    return next
  }

  #tell(buffer: Buffer, at: number): void {
    const numbers = this.numbers?.current
    if (numbers) tellAtHome(buffer, at, numbers)
  }

  /** The unfinished frame at the end of a read: rows go on in part, the rest is kept. */
  #keepOrPass(chunk: Buffer, at: number): void {
    if (chunk.length - at >= 5 && isRow(chunk[at] as number) && !this.receiver.wholeRows) {
      this.#rowBytesLeft = frameLength(chunk, at, MAX_BODY_BYTES) + 1
      this.#passRow(chunk, at)
      return
    }
    this.#keep(chunk, at, chunk.length)
  }

  /** Adds to the kept frame until it is whole; returns where the next frame begins. */
  #complete(chunk: Buffer, from: number): number {
    let at = from
    if (this.#used < 5) {
      const take = Math.min(5 - this.#used, chunk.length - at)
      this.#keep(chunk, at, at + take)
      at += take
      if (this.#used < 5) return at
    }
    const tag = this.#pending[0] as number
    const total = frameLength(this.#pending, 0, MAX_BODY_BYTES) + 1
    if (isRow(tag) && !this.receiver.wholeRows) {
      const used = this.#used
      this.receiver.rows(this.#giveAway(), 0, used)
      this.#rowBytesLeft = total - used
      return this.#passRow(chunk, at)
    }
    const take = Math.min(total - this.#used, chunk.length - at)
    this.#keep(chunk, at, at + take)
    at += take
    if (this.#used < total) return at
    const whole = this.#giveAway()
    if (isRow(tag)) this.receiver.rows(whole, 0, total)
    else {
      this.#tell(whole, 0)
      if (tag === backend.errorResponse) this.#traffic.errors++
      this.receiver.frame(tag, whole, 0, total)
    }
    return at
  }

  /** A write may go on referring to what was handed out, and nobody tells: its memory is not used again. */
  #giveAway(): Buffer {
    const whole = this.#pending
    this.#pending = nothing
    this.#used = 0
    return whole
  }

  #keep(chunk: Buffer, from: number, end: number): void {
    const needed = this.#used + end - from
    if (needed > this.#pending.length) {
      const bigger = Buffer.allocUnsafeSlow(Math.max(needed, this.#pending.length * 2, 256))
      this.#pending.copy(bigger, 0, 0, this.#used)
      this.#pending = bigger
    }
    chunk.copy(this.#pending, this.#used, from, end)
    this.#used = needed
  }
}

const ROW = 1
const PLAIN = 2

/** What each tag is; 0: neither. */
const kinds = new Uint8Array(256)
for (const tag of [backend.dataRow, backend.copyData]) kinds[tag] = ROW
const { bindComplete, commandComplete, emptyQueryResponse } = backend
const { noData, parameterDescription, rowDescription } = backend
for (const tag of [bindComplete, commandComplete, emptyQueryResponse]) kinds[tag] = PLAIN
for (const tag of [noData, parameterDescription, rowDescription]) kinds[tag] = PLAIN

const isRow = (tag: number): boolean => kinds[tag] === ROW
