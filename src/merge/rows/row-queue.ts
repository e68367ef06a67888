/**
 * Rows of one shard that wait for their turn. What is pushed is copied once, whole; the head is a range of memory of
 * our own, which is never written again.
 */
import { RingQueue } from '../../base/ring-queue.js'
import { RowArena } from './row-arena.js'
import { frameEnd } from './row-frame.js'

const nothing = Buffer.alloc(0)

interface Segment {
  readonly bytes: Buffer
  readonly start: number
  end: number
}

export class RowQueue {
  /** The head row: `bytes` from `start` to `end`; `hasHead` says that there is one. */
  bytes: Buffer = nothing
  start = 0
  end = 0
  hasHead = false
  queuedBytes = 0
  readonly #arena = new RowArena()
  readonly #waiting = new RingQueue<Segment>()
  #segmentEnd = 0

  /** Adds the whole rows of a borrowed buffer. */
  push(buffer: Buffer, start: number, end: number): void {
    if (end <= start) return
    const at = this.#arena.copy(buffer, start, end)
    const bytes = this.#arena.block
    this.queuedBytes += end - start
    this.#waiting.push({ bytes, start: at, end: at + end - start })
    if (!this.hasHead) this.#open()
  }

  /** Moves on to the next row; false when none has come yet. */
  next(): boolean {
    this.queuedBytes -= this.end - this.start
    if (this.end < this.#segmentEnd) {
      this.start = this.end
      this.end = frameEnd(this.bytes, this.start)
      return true
    }
    return this.#open()
  }

  #open(): boolean {
    const segment = this.#waiting.shift()
    this.hasHead = segment !== undefined
    if (!segment) {
      this.bytes = nothing
      this.start = 0
      this.end = 0
      this.#segmentEnd = 0
      return false
    }
    this.bytes = segment.bytes
    this.start = segment.start
    this.#segmentEnd = segment.end
    this.end = frameEnd(segment.bytes, segment.start)
    return true
  }

  clear(): void {
    this.#waiting.clear()
    this.queuedBytes = 0
    this.#open()
  }
}
