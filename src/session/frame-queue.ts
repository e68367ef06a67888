/** Frames of a client that wait their turn. Beyond a number of bytes the client is no longer read. */
import { RingQueue } from '../base/ring-queue.js'
import type { ByteSocket } from '../net/byte-socket.js'

export class FrameQueue {
  readonly #frames = new RingQueue<Buffer>()
  readonly #socket: ByteSocket
  readonly #highWaterBytes: number
  #bytes = 0

  constructor(socket: ByteSocket, highWaterBytes: number) {
    this.#socket = socket
    this.#highWaterBytes = highWaterBytes
  }

  get size(): number {
    return this.#frames.size
  }

  /** Keeps a copy of [start, end). */
  push(buffer: Buffer, start: number, end: number): void {
    this.#frames.push(Buffer.from(buffer.subarray(start, end)))
    this.#bytes += end - start
    if (this.#bytes > this.#highWaterBytes) this.#socket.pause()
  }

  /** The oldest; there must be one. */
  shift(): Buffer {
    const frame = this.#frames.shift() as Buffer
    const wasFull = this.#bytes > this.#highWaterBytes
    this.#bytes -= frame.length
    if (wasFull && this.#bytes <= this.#highWaterBytes) this.#socket.resume()
    return frame
  }

  clear(): void {
    this.#frames.clear()
  }
}
