/** OFFSET, LIMIT, WITH TIES, and the row limit of a portal; then hidden columns are cut off and the row leaves. */
import type { RowKeys } from './keys/row-keys.js'
import type { RowStage } from './row-stage.js'
import { RowArena } from './rows/row-arena.js'
import { endOfFields, ROW_HEADER_BYTES, writeRowHeader } from './rows/row-frame.js'

/** Takes rows: either borrowed ones of the call that brought them in, or memory that is never written again. */
export interface RowSink {
  forward(buffer: Buffer, start: number, end: number): void
}

export interface LimitOptions {
  readonly limit: bigint | null
  readonly offset: bigint
  /** How many keys make a tie, and the keys themselves; undefined: WITH TIES was not said. */
  readonly ties:
    | { readonly keys: RowKeys; readonly count: number; readonly slot: number }
    | undefined
  /** Columns that the client sees; undefined: all. */
  readonly visible: number | undefined
  readonly sink: RowSink
}

export class LimitRows implements RowStage {
  isFull: boolean
  takes: boolean
  /** Rows sent since the last `allow`. */
  sent = 0
  #allowed = Number.POSITIVE_INFINITY
  #skip: number
  #left: number
  #inTies = false
  readonly #options: LimitOptions
  readonly #arena = new RowArena()

  constructor(options: LimitOptions) {
    this.#options = options
    // more rows than a double counts never come
    this.#skip = Number(options.offset)
    this.#left = options.limit === null ? Number.POSITIVE_INFINITY : Number(options.limit)
    this.isFull = this.#left <= 0
    this.takes = !this.isFull
  }

  get isSuspended(): boolean {
    return this.sent >= this.#allowed
  }

  /** From now on so many rows may be sent. */
  allow(rows: number): void {
    this.sent = 0
    this.#allowed = rows
    this.takes = !this.isFull && rows > 0
  }

  row(bytes: Buffer, start: number, end: number, slot: number): void {
    if (this.#inTies && !this.#isTie(slot)) return this.#close()
    if (this.#skip > 0) {
      this.#skip--
      return
    }
    this.#send(bytes, start, end)
    if (++this.sent >= this.#allowed) this.takes = false
    if (!this.#inTies && --this.#left <= 0) this.#reached(slot)
  }

  #reached(slot: number): void {
    const { ties } = this.#options
    if (!ties) return this.#close()
    ties.keys.keep(slot, ties.slot)
    this.#inTies = true
  }

  #isTie(slot: number): boolean {
    const ties = this.#options.ties!
    return ties.keys.sameFirst(ties.count, slot, ties.slot)
  }

  #close(): void {
    this.isFull = true
    this.takes = false
  }

  #send(bytes: Buffer, start: number, end: number): void {
    const { visible, sink } = this.#options
    if (visible === undefined) return sink.forward(bytes, start, end)
    const cut = endOfFields(bytes, start, end, visible)
    const size = cut - start
    const at = this.#arena.reserve(size)
    const { block } = this.#arena
    bytes.copy(block, at + ROW_HEADER_BYTES, start + ROW_HEADER_BYTES, cut)
    writeRowHeader(block, at, at + size, visible)
    sink.forward(block, at, at + size)
  }

  finish(): boolean {
    return true
  }
}
