/**
 * The memory of a row router: the bytes that are split, and one buffer of rows a lane, all in one allocation, because a move
 * inside one typed array (copyWithin) is the only copy in JavaScript that costs no allocation. Full buffers are copied out, or
 * lent: then the lane goes on in a spare one, so that rows are moved once and no fresh memory is touched.
 */

/** What pg-copy-streams and servers take at full speed. */
export const BATCH_BYTES = 128 * 1024

/** How much memory an arena takes. */
export const arenaBytes = (inputBytes: number, lanes: number, lends: boolean): number =>
  inputBytes + (lends ? 2 * lanes + 2 : lanes) * BATCH_BYTES

/** Where an arena lies when others look into it, too. */
export interface ArenaMemory {
  readonly bytes: Buffer
  /** By lane: how far its buffer is filled, and where it ends. */
  readonly fills: Int32Array
  readonly limits: Int32Array
}

export class BatchArena {
  /** What is split next: the first bytes of the memory. */
  readonly bytes: Buffer
  readonly #inputBytes: number
  /** By lane: where its buffer begins, how far it is filled, where it ends. */
  readonly #begins: number[]
  readonly #fills: Int32Array
  readonly #limits: Int32Array
  /** Where buffers begin that nobody uses. */
  readonly #spare: number[]

  /** `lends`: full buffers are lent, and as many are spare as there are lanes and two more. */
  constructor(inputBytes: number, lanes: number, lends: boolean, memory?: ArenaMemory) {
    const spare = lends ? lanes + 2 : 0
    const place = (index: number) => inputBytes + index * BATCH_BYTES
    this.#inputBytes = inputBytes
    this.#begins = Array.from({ length: lanes }, (_, lane) => place(lane))
    this.#fills = memory?.fills ?? new Int32Array(lanes)
    this.#limits = memory?.limits ?? new Int32Array(lanes)
    for (const [lane, begin] of this.#begins.entries()) this.#begin(lane, begin)
    this.#spare = Array.from({ length: spare }, (_, index) => place(lanes + index))
    this.bytes = memory?.bytes ?? Buffer.allocUnsafeSlow(arenaBytes(inputBytes, lanes, lends))
  }

  get lanes(): number {
    return this.#begins.length
  }

  hasRoom(lane: number, length: number): boolean {
    return (this.#fills[lane] as number) + length <= (this.#limits[lane] as number)
  }

  /** Adds bytes of the input, at their place in it. */
  move(lane: number, start: number, end: number): void {
    const at = this.#fills[lane] as number
    this.bytes.copyWithin(at, start, end)
    this.#fills[lane] = at + end - start
  }

  /** Adds bytes of another buffer. */
  copy(lane: number, from: Buffer, start: number, end: number): void {
    const at = this.#fills[lane] as number
    from.copy(this.bytes, at, start, end)
    this.#fills[lane] = at + end - start
  }

  /** What a lane has, which begins anew: lent when a buffer is spare, else a copy. Undefined: nothing. */
  take(lane: number): Buffer | undefined {
    const begin = this.#begins[lane] as number
    const end = this.#fills[lane] as number
    if (end === begin) return undefined
    const spare = this.#spare.pop()
    const next = spare ?? begin
    this.#begin(lane, next)
    if (spare !== undefined) return this.bytes.subarray(begin, end)
    const bytes = Buffer.allocUnsafeSlow(end - begin)
    this.bytes.copy(bytes, 0, begin, end)
    return bytes
  }

  /** The reader of a batch needs it no more. Of one that was not lent nothing happens. */
  giveBack(batch: Buffer): void {
    if (batch.buffer === this.bytes.buffer)
      this.#spare.push(this.#placeOf(batch.byteOffset - this.bytes.byteOffset))
  }

  #begin(lane: number, at: number): void {
    this.#begins[lane] = at
    this.#fills[lane] = at
    this.#limits[lane] = at + BATCH_BYTES
  }

  #placeOf(offset: number): number {
    const index = Math.floor((offset - this.#inputBytes) / BATCH_BYTES)
    return this.#inputBytes + index * BATCH_BYTES
  }
}
