/**
 * Frames from a byte stream, protocol 3.x, after startup. Pure: no socket, no timers.
 *
 *   Byte1 tag · Int32 length (counts itself, not the tag) · body
 *
 * Grows with the bytes that arrived, never with the length that was claimed.
 */
import { engineError } from '../errors/engine-error.js'
import { MAX_BODY_BYTES } from './tags.js'

/**
 * One whole frame: `buffer[start]` is the tag, the body is `[start + 5, end)`.
 * Borrowed: the memory is overwritten after the call returns.
 */
export type OnFrame = (tag: number, buffer: Buffer, start: number, end: number) => void

/** What most readers hold at most times. */
const nothing = Buffer.alloc(0)

export class FrameReader {
  readonly #onFrame: OnFrame
  readonly #maxBodyBytes: number
  #pending: Buffer = nothing
  #used = 0

  constructor(onFrame: OnFrame, maxBodyBytes: number = MAX_BODY_BYTES) {
    this.#onFrame = onFrame
    this.#maxBodyBytes = maxBodyBytes
  }

  /** Bytes of an unfinished frame held back. */
  get pendingBytes(): number {
    return this.#used
  }

  /**
   * Feeds bytes; calls `onFrame` once per whole frame, in order, before returning. `chunk` is borrowed.
   * @throws WIRE_FRAME_LENGTH, WIRE_FRAME_TOO_LONG; the reader is then unusable
   */
  push(chunk: Buffer): void {
    if (this.#used === 0) {
      const rest = this.#walk(chunk, 0, chunk.length)
      if (rest < chunk.length) this.#keep(chunk, rest)
      return
    }
    this.#keep(chunk, 0)
    const end = this.#used
    const held = this.#pending
    const rest = this.#walk(held, 0, end)
    if (rest > 0) {
      held.copyWithin(0, rest, end)
      this.#used = end - rest
      if (this.#used === 0 && held.length > 8192) this.#pending = nothing
    }
  }

  #walk(buffer: Buffer, from: number, end: number): number {
    let at = from
    while (end - at >= 5) {
      const tag = buffer[at] as number
      const length = frameLength(buffer, at, this.#maxBodyBytes)
      if (end - at < length + 1) break
      this.#onFrame(tag, buffer, at, at + length + 1)
      at += length + 1
    }
    return at
  }

  #keep(chunk: Buffer, from: number): void {
    const needed = this.#used + chunk.length - from
    if (needed > this.#pending.length) {
      const bigger = Buffer.allocUnsafeSlow(Math.max(needed, this.#pending.length * 2, 512))
      this.#pending.copy(bigger, 0, 0, this.#used)
      this.#pending = bigger
    }
    chunk.copy(this.#pending, this.#used, from)
    this.#used = needed
  }
}

/**
 * The Int32 length of the frame whose tag stands at `at`, checked against 4 and the limit.
 * @throws WIRE_FRAME_LENGTH, WIRE_FRAME_TOO_LONG
 */
export function frameLength(buffer: Buffer, at: number, maxBodyBytes: number): number {
  const length =
    ((buffer[at + 1] as number) << 24) |
    ((buffer[at + 2] as number) << 16) |
    ((buffer[at + 3] as number) << 8) |
    (buffer[at + 4] as number)
  if (length < 4) {
    throw engineError('WIRE_FRAME_LENGTH', { tag: tagName(buffer[at] as number), length })
  }
  if (length - 4 > maxBodyBytes) {
    throw engineError('WIRE_FRAME_TOO_LONG', {
      tag: tagName(buffer[at] as number),
      length,
      limit: maxBodyBytes,
    })
  }
  return length
}

/** A tag as it can be printed: its letter, else its code in hex. */
export function tagName(tag: number): string {
  return tag > 0x20 && tag < 0x7f ? String.fromCharCode(tag) : `0x${tag.toString(16)}`
}
