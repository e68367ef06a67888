/** What a row router is told: the data, where rows belong, and who hears of them. */
import type { EngineError } from '../errors/engine-error.js'
import type { KeyPlacer } from '../sharding/key-placer.js'
import type { ShardId } from '../sharding/shard-set.js'
import type { CopyOptions } from './copy-options.js'
import type { CopyLayout } from './copy-row.js'

/**
 * Bytes for the COPY of one shard, in order: header or signature first, whole rows, the trailer last (a row of more than
 * BATCH_BYTES comes in pieces). They are the caller's, unless `lendsBatches`; those of a reference table are shared by the
 * shards: do not write to them.
 */
export type OnBatch = (shard: number, bytes: Buffer, rows: number) => void

export interface RowRouterOptions {
  readonly options: CopyOptions
  readonly layout: CopyLayout
  readonly shardCount: number
  /** Absent: a reference table, every row goes to every shard. */
  readonly placer?: KeyPlacer
  /** Where a row belongs that leaves the key to its default, or whose data has no such column; undefined: nobody knows. */
  readonly placesDefault?: (() => ShardId | undefined) | undefined
  readonly onBatch: OnBatch
  /** Batches are lent until `giveBack`, which the caller must not forget. Not of a reference table, whose shards share them. */
  readonly lendsBatches?: boolean
  /** Rows only: neither header, signature nor trailer is given out. */
  readonly isBare?: boolean
  /** By shard: so many rows of the data it has already. */
  readonly skip?: readonly number[]
  /**
   * Each row as it is taken for a shard: its length, its last line, how many lines it has to the shard's server (which may
   * count those of its first row otherwise). Before its bytes are given out.
   */
  readonly onRow?: (shard: number, length: number, line: number, lines: number) => void
  /**
   * Several rows of a shard as LineMap notes them, borrowed; each is one line. Absent while `onRow` is given: every row is told
   * by itself.
   */
  readonly onPlainRows?: (shard: number, notes: Buffer) => void
  /** Inputs of 64 kB until plain rows are taken in bulk, for which a memory is made: little data is not worth it. */
  readonly plainAfter?: number
  /** The header of text and csv that all shards get ends on this line. */
  readonly onHeader?: (line: number) => void
  /**
   * A row that cannot be placed is shown here (borrowed) and left out, instead of ending the load. Absent: the row is given to
   * the first shard and the error thrown, so that a server may find a fault of its own in it: that is what PostgreSQL would say.
   */
  readonly onBad?: (error: EngineError, row: Buffer, line: number) => void
}
