/**
 * COPY TO STDOUT of several servers as one: one CopyOutResponse before the first row, one header or signature, rows as they
 * come, one trailer and one CopyDone after the last. A server sends the header line as a CopyData of its own; the binary
 * signature stands before its first row (or its trailer), in the same CopyData.
 * @see PostgreSQL documentation, "COPY Operations" and the file formats of COPY
 */
import { backend } from '../wire/tags.js'
import type { RelayOutput } from './relay.js'

/** Signature, flags, length of the extension. */
const FIXED_BYTES = 19
const FRAME_BYTES = 5

/** What a server has sent of its answer. */
export interface CopyOutPart {
  /** Its header or signature came. */
  hasBegun: boolean
}

export class CopyOutMerge {
  readonly #output: RelayOutput
  readonly #hasHeader: boolean
  #left: number
  #isOpen = false
  #isBinary = false
  #isHeaded = false
  #trailer: Buffer | undefined

  constructor(output: RelayOutput, hasHeader: boolean, parts: number) {
    this.#output = output
    this.#hasHeader = hasHeader
    this.#left = parts
  }

  /** CopyOutResponse. */
  opened(buffer: Buffer, start: number, end: number): void {
    if (this.#isOpen) return
    this.#isOpen = true
    this.#isBinary = buffer[start + FRAME_BYTES] === 1
    this.#output.forward(buffer, start, end)
  }

  /** Whole CopyData frames. */
  rows(part: CopyOutPart, buffer: Buffer, start: number, end: number): void {
    let from = start
    if (!part.hasBegun && (this.#isBinary || this.#hasHeader)) {
      part.hasBegun = true
      from = frameEnd(buffer, start)
      if (this.#isBinary) this.#signature(buffer, start, from)
      else if (!this.#isHeaded) this.#output.forward(buffer, start, from)
      this.#isHeaded = true
    }
    if (from === end) return
    if (this.#isBinary) this.#binaryRows(buffer, from, end)
    else this.#output.forward(buffer, from, end)
  }

  /** CopyDone of a server. */
  done(buffer: Buffer, start: number, end: number): void {
    if (--this.#left > 0) return
    if (this.#trailer !== undefined) this.#output.append(this.#trailer)
    this.#output.forward(buffer, start, end)
  }

  /** The first frame of a server: the signature, and the row or trailer behind it. */
  #signature(buffer: Buffer, start: number, end: number): void {
    const body = start + FRAME_BYTES
    const extension = buffer.readInt32BE(body + FIXED_BYTES - 4)
    const head = body + FIXED_BYTES + extension
    if (!this.#isHeaded) this.#output.append(copyData(buffer.subarray(body, head)))
    const row = copyData(buffer.subarray(head, end))
    if (isTrailer(row, 0)) this.#trailer = row
    else if (head < end) this.#output.append(row)
  }

  /** All but the trailer, which is the last frame of a server. */
  #binaryRows(buffer: Buffer, start: number, end: number): void {
    let at = start
    let until = end
    while (at < end) {
      if (isTrailer(buffer, at)) {
        this.#trailer ??= Buffer.from(buffer.subarray(at, frameEnd(buffer, at)))
        until = at
        break
      }
      at = frameEnd(buffer, at)
    }
    if (until > start) this.#output.forward(buffer, start, until)
  }
}

const frameEnd = (buffer: Buffer, at: number): number => at + 1 + buffer.readInt32BE(at + 1)

/** A CopyData that holds the field count −1 and no more. */
const isTrailer = (buffer: Buffer, at: number): boolean =>
  buffer.readInt32BE(at + 1) === 6 && buffer.readInt16BE(at + FRAME_BYTES) === -1

function copyData(body: Buffer): Buffer {
  const frame = Buffer.allocUnsafe(body.length + FRAME_BYTES)
  frame[0] = backend.copyData
  frame.writeInt32BE(body.length + 4, 1)
  body.copy(frame, FRAME_BYTES)
  return frame
}
