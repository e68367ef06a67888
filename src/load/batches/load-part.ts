/**
 * One part of a load: its rows in batches, each a transaction on every shard that holds the rows and how far they go. Batches
 * follow one another; of each, the shards commit on their own, so that after a crash they may stand one batch apart.
 */
import type { CopyLayout } from '../../copy/copy-row.js'
import { firstFault, type LineFault, ownFault } from '../../copy/line-map.js'
import { makeRowRouter, type RowRouter } from '../../copy/row-router.js'
import { type EngineError, engineError, toEngineError } from '../../errors/engine-error.js'
import { SeenBytes } from '../input/seen-bytes.js'
import { placeOwnError, placeServerError, serverLine } from '../load-failure.js'
import type { LaneOptions } from '../request/lane-options.js'
import { type BatchShard, type Framing, isRowFault } from '../shards/batch-shard.js'
import type { BadRow } from '../shards/bisection.js'
import type { Checkpoints, PartState } from './checkpoints.js'
import type { JobPart } from './copy-job.js'
import { placesDefault } from './part-data.js'
import type { Reject, RejectFile } from './reject-file.js'

export interface PartContext {
  readonly lane: LaneOptions
  readonly checkpoints: Checkpoints
  readonly shards: readonly BatchShard[]
  /** Absent: the first row at fault ends the load. */
  readonly rejects?: RejectFile
  readonly mostBatchBytes: number
  /** Rows that a shard has committed, its bytes. */
  readonly onCommitted: (shard: number, rows: number, bytes: number) => void
}

export interface PartData {
  readonly part: JobPart
  readonly state: PartState
  readonly layout: CopyLayout
  readonly options: LaneOptions['options']
  readonly framing: Framing
  readonly chunks: AsyncGenerator<Buffer>
}

const LEAST_BATCH_BYTES = 1 << 20

export class PartLoad {
  readonly #context: PartContext
  readonly #data: PartData
  readonly #router: RowRouter
  /** Where each shard's checkpoint stands. */
  readonly #lastRow: number[]
  readonly #sentBytes: number[]
  /** Of what can be read but once. */
  readonly #seen: SeenBytes | undefined
  #unplaced: Reject[] = []
  #isOpen = false
  #bytes = 0
  #batchBytes: number
  /** False: the last batch had rows at fault, so the next is not sent before it is complete. */
  #streams = true

  constructor(context: PartContext, data: PartData) {
    this.#context = context
    this.#data = data
    this.#lastRow = [...data.state.lastRow]
    this.#sentBytes = context.shards.map(() => 0)
    this.#batchBytes = context.mostBatchBytes
    if (data.part.identity.size === undefined) this.#seen = new SeenBytes(data.state.seen)
    this.#router = this.#openRouter()
  }

