/**
 * COPY data in, one buffer of whole rows per shard out: splitter and key placer joined. Chunks, rows and per-shard buffers lie
 * in one arena. Pure: what is done with a batch is the caller's; after an error nothing more comes.
 */
import { type EngineError, engineError, isEngineError, withWhere } from '../errors/engine-error.js'
import type { KeyPlacer } from '../sharding/key-placer.js'
import { BATCH_BYTES, BatchArena } from './batch-arena.js'
import { copyWhere, type RowKey, type RowSink, type RowSplitter } from './copy-row.js'
import { firstLines } from './first-lines.js'
import { invalidUtf8 } from './key-encoding.js'
import { PlainRows } from './plain/plain-rows.js'
import type { RowRouterOptions } from './row-router-options.js'
import { makeRowSplitter } from './row-splitter.js'

/** Small messages are gathered to this much before they are split; one call of memchr then serves many rows. */
const INPUT_BYTES = 64 * 1024
const PLAIN_AFTER = 4
/** Rows in a row that were not plain, before the rest of an input is split without asking. */
const MOST_MISSES = 8
const BINARY_TRAILER = Buffer.from([0xff, 0xff])

export class RowRouter implements RowSink {
  /** Rows read; of a reference table each counts once. */
  rows = 0
  readonly rowsPerShard: number[]
  readonly bytesPerShard: number[]
  readonly #options: RowRouterOptions
  readonly #splitter: RowSplitter
  readonly #placer: KeyPlacer | undefined
  readonly #isBinary: boolean
  readonly #skipsBadKeys: boolean
  /** A lane for each shard (one for all, without a placer). */
  #arena: BatchArena
  #plain: PlainRows | undefined
  #misses = 0
  /** Inputs until plain rows are looked for; 0: that has been done. */
  #untilPlain: number
  /** Rows taken by the last `takePlain`. */
  taken = 0
  #inputLength = 0
  #view: Buffer
  /** By lane: rows in its buffer. */
  readonly #batchRows: number[]
  /** A reference table whose shards have come differently far. */
  readonly #isApart: boolean
  /** One buffer for all shards. */
  readonly #isShared: boolean
  /** By shard: its server has had neither header nor row. */
  readonly #isFresh: boolean[]
  #lastLine = 0
  /** Why the row at hand cannot be placed. */
  #fault: EngineError | undefined

