/**
 * Rows on their way to a client, put together into blocks: rows of several servers come in small ranges of different
 * buffers, and an output that takes each by itself would copy what it has again and again.
 */
import type { RelayOutput } from './relay.js'

const BLOCK_BYTES = 65_536

export class RowBlocks {
  readonly #output: Pick<RelayOutput, 'forward' | 'flush'>
  /** Never written again below `#used`: the output may keep what it was given. */
  #block = Buffer.alloc(0)
  #given = 0
  #used = 0

  constructor(output: Pick<RelayOutput, 'forward' | 'flush'>) {
    this.#output = output
  }

  /** Takes a row; its bytes are copied. */
  forward(buffer: Buffer, start: number, end: number): void {
    const size = end - start
    if (this.#used + size > this.#block.length) {
      this.give()
      this.#output.flush()
      this.#block = Buffer.allocUnsafeSlow(Math.max(size, BLOCK_BYTES))
      this.#given = 0
      this.#used = 0
    }
    buffer.copy(this.#block, this.#used, start, end)
    this.#used += size
  }

  /** Hands what was taken on to the output. */
  give(): void {
    if (this.#used > this.#given) this.#output.forward(this.#block, this.#given, this.#used)
    this.#given = this.#used
  }
}
