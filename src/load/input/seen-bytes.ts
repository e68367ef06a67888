/** What has been read of an input that has no size and no end to look at: standard input. Resumed, it must have the same bytes. */
import { createHash } from 'node:crypto'

/** So many bytes, unpacked, with this hash. */
export interface SeenMark {
  readonly bytes: number
  readonly hash: string
}

export class SeenBytes {
  readonly #hash = createHash('sha256')
  /** What an earlier run has seen, nearest last. */
  readonly #marks: SeenMark[]
  #bytes = 0

  constructor(marks: readonly SeenMark[]) {
    this.#marks = [...marks].sort((a, b) => b.bytes - a.bytes)
  }

  /** False: an earlier run has seen other bytes. */
  take(chunk: Buffer): boolean {
    let at = 0
    for (let mark = this.#marks.at(-1); mark !== undefined; mark = this.#marks.at(-1)) {
      const end = mark.bytes - this.#bytes
      if (end > chunk.length - at) break
      this.#update(chunk.subarray(at, at + end))
      at += end
      if (this.mark().hash !== mark.hash) return false
      this.#marks.pop()
    }
    this.#update(chunk.subarray(at))
    return true
  }

  /** An earlier run has seen more. */
  get isBehind(): boolean {
    return this.#marks.length > 0
  }

  mark(): SeenMark {
    return { bytes: this.#bytes, hash: this.#hash.copy().digest('hex') }
  }

  #update(bytes: Buffer): void {
    this.#hash.update(bytes)
    this.#bytes += bytes.length
  }
}
