/**
 * Bytes to one client, joined into one write a tick. A run of borrowed server bytes that nothing of ours interrupts
 * is written without a copy.
 */
import { copyBytes } from '../base/copy-bytes.js'
import { type ByteSocket, WRITE_HIGH_WATER_BYTES } from '../net/byte-socket.js'

const SPARE_BYTES = 65_536
/** Memory of ours that stays for the next answer. */
const KEPT_BYTES = 512
const nothing = Buffer.alloc(0)

export class ClientOutput {
  readonly #socket: ByteSocket
  /** Borrowed range not yet written. */
  #range: Buffer | undefined
  #from = 0
  #to = 0
  #own: Buffer = nothing
  #ownUsed = 0
  bytesSent = 0

  /** Bytes that the client has not taken yet. */
  get queuedBytes(): number {
    return this.#socket.writableLength
  }

  /** The client reads slowly: what it is sent waits in memory. */
  get isBlocked(): boolean {
    return this.#socket.writableLength >= WRITE_HIGH_WATER_BYTES
  }

  constructor(socket: ByteSocket) {
    this.#socket = socket
  }

  /** Takes borrowed bytes; they are written or copied before the lender's `endOfRead` returns, if `flush` is called there. */
  forward(buffer: Buffer, start: number, end: number): void {
    if (this.#range === buffer && this.#to === start) {
      this.#to = end
      return
    }
    this.#spill()
    this.#range = buffer
    this.#from = start
    this.#to = end
  }

  /** Takes bytes of ours. */
  append(bytes: Buffer): void {
    this.#spill()
    this.#copy(bytes, 0, bytes.length)
  }

  /** Drops what was taken and not written. */
  forget(): void {
    this.#range = undefined
    this.#ownUsed = 0
  }

  /** Takes borrowed bytes and writes all that was taken; says the same as `flush`. */
  pass(buffer: Buffer, start: number, end: number): boolean {
    if (this.#ownUsed > 0 || this.#range) {
      this.forward(buffer, start, end)
      return this.flush()
    }
    this.bytesSent += end - start
    return this.#socket.write(buffer, start, end)
  }

  /** Writes all that was taken. False: the client reads slowly, wait for the socket's drain. */
  flush(): boolean {
    if (this.#ownUsed === 0) {
      const range = this.#range
      // bytes that still leave are no reason to wait, unless somebody will say when they have left
      if (!range) return !this.#socket.isFull
      this.#range = undefined
      this.bytesSent += this.#to - this.#from
      return this.#socket.write(range, this.#from, this.#to)
    }
    this.#spill()
    this.bytesSent += this.#ownUsed
    const used = this.#ownUsed
    this.#ownUsed = 0
    const isSmall = this.#own.length <= KEPT_BYTES
    if (isSmall) return this.#socket.writeCopied(this.#own, 0, used)
    // the socket may keep what it is given, so the memory is not used again
    const bytes = this.#own
    this.#own = nothing
    return this.#socket.write(bytes, 0, used)
  }

  #spill(): void {
    const range = this.#range
    if (!range) return
    this.#range = undefined
    this.#copy(range, this.#from, this.#to)
  }

  #copy(bytes: Buffer, start: number, end: number): void {
    const needed = this.#ownUsed + end - start
    if (needed > this.#own.length) {
      const size =
        needed <= 512 ? 512 : Math.max(needed, Math.min(this.#own.length * 2, SPARE_BYTES))
      const bigger = Buffer.allocUnsafeSlow(size)
      this.#own.copy(bigger, 0, 0, this.#ownUsed)
      this.#own = bigger
    }
    this.#ownUsed = copyBytes(bytes, start, end, this.#own, this.#ownUsed)
  }
}
