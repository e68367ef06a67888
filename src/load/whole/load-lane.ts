/**
 * One lane of a load: inputs one after the other, each split and streamed into its own COPY on every shard.
 * Reading stops while a shard is full. When one fails, the others are asked too: one server would have said what comes first.
 */

import type { CopyLayout } from '../../copy/copy-row.js'
import { firstFault, LineMap, ownFault } from '../../copy/line-map.js'
import { makeRowRouter, type RowRouter } from '../../copy/row-router.js'
import { type EngineError, engineError, toEngineError } from '../../errors/engine-error.js'
import { columnsOf, layoutOf, placesDefault } from '../batches/part-data.js'
import { checkColumns, copySql } from '../copy-target.js'
import { type CopyInput, readChunks } from '../input/open-input.js'
import { nothingChanged, placeOwnError, placeServerError, serverLine } from '../load-failure.js'
import type { LaneOptions } from '../request/lane-options.js'
import type { CopyEnd, ShardWriters } from './shard-writers.js'

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

/** Loads one input. Without writers nothing is sent, only counted. @throws what one server would have said first, with file and line */
export async function loadInput(
  input: CopyInput,
  lane: LaneOptions,
  writers: ShardWriters | undefined,
  counts: LaneCounts,
): Promise<void> {
  const unpacked = readChunks(input, lane.compression, (bytes) => lane.onProgress(bytes, 0))
  const { columns, chunks } = await columnsOf(input, lane, unpacked)
  const layout = layoutOf(lane, columns)
  const names = { table: layout.table, file: input.name }
  const lines = Array.from(
    { length: writers === undefined ? 0 : lane.shardCount },
    () => new LineMap(),
  )
  try {
    checkColumns(lane.table, columns)
    const router = openRouter(lane, layout, writers, lines)
    writers?.startCopy(copySql(lane.table, columns, lane.options))
    const own = await pump(chunks, router, lane, writers)
    const ends = await writers?.endCopy()
    const fault = firstOf(own, ends ?? [], lines, names)
    if (fault !== undefined) throw fault
    counts.add(router, ends === undefined ? router.rowsPerShard : ends.map(({ rows }) => rows))
  } catch (error) {
    // The servers of the others would wait for data for ever.
    await writers?.failCopy('the load has failed elsewhere')
    throw nothingChanged(error)
  } finally {
    await chunks.return(undefined)
  }
}

/** Of our own error and those of the shards the one that stands first in the data; of the same row the server's. */
function firstOf(
  own: EngineError | undefined,
  ends: readonly CopyEnd[],
  lines: readonly LineMap[],
  names: { readonly table: string; readonly file: string },
): EngineError | undefined {
  const faults = ends.flatMap(({ error }, shard) => {
    if (error === undefined) return []
    const counted = serverLine(error)
    const line = counted === undefined ? undefined : lines[shard]?.lineOf(counted)
    return [{ error: placeServerError(error, names, line), line }]
  })
  if (own !== undefined) faults.push({ ...ownFault(own), error: placeOwnError(own, names.file) })
  return firstFault(faults)?.error
}

function openRouter(
  lane: LaneOptions,
  layout: CopyLayout,
  writers: ShardWriters | undefined,
  lines: readonly LineMap[],
): RowRouter {
  const { options, placer, shardCount } = lane
  return makeRowRouter({
    options,
    layout,
    shardCount,
    ...(placer === undefined ? {} : { placer }),
    placesDefault: () => placesDefault(lane),
    onHeader: (line) => {
      for (const map of lines) map.take(line, line)
    },
    onRow: (shard, _, line, count) => lines[shard]?.take(line, count),
    plainAfter: 1,
    onPlainRows: (shard, notes) => lines[shard]?.takeNotes(notes),
    onBatch: (shard, bytes) => writers?.write(shard, bytes),
  })
}

/**
 * Feeds the shards until the data ends or one of them has failed. When our own check fails, its error comes back: the rows up
 * to it may hold an earlier fault, so the servers are asked first.
 */
async function pump(
  chunks: AsyncGenerator<Buffer>,
  router: RowRouter,
  lane: LaneOptions,
  writers: ShardWriters | undefined,
): Promise<EngineError | undefined> {
  const split = (run: () => void): EngineError | undefined => {
    const before = router.rows
    try {
      run()
      return undefined
    } catch (error) {
      return toEngineError(error)
    } finally {
      lane.onProgress(0, router.rows - before)
    }
  }
  for await (const chunk of chunks) {
    if (lane.signal.aborted) throw engineError('INTERRUPTED', { what: 'copy-shard' })
    const own = split(() => router.push(chunk))
    if (own !== undefined) return own
    await writers?.ready()
    if (writers?.hasFailed === true) {
      router.flush()
      return undefined
    }
    await lane.pace(chunk.length)
  }
  return split(() => router.finish())
}