  constructor(options: RowRouterOptions) {
    const { layout, placer, shardCount } = options
    if (placer !== undefined && layout.keyIndex === undefined && !knowsDefault(options))
      throw engineError('COPY_KEY_ABSENT', { table: layout.table })
    this.#options = options
    this.#placer = placer
    this.#untilPlain = options.plainAfter ?? PLAIN_AFTER
    const { keyIndex: _, ...keyless } = layout
    this.#splitter = makeRowSplitter(options.options, placer === undefined ? keyless : layout)
    this.#isBinary = options.options.format === 'binary'
    this.#skipsBadKeys = options.options.onError === 'ignore'
    this.#isApart = placer === undefined && options.skip !== undefined
    const lanes = placer === undefined && !this.#isApart ? 1 : shardCount
    this.#batchRows = Array.from({ length: lanes }, () => 0)
    this.#isShared = placer === undefined && !this.#isApart
    this.#arena = new BatchArena(
      INPUT_BYTES,
      lanes,
      options.lendsBatches === true && !this.#isShared,
    )
    this.#view = this.#arena.bytes.subarray(0, INPUT_BYTES)
    this.rowsPerShard = Array.from({ length: shardCount }, () => 0)
    this.bytesPerShard = Array.from({ length: shardCount }, () => 0)
    this.#isFresh = Array.from({ length: shardCount }, () => options.options.format === 'csv')
  }

  /** Rows end in carriage returns, so that a server that has had one row only waits for the next byte. */
  get endsInReturn(): boolean {
    return this.#splitter.endsInReturn
  }

  /** Line of the row last read, for messages. */
  get line(): number {
    return this.#splitter.line
  }

  /** Feeds bytes of any length, borrowed for the call. May call `onBatch`. @throws the splitter's or the placer's error, with `COPY table, line N` as its CONTEXT */
  push(chunk: Buffer): void {
    let from = 0
    while (from < chunk.length) {
      const to = Math.min(chunk.length, from + INPUT_BYTES - this.#inputLength)
      chunk.copy(this.#arena.bytes, this.#inputLength, from, to)
      this.#inputLength += to - from
      from = to
      if (this.#inputLength === INPUT_BYTES) this.#splitInput()
    }
  }

  /** The data is complete: gives out the last rows and all that is buffered. */
  finish(): void {
    this.#splitInput()
    this.#orFlush(() => this.#splitter.finish(this))
    if (this.#isBinary && this.#options.isBare !== true) this.#appendToAll(BINARY_TRAILER, 0, 2)
    this.flush()
  }

  /** The next row of each shard is the first of a COPY: whoever gets bare rows begins more than one. */
  beginAnew(): void {
    this.#isFresh.fill(this.#options.options.format === 'csv')
    this.#plain?.beginAnew(this.line)
  }

  /** Gives out what is buffered, also when it is little. */
  flush(): void {
    for (let lane = 0; lane < this.#arena.lanes; lane++) this.#handOut(lane)
  }

  /** A lent batch is used up. */
  giveBack(batch: Buffer): void {
    this.#arena.giveBack(batch)
  }

  /** For the splitter. */
  header(bytes: Buffer, start: number, end: number): void {
    this.#lastLine = this.line
    if (this.#options.isBare === true) return
    this.#isFresh.fill(false)
    if (!this.#isBinary) this.#options.onHeader?.(this.line)
    this.#appendToAll(bytes, start, end)
  }

  /** For the splitter. */
  takePlain(at: number, end: number, line: number): number {
    const plain = this.#plain
    if (plain === undefined || this.#misses > MOST_MISSES) return at
    const to = plain.take(at, end, line)
    this.#misses = to > at ? 0 : this.#misses + 1
    this.taken = 0
    for (let lane = 0; to > at && lane < this.#arena.lanes; lane++) {
      const notes = plain.notes(lane)
      if (notes === undefined) continue
      this.#batchRows[lane] = (this.#batchRows[lane] as number) + notes.length
      this.taken += notes.length
      this.#options.onPlainRows?.(lane, notes)
    }
    this.rows += this.taken
    this.#lastLine = line + this.taken
    return to
  }

  /** For the splitter: a row that has no key. */
  bad(error: EngineError, bytes: Buffer, start: number, end: number, line: number): void {
    if (this.#options.onBad !== undefined) return this.#reject(error, bytes, start, end, line)
    this.rows++
    this.#take(0, bytes, start, end, line, line - this.#lastLine)
    this.#lastLine = line
    // ON_ERROR ignore: a server skips the row when a column before the key is at fault, and else says what we would.
    if (!this.#skipsBadKeys || error.code !== 'COPY_MISSING_DATA') throw error
  }

  /** For the splitter. */
  row(bytes: Buffer, start: number, end: number, key: RowKey): void {
    const lane = this.#placer === undefined ? 0 : this.#place(key, bytes, start, end)
    if (lane < 0) return
    this.rows++
    const lines = key.line - this.#lastLine
    this.#lastLine = key.line
    const last = this.#isApart ? this.#arena.lanes - 1 : lane
    for (let to = lane; to <= last; to++) this.#take(to, bytes, start, end, key.line, lines)
    if (this.#fault !== undefined) throw this.#fault
  }

  /** For the splitter. A server reads a row piece by piece, and may find another fault before this one. */
  broken(bytes: Buffer, start: number, end: number, line: number): void {
    if (this.#options.onBad === undefined)
      this.#take(0, bytes, start, end, line, line - this.#lastLine)
  }

  #take(
    lane: number,
    bytes: Buffer,
    start: number,
    end: number,
    line: number,
    lines: number,
  ): void {
    const { skip, onRow } = this.#options
    if (skip !== undefined && this.rows <= (skip[lane] as number)) return
    this.#plain?.setLine(lane, line)
    if (onRow !== undefined) {
      const counted =
        this.#isFresh[lane] === true ? this.#firstLines(lane, bytes, start, end) : lines
      this.#tell(onRow, lane, end - start, line, counted)
    }
    if (this.#append(lane, bytes, start, end))
      this.#batchRows[lane] = (this.#batchRows[lane] as number) + 1
  }

  #tell(
    onRow: NonNullable<RowRouterOptions['onRow']>,
    lane: number,
    length: number,
    line: number,
    lines: number,
  ): void {
    onRow(lane, length, line, lines)
    if (!this.#isShared) return
    for (let shard = lane + 1; shard < this.#options.shardCount; shard++)
      onRow(shard, length, line, lines)
  }

  #firstLines(lane: number, bytes: Buffer, start: number, end: number): number {
    this.#isFresh[lane] = false
    const { layout, options } = this.#options
    return firstLines(options, layout, [bytes.subarray(start, end)])
  }

  #reject(error: EngineError, bytes: Buffer, start: number, end: number, line: number): void {
    this.rows++
    this.#lastLine = line
    this.#options.onBad?.(error, bytes.subarray(start, end), line)
  }

  #splitInput(): void {
    const length = this.#inputLength
    if (length === 0) return
    this.#inputLength = 0
    this.#misses = 0
    if (this.#untilPlain > 0) this.#lookForPlain(length)
    if (this.#view.length !== length) this.#view = this.#arena.bytes.subarray(0, length)
    this.#orFlush(() => this.#splitter.push(this.#view, this))
  }

  /** Moves into a memory where plain rows are taken, when this data has such rows and there is much of it. */
  #lookForPlain(length: number): void {
    const { layout, lendsBatches, onPlainRows, onRow, options, skip } = this.#options
    const isBehind = skip?.some((rows) => this.rows < rows) === true
    if (this.#placer === undefined || isBehind || --this.#untilPlain > 0) return
    if (onRow !== undefined && onPlainRows === undefined) return
    const lends = lendsBatches === true
    const { lanes } = this.#arena
    const request = { options, layout, placer: this.#placer, lanes, inputBytes: INPUT_BYTES, lends }
    this.#plain = PlainRows.open(request)
    if (this.#plain === undefined) return
    this.flush()
    const input = this.#arena.bytes
    this.#arena = new BatchArena(INPUT_BYTES, lanes, lends, this.#plain.memory)
    input.copy(this.#arena.bytes, 0, 0, length)
    this.#view = this.#arena.bytes.subarray(0, length)
    this.#plain.beginAnew(this.line)
  }

  /** Rows before a fault are handed out: a server may find an earlier fault in them. */
  #orFlush(run: () => void): void {
    try {
      run()
    } catch (error) {
      this.flush()
      throw error
    }
  }

  #place(key: RowKey, bytes: Buffer, start: number, end: number): number {
    const placer = this.#placer as KeyPlacer
    try {
      if (key.kind === 'value')
        return this.#isBinary
          ? placer.ofBinary(key.bytes, key.start, key.end)
          : placer.ofText(key.bytes, key.start, key.end)
      if (key.kind === 'null') return placer.ofNull()
      const shard = this.#options.placesDefault?.()
      if (shard === undefined) throw engineError('COPY_KEY_DEFAULT')
      return shard
    } catch (error) {
      return this.#misplaced(error, key, bytes, start, end)
    }
  }

  /** −1: the row was rejected; 0: it is given to the first shard, which skips it or shows its fault. */
  #misplaced(error: unknown, key: RowKey, bytes: Buffer, start: number, end: number): number {
    if (!isEngineError(error)) throw error
    const fault = this.#faultOf(error, key, bytes, start, end)
    if (fault === undefined) return 0
    if (this.#options.onBad === undefined) this.#fault = fault
    else this.#reject(fault, bytes, start, end, key.line)
    return this.#fault === undefined ? -1 : 0
  }

  /** PostgreSQL counts a row's columns before it reads any of them. Undefined: ON_ERROR ignore, any shard will skip a key that cannot be read. */
  #faultOf(
    error: EngineError,
    key: RowKey,
    bytes: Buffer,
    start: number,
    end: number,
  ): EngineError | undefined {
    const { layout } = this.#options
    const where = copyWhere(layout.table, key.line)
    if (this.#splitter.hasExtraColumns(bytes, start, end))
      return engineError('COPY_EXTRA_DATA', undefined, { where })
    const invalid = this.#isBinary ? undefined : invalidUtf8(key.bytes.subarray(key.start, key.end))
    if (invalid !== undefined)
      return engineError('COPY_INVALID_BYTES', { bytes: invalid }, { where })
    const isData = error.sqlstate.startsWith('22')
    if (this.#skipsBadKeys && isData) return undefined
    if (!isData || this.#isBinary) return withWhere(error, where)
    const column = layout.columns[layout.keyIndex as number]
    const text = key.bytes.toString('utf8', key.start, Math.min(key.end, key.start + 400))
    return withWhere(error, copyWhere(layout.table, key.line, column, text))
  }

  /** False: the bytes were too long to be buffered and have been handed out, as one row. */
  #append(lane: number, bytes: Buffer, start: number, end: number): boolean {
    const length = end - start
    if (!this.#arena.hasRoom(lane, length)) {
      this.#handOut(lane)
      if (length > BATCH_BYTES) {
        this.#giveWhole(lane, bytes, start, end)
        return false
      }
    }
    if (bytes === this.#view) this.#arena.move(lane, start, end)
    else this.#arena.copy(lane, bytes, start, end)
    return true
  }

  #appendToAll(bytes: Buffer, start: number, end: number): void {
    for (let lane = 0; lane < this.#arena.lanes; lane++) this.#append(lane, bytes, start, end)
  }

  #giveWhole(lane: number, bytes: Buffer, start: number, end: number): void {
    for (let from = start; from < end; from += BATCH_BYTES) {
      const to = Math.min(end, from + BATCH_BYTES)
      const piece = Buffer.allocUnsafeSlow(to - from)
      bytes.copy(piece, 0, from, to)
      this.#give(lane, piece, to === end ? 1 : 0)
    }
  }

  #handOut(lane: number): void {
    const bytes = this.#arena.take(lane)
    if (bytes === undefined) return
    this.#give(lane, bytes, this.#batchRows[lane] as number)
    this.#batchRows[lane] = 0
  }

  #give(lane: number, bytes: Buffer, rows: number): void {
    const { onBatch, shardCount } = this.#options
    const last = this.#isShared ? shardCount - 1 : lane
    for (let shard = lane; shard <= last; shard++) {
      this.rowsPerShard[shard] = (this.rowsPerShard[shard] as number) + rows
      this.bytesPerShard[shard] = (this.bytesPerShard[shard] as number) + bytes.length
      onBatch(shard, bytes, rows)
    }
  }
}

/** True, too, when the default is a value that lies on no shard: its rows will say so. */
function knowsDefault({ placesDefault }: RowRouterOptions): boolean {
  try {
    return placesDefault?.() !== undefined
  } catch {
    return true
  }
}

/** A router of COPY data to the shards of one table. @throws COPY_KEY_ABSENT when there is a placer and the columns lack the key */
export const makeRowRouter = (options: RowRouterOptions): RowRouter => new RowRouter(options)
