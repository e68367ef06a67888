/**
 * One lane of a load: inputs one after the other, each split and streamed into its own COPY on every shard.
 * Reading stops while a shard is full. Follows the rule of the splitter: when our own check fails, PostgreSQL speaks first.
 */

import type { CopyLayout } from '../copy/copy-row.js'
import { makeRowRouter, type RowRouter } from '../copy/row-router.js'
import { engineError } from '../errors/engine-error.js'
import { checkColumns, copySql } from './copy-target.js'
import type { LaneOptions } from './lane-options.js'
import { placeFailure } from './load-failure.js'
import { type CopyInput, readChunks } from './open-input.js'
import { columnsOf, layoutOf } from './part-data.js'
import type { ShardWriters } from './shard-writers.js'

/** Counts of one lane; by index of the shard. */
export class LaneCounts {
  read = 0
  readonly rows: number[]
  readonly bytes: number[]

  constructor(shardCount: number) {
    this.rows = Array.from({ length: shardCount }, () => 0)
    this.bytes = Array.from({ length: shardCount }, () => 0)
  }

  add(router: RowRouter, written: readonly number[]): void {
    this.read += router.rows
    for (const [shard, rows] of written.entries()) {
      this.rows[shard] = (this.rows[shard] as number) + rows
      this.bytes[shard] = (this.bytes[shard] as number) + (router.bytesPerShard[shard] as number)
    }
  }
}

/** Loads one input. Without writers nothing is sent, only counted. @throws the failure, with file and line */
export async function loadInput(
  input: CopyInput,
  lane: LaneOptions,
  writers: ShardWriters | undefined,
  counts: LaneCounts,
): Promise<void> {
  const unpacked = readChunks(input, lane.compression, (bytes) => lane.onProgress(bytes, 0))
  const { columns, chunks } = await columnsOf(input, lane, unpacked)
  const layout = layoutOf(lane, columns)
  try {
    checkColumns(lane.table, columns)
    const router = openRouter(lane, layout, writers)
    writers?.startCopy(copySql(lane.table, columns, lane.options))
    await pump(chunks, router, lane, writers)
    counts.add(router, writers === undefined ? router.rowsPerShard : await writers.finishCopy())
  } catch (error) {
    // The servers of the others would wait for data for ever.
    await writers?.failCopy('the load has failed elsewhere')
    throw await placeFailure(error, { input, lane, layout, shard: writers?.failedShard })
  } finally {
    await chunks.return(undefined)
  }
}

function openRouter(
  lane: LaneOptions,
  layout: CopyLayout,
  writers: ShardWriters | undefined,
): RowRouter {
  const { options, placer, shardCount } = lane
  return makeRowRouter({
    options,
    layout,
    shardCount,
    ...(placer === undefined ? {} : { placer }),
    onBatch: (shard, bytes) => writers?.write(shard, bytes),
  })
}

async function pump(
  chunks: AsyncGenerator<Buffer>,
  router: RowRouter,
  lane: LaneOptions,
  writers: ShardWriters | undefined,
): Promise<void> {
  for await (const chunk of chunks) {
    if (lane.signal.aborted) throw engineError('INTERRUPTED', { what: 'copy-shard' })
    const before = router.rows
    await split(() => router.push(chunk), writers)
    lane.onProgress(0, router.rows - before)
    await writers?.ready()
    await lane.pace(chunk.length)
  }
  const before = router.rows
  await split(() => router.finish(), writers)
  lane.onProgress(0, router.rows - before)
  await writers?.ready()
}

/** When our own check fails, the rows before it may hold an earlier fault: the servers are asked first. */
async function split(run: () => void, writers: ShardWriters | undefined): Promise<void> {
  try {
    run()
  } catch (error) {
    await writers?.finishCopy()
    throw error
  }
}
