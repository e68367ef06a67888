/**
 * The door of the room: rows of several shards go in as they come, the rows of the answer come out.
 * Pure: no sockets, no timers. Who drives it pauses the shards that it names and sends what it hands out.
 */
import type { MergeProgram } from '../plan/merge-program.js'
import type { FieldDescription } from '../wire/backend-messages.js'
import { GroupRows } from './group-rows.js'
import { RowKeys } from './keys/row-keys.js'
import { LimitRows, type RowSink } from './limit-rows.js'
import { OrderedRows } from './ordered-rows.js'
import type { RowStage } from './row-stage.js'
import { SortRows } from './sort-rows.js'
import { UnorderedRows } from './unordered-rows.js'

/** A shard with more than this waiting is read no further. */
const HIGH_WATER_BYTES = 262_144
const LOW_WATER_BYTES = 65_536

export interface RowMergeOptions {
  readonly program: MergeProgram
  /** Columns of the shards' rows, hidden ones too; with the formats in which they come. */
  readonly fields: readonly FieldDescription[]
  /** How many shards answer; they are numbered from 0. */
  readonly shards: number
  readonly sink: RowSink
  /** The shard need not be read for now. */
  pause?(shard: number): void
  /** The shard that was paused is to be read again. */
  resume?(shard: number): void
}

/** By which keys rows are as good as the last one, and where those of the last one are kept. */
function tiesOf(
  program: MergeProgram,
  order: RowKeys | undefined,
  sort: RowKeys | undefined,
  shards: number,
): { keys: RowKeys; count: number; slot: number } | undefined {
  if (!program.withTies) return undefined
  if (sort) return { keys: sort, count: program.tieKeys ?? program.sort!.length, slot: 0 }
  return order && { keys: order, count: program.tieKeys ?? program.order.length, slot: shards }
}

export class RowMerge {
  readonly #limit: LimitRows
  /** What the rows of the shards come to first. */
  readonly #stage: RowStage
  readonly #source: OrderedRows | UnorderedRows
  readonly #options: RowMergeOptions
  readonly #isPaused: boolean[]
  #isComplete = false

  /** @throws MERGE_ORDER_TYPE, MERGE_COMBINE_TYPE: the program cannot be carried out with these types */
  constructor(options: RowMergeOptions) {
    const { program, fields, shards, sink } = options
    this.#options = options
    this.#isPaused = new Array(shards).fill(false)
    const keys = program.order.length > 0 ? new RowKeys(program.order, fields) : undefined
    const sort = program.sort && new RowKeys(program.sort, fields)
    const ties = tiesOf(program, keys, sort, shards)
    this.#limit = new LimitRows({
      limit: program.limit,
      offset: program.offset,
      ties,
      visible: program.visible < fields.length ? program.visible : undefined,
      sink,
    })
    const sorted = sort ? new SortRows(sort, this.#limit) : this.#limit
    this.#stage = program.unique ? new GroupRows(program, fields, keys, shards + 1, sorted) : sorted
    this.#source = keys
      ? new OrderedRows(keys, shards, this.#stage)
      : new UnorderedRows(shards, this.#stage)
    this.#isComplete = this.#limit.isFull
  }

  /** Nothing more will be sent: all shards have ended, or the limit is reached and the others may be cancelled. */
  get isComplete(): boolean {
    return this.#isComplete
  }

  /** All rows that were allowed have been sent: PortalSuspended, even when no more would come, as PostgreSQL has it. */
  get isSuspended(): boolean {
    return this.#limit.isSuspended
  }

  /** Rows sent since the last `allow`: the count of the command tag. */
  get sent(): number {
    return this.#limit.sent
  }

  /** Whole DataRow frames of one shard, borrowed until the call returns; rows that leave in the call may be ranges of them. */
  rows(shard: number, buffer: Buffer, start: number, end: number): void {
    if (this.#isComplete) return
    this.#source.push(shard, buffer, start, end)
    this.#run()
  }

  /** The shard has sent its last row. May be called twice. */
  ended(shard: number): void {
    if (this.#isComplete) return
    this.#source.ended(shard)
    this.#run()
  }

  /** Lets so many rows leave, from now on; those that wait leave at once. Infinity unless called. */
  allow(rows: number): void {
    this.#limit.allow(rows)
    this.#run()
  }

  #run(): void {
    this.#source.run()
    if (this.#limit.isFull || (this.#source.isExhausted && this.#stage.finish())) {
      this.#isComplete = true
      this.#source.clear()
    }
    this.#balance()
  }

  #balance(): void {
    for (let shard = 0; shard < this.#isPaused.length; shard++) {
      const queued = this.#source.queuedBytes(shard)
      if (this.#isPaused[shard]) {
        if (queued > LOW_WATER_BYTES && !this.#source.waitsFor(shard)) continue
        this.#isPaused[shard] = false
        this.#options.resume?.(shard)
      } else if (queued > HIGH_WATER_BYTES) {
        this.#isPaused[shard] = true
        this.#options.pause?.(shard)
      }
    }
  }
}
