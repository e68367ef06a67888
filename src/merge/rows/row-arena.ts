/** Memory for rows that is written once and never again: a range of it stays right for as long as somebody holds it. */

const BLOCK_BYTES = 65_536
const nothing = Buffer.alloc(0)

export class RowArena {
  /** Holds what was reserved or copied last. */
  block: Buffer = nothing
  #used = 0

  /** Room for `size` bytes in `block`; returns where it begins. */
  reserve(size: number): number {
    if (this.#used + size > this.block.length) {
      this.block = Buffer.allocUnsafeSlow(Math.max(size, BLOCK_BYTES))
      this.#used = 0
    }
    const at = this.#used
    this.#used = at + size
    return at
  }

  /** Copies bytes into `block`; returns where they begin. */
  copy(bytes: Buffer, from: number, to: number): number {
    const at = this.reserve(to - from)
    bytes.copy(this.block, at, from, to)
    return at
  }
}