  /** Rows of the part. @throws the failure with file and line; the batch at hand is rolled back */
  async run(): Promise<number> {
    const { lane, shards } = this.#context
    try {
      for await (const chunk of this.#data.chunks) {
        if (lane.signal.aborted) throw engineError('INTERRUPTED', { what: 'copy-shard' })
        if (this.#seen?.take(chunk) === false) throw this.#changed()
        await this.#split(() => this.#router.push(chunk), chunk.length)
        await lane.pace(chunk.length)
        if (this.#bytes >= this.#batchBytes && this.#seen?.isBehind !== true) await this.#endBatch()
      }
      if (this.#seen?.isBehind === true) throw this.#changed()
      await this.#split(() => this.#router.finish(), 0)
      await this.#endBatch()
      return this.#router.rows
    } catch (error) {
      await Promise.all(shards.map((shard) => shard.rollback()))
      throw error
    } finally {
      await this.#data.chunks.return(undefined)
    }
  }

  #changed(): EngineError {
    const { identity } = this.#data.part
    const { schema, name } = this.#context.lane.table
    return engineError('COPY_RESUME_OTHER', {
      table: `${schema}.${name}`,
      what: `"${identity.name}" has other bytes than before`,
    })
  }

  #openRouter(): RowRouter {
    const { lane, shards, rejects } = this.#context
    const { layout, options, part, state } = this.#data
    const isBehind = state.lastRow.some((row) => row > 0)
    return makeRowRouter({
      options,
      layout,
      shardCount: lane.shardCount,
      isBare: true,
      ...(lane.placer === undefined ? {} : { placer: lane.placer }),
      placesDefault: () => placesDefault(lane),
      ...(isBehind ? { skip: state.lastRow } : {}),
      ...(rejects === undefined ? {} : { onBad: (...bad) => this.#rejectUnplaced(...bad) }),
      onRow: (shard, length, line, lines) =>
        (shards[shard] as BatchShard).take(
          length,
          line + part.linesBefore,
          lines,
          this.#router.rows,
        ),
      ...(rejects === undefined
        ? { onPlainRows: (shard, notes) => (shards[shard] as BatchShard).takeNotes(notes) }
        : {}),
      lendsBatches: rejects === undefined,
      plainAfter: 1,
      onBatch: (shard, bytes) => {
        const to = shards[shard] as BatchShard
        to.store?.keep(bytes)
        to.write(bytes, () => this.#router.giveBack(bytes))
        this.#sentBytes[shard] = (this.#sentBytes[shard] as number) + bytes.length
      },
    })
  }

  async #beginBatch(): Promise<void> {
    const { checkpoints, shards } = this.#context
    const lock = checkpoints.lockSql(this.#data.part.part)
    // The first shard first: two runs of the same job must not each hold a shard that the other wants, which no server would see.
    const [first, ...others] = shards
    await first?.begin(lock)
    await Promise.all(others.map((shard) => shard.begin(lock)))
    if (this.#streams) for (const shard of shards) shard.startCopy(this.#data.framing)
    this.#router.beginAnew()
    this.#isOpen = true
    this.#bytes = 0
  }

  async #split(run: () => void, bytes: number): Promise<void> {
    const { lane, rejects, shards } = this.#context
    if (!this.#isOpen) await this.#beginBatch()
    const before = this.#router.rows
    try {
      run()
    } catch (error) {
      const own = toEngineError(error)
      // Rows up to it may hold an earlier fault: the servers are asked first.
      if (rejects === undefined) await this.#finishShards(own)
      throw placeOwnError(own, this.#data.part.identity.name, this.#data.part.linesBefore)
    }
    this.#bytes += bytes
    lane.onProgress(0, this.#router.rows - before)
    const failed = await Promise.all(shards.map((shard) => shard.ready()))
    if (rejects !== undefined || !failed.includes(true)) return
    this.#router.flush()
    await this.#finishShards()
  }

  async #endBatch(): Promise<void> {
    if (!this.#isOpen) return
    const { checkpoints, rejects, shards } = this.#context
    const { part } = this.#data
    this.#router.flush()
    const done = await this.#finishShards()
    const bad = this.#gather(done)
    rejects?.write(bad)
    const to = this.#router.rows
    const seen = this.#seen?.mark()
    await Promise.all(
      shards.map(async (shard, index) => {
        const from = this.#lastRow[index] as number
        if (to <= from) return
        const rows = (done[index] as ShardOutcome).rows
        if ((await shard.ask(checkpoints.moveSql(part.part, { from, to, rows }, seen))) !== '1')
          throw engineError('COPY_CHECKPOINT_MOVED', { shard: index })
      }),
    )
    await this.#commit(done, to)
    this.#adapt(bad.length > 0)
    this.#isOpen = false
  }

  async #commit(done: readonly ShardOutcome[], to: number): Promise<void> {
    const { onCommitted, shards } = this.#context
    const ends = await Promise.allSettled(
      shards.map(async (shard, index) => {
        await shard.commit()
        this.#lastRow[index] = Math.max(to, this.#lastRow[index] as number)
        onCommitted(index, (done[index] as ShardOutcome).rows, this.#sentBytes[index] as number)
        this.#sentBytes[index] = 0
      }),
    )
    for (const end of ends) if (end.status === 'rejected') throw end.reason
  }

  /** Ends the COPY on every shard. @throws the error that stands first in the file, after all have answered; `own`: ours */
  async #finishShards(own?: EngineError): Promise<ShardOutcome[]> {
    const { shards } = this.#context
    const ends = await Promise.allSettled(shards.map((shard) => this.#finishShard(shard)))
    const faults = ends.flatMap((end, index) =>
      end.status === 'rejected' ? [this.#placed(toEngineError(end.reason), index)] : [],
    )
    if (own !== undefined) {
      const { identity, linesBefore } = this.#data.part
      const { line = 0 } = ownFault(own)
      faults.push({
        error: placeOwnError(own, identity.name, linesBefore),
        line: line + linesBefore,
      })
    }
    const fault = firstFault(faults)
    if (fault !== undefined) throw fault.error
    return ends.map((end) => (end as PromiseFulfilledResult<ShardOutcome>).value)
  }

  /** A shard's error with the line of the file. */
  #placed(error: EngineError, index: number): LineFault<EngineError> {
    const shard = this.#context.shards[index] as BatchShard
    const { framing, layout, part } = this.#data
    const counted = serverLine(error)
    const line = counted === undefined ? undefined : shard.lineOf(counted, framing)
    const names = { table: layout.table, file: part.identity.name }
    return { error: placeServerError(error, names, line), line }
  }

  async #finishShard(shard: BatchShard): Promise<ShardOutcome> {
    const { lane, rejects } = this.#context
    const { framing } = this.#data
    if (this.#streams) {
      try {
        const rows = await shard.finishCopy(framing)
        await shard.ask('set constraints all immediate')
        return { rows, bad: [] }
      } catch (error) {
        if (rejects === undefined || !isRowFault(toEngineError(error))) throw error
      }
    }
    const outcome = await shard.runInPieces(framing, lane.signal)
    await shard.ask('set constraints all immediate')
    return outcome
  }

  #rejectUnplaced(error: EngineError, row: Buffer, line: number): void {
    const ordinal = this.#router.rows
    // The first shard's checkpoint tells whether an earlier run has noted it.
    if (ordinal <= (this.#data.state.lastRow[0] as number)) return
    this.#unplaced.push({
      ...this.#place(ordinal, -1, line + this.#data.part.linesBefore),
      sqlstate: error.sqlstate,
      reason: error.message,
      bytes: Buffer.from(row),
    })
  }

  #place(row: number, shard: number, line: number) {
    const { part } = this.#data
    return { part: part.part, row, shard, file: part.identity.name, line }
  }

  /** Rows at fault of all shards in the order of the file; of a reference table each once. */
  #gather(done: readonly ShardOutcome[]): Reject[] {
    const { lane, shards } = this.#context
    const all = this.#unplaced
    this.#unplaced = []
    const seen = new Set<number>()
    for (const [index, { bad }] of done.entries()) {
      const { store } = shards[index] as BatchShard
      if (store === undefined) continue
      for (const { row, error } of bad) {
        const ordinal = store.ordinalOf(row)
        if (lane.placer === undefined && seen.has(ordinal)) continue
        seen.add(ordinal)
        all.push({
          ...this.#place(ordinal, index, store.lineOf(row)),
          sqlstate: error.sqlstate,
          reason: reasonOf(error),
          bytes: Buffer.concat(store.bytesOf(row, row + 1)),
        })
      }
    }
    return all.sort((a, b) => a.row - b.row)
  }

  #adapt(hadFaults: boolean): void {
    const { mostBatchBytes, rejects } = this.#context
    this.#streams = rejects === undefined || !hadFaults
    this.#batchBytes = hadFaults
      ? Math.max(LEAST_BATCH_BYTES, this.#batchBytes / 4)
      : Math.min(mostBatchBytes, this.#batchBytes * 2)
  }
}

interface ShardOutcome {
  readonly rows: number
  readonly bad: readonly BadRow[]
}

/** The server's own words, without its address. */
const reasonOf = (error: EngineError): string =>
  error.cause instanceof Error ? error.cause.message : error.message
