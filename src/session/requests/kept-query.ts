/** The message of a client's request as it came, kept until its end: another server may have to be told it again. */
import { copyBytes } from '../../base/copy-bytes.js'
import type { Unit } from '../../executor/pipeline/pipelined-client.js'

const nothing = Buffer.alloc(0)
/** One of up to so many bytes is kept in memory that the client keeps too, which starts with so many. */
const KEPT_BYTES = 4096
const FIRST_BYTES = 256

export class KeptQuery implements Unit {
  bytes: Buffer = nothing
  length = 0

  /** The message, borrowed until the next is kept. */
  get whole(): Buffer {
    return this.bytes.subarray(0, this.length)
  }

  keep(buffer: Buffer, start: number, end: number): void {
    const length = end - start
    if (length > this.bytes.length)
      this.bytes = Buffer.allocUnsafeSlow(
        length > KEPT_BYTES ? length : Math.max(FIRST_BYTES, length),
      )
    this.length = copyBytes(buffer, start, end, this.bytes, 0)
  }

  /** Its request has ended, or goes on with what `whole` gave. */
  drop(): void {
    if (this.length > KEPT_BYTES) this.bytes = nothing
  }
}
