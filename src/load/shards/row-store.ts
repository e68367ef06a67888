/** The rows of one batch for one shard, to be sent again: their bytes, and where each stands in the file. */

const FIRST_ROWS = 1024

export class RowStore {
  /** Rows taken. */
  count = 0
  /** By row: where its bytes end, the line of the file that it ends on, the lines it has. */
  #ends = new Float64Array(FIRST_ROWS)
  #lines = new Float64Array(FIRST_ROWS)
  #lineCounts = new Uint32Array(FIRST_ROWS)
  #ordinals = new Float64Array(FIRST_ROWS)
  #pieces: Buffer[] = []
  /** By piece: where it begins. */
  #begins: number[] = []
  #length = 0

  /** `ordinal`: which row of its part, from 1. */
  take(length: number, line: number, lines: number, ordinal: number): void {
    if (this.count === this.#ends.length) this.#grow()
    const before = this.count === 0 ? 0 : (this.#ends[this.count - 1] as number)
    this.#ends[this.count] = before + length
    this.#lines[this.count] = line
    this.#lineCounts[this.count] = lines
    this.#ordinals[this.count] = ordinal
    this.count++
  }

  /** Bytes of rows that were taken, in order; kept, not copied. */
  keep(bytes: Buffer): void {
    this.#begins.push(this.#length)
    this.#pieces.push(bytes)
    this.#length += bytes.length
  }

  clear(): void {
    this.count = 0
    this.#pieces = []
    this.#begins = []
    this.#length = 0
  }

  /** Line of the file on which a row ends. */
  lineOf(row: number): number {
    return this.#lines[row] as number
  }

  ordinalOf(row: number): number {
    return this.#ordinals[row] as number
  }

  /**
   * The row that a server means by `line`, when it got the rows from `from` on. `countLines` counts those of a row that comes
   * first: as long as PostgreSQL has seen no line end, it does not count newlines inside quotes.
   */
  rowAt(from: number, line: number, countLines: (row: Buffer[]) => number): number | undefined {
    let seen = 0
    for (let row = from; row < this.count; row++) {
      seen +=
        row === from ? countLines(this.bytesOf(row, row + 1)) : (this.#lineCounts[row] as number)
      if (seen >= line) return row
    }
    return undefined
  }

  /** Bytes of the rows from…to. */
  bytesOf(from: number, to: number): Buffer[] {
    let at = from === 0 ? 0 : (this.#ends[from - 1] as number)
    const end = to === 0 ? 0 : (this.#ends[to - 1] as number)
    const parts: Buffer[] = []
    for (let piece = this.#pieceAt(at); at < end; piece++) {
      const bytes = this.#pieces[piece] as Buffer
      const begin = this.#begins[piece] as number
      const until = Math.min(end, begin + bytes.length)
      parts.push(bytes.subarray(at - begin, until - begin))
      at = until
    }
    return parts
  }

  #pieceAt(offset: number): number {
    let low = 0
    let high = this.#begins.length - 1
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if ((this.#begins[middle] as number) <= offset) low = middle
      else high = middle - 1
    }
    return low
  }

  #grow(): void {
    const size = this.#ends.length * 2
    const ends = new Float64Array(size)
    const lines = new Float64Array(size)
    const lineCounts = new Uint32Array(size)
    ends.set(this.#ends)
    lines.set(this.#lines)
    lineCounts.set(this.#lineCounts)
    const ordinals = new Float64Array(size)
    ordinals.set(this.#ordinals)
    this.#ordinals = ordinals
    this.#ends = ends
    this.#lines = lines
    this.#lineCounts = lineCounts
  }
}
