/** Which rows to send next when some of a batch are at fault: pieces that shrink with each fault and grow without. Pure. */
import type { EngineError } from '../../errors/engine-error.js'

export interface BadRow {
  readonly row: number
  readonly error: EngineError
}

/** Fewer rows a piece cost more in round trips than they save in rows sent twice. */
const LEAST_ROWS = 128
export const MOST_ROWS = 1 << 20

export class Bisection {
  readonly bad: BadRow[] = []
  /** Rows a piece. */
  pieceRows: number
  readonly #count: number
  /** Ends of pieces that faults have made, nearest last. */
  readonly #ends: number[] = []
  #suspect: BadRow | undefined
  #at = 0
  #end = 0

  constructor(count: number, pieceRows: number) {
    this.#count = count
    this.pieceRows = pieceRows
  }

  /** The rows to try, or undefined at the end. */
  next(): { from: number; to: number } | undefined {
    if (this.#suspect?.row === this.#at) {
      this.bad.push(this.#suspect)
      this.#suspect = undefined
      this.#at++
    }
    while ((this.#ends.at(-1) ?? Number.POSITIVE_INFINITY) <= this.#at) this.#ends.pop()
    if (this.#at >= this.#count) return undefined
    this.#end = Math.min(this.#ends.at(-1) ?? this.#at + this.pieceRows, this.#count)
    return { from: this.#at, to: this.#end }
  }

  succeeded(): void {
    // Only a piece of full length says that faults have become rare.
    if (this.#end - this.#at >= this.pieceRows)
      this.pieceRows = Math.min(this.pieceRows * 2, MOST_ROWS)
    this.#at = this.#end
  }

  /** `named`: the row that the server spoke of; `isSure`: it needs no trial of its own. */
  failed(error: EngineError, named: number | undefined, isSure: boolean): void {
    const rows = this.#end - this.#at
    const row = named === undefined || named < this.#at || named >= this.#end ? undefined : named
    // The next fault is likely to be as far away as this one was.
    const near = row === undefined ? rows >> 1 : Math.min(row - this.#at, rows >> 1)
    this.pieceRows = Math.max(LEAST_ROWS, Math.min(this.pieceRows, near))
    if (rows === 1) this.#suspect = { row: this.#at, error }
    else if (row === undefined) this.#ends.push(this.#at + (rows >> 1))
    else if (isSure) {
      this.#suspect = { row, error }
      if (row > this.#at) this.#ends.push(row)
    } else this.#ends.push(row === this.#at ? row + ((rows + 1) >> 1) : row)
  }
}
