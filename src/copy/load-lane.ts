/**
 * One lane of a load: inputs one after the other, each split and streamed into its own COPY on every shard.
 * Reading stops while a shard is full. Follows the rule of the splitter: when our own check fails, PostgreSQL speaks first.
 */
import { engineError } from '../errors/engine-error.js'
import type { KeyPlacer } from '../sharding/key-placer.js'
import type { CopyOptions } from './copy-options.js'
import type { CopyLayout } from './copy-row.js'
import { type CopyTable, checkColumns, copySql } from './copy-target.js'
import { type Compression, type CopyInput, peek, readChunks } from './open-input.js'
import { findHeader, readHeader } from './read-header.js'
import { makeRowRouter, type RowRouter } from './row-router.js'
import type { ShardWriters } from './shard-writers.js'

export interface LaneOptions {
  readonly table: CopyTable
  readonly options: CopyOptions
  /** Absent: the header names them, or all columns of the table. */
  readonly columns?: readonly string[]
  readonly compression: Compression
  readonly shardCount: number
  readonly placer?: KeyPlacer
  readonly signal: AbortSignal
  /** Waits until `bytes` more may be read. */
  readonly pace: (bytes: number) => Promise<void>
  readonly onProgress: (readBytes: number, rows: number) => void
}

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

/** Bytes that a header may take; longer ones are no header. */
const HEADER_BYTES = 1 << 20

/** Loads one input. Without writers nothing is sent, only counted. */
export async function loadInput(
  input: CopyInput,
  lane: LaneOptions,
  writers: ShardWriters | undefined,
  counts: LaneCounts,
): Promise<void> {
  const unpacked = readChunks(input, lane.compression, (bytes) => lane.onProgress(bytes, 0))
  const { columns, chunks } = await columnsOf(input, lane, unpacked)
  checkColumns(lane.table, columns)
  const router = openRouter(lane, columns, writers)
  writers?.startCopy(copySql(lane.table, columns, lane.options))
  try {
    await pump(chunks, router, lane, writers)
  } catch (error) {
    await settle(writers, router)
    throw error
  } finally {
    await chunks.return(undefined)
  }
  counts.add(router, writers === undefined ? router.rowsPerShard : await writers.finishCopy())
}

/** The rows before a fault may hold an earlier one: the servers are asked first. */
async function settle(writers: ShardWriters | undefined, router: RowRouter): Promise<void> {
  if (writers === undefined) return
  router.flush()
  await writers.finishCopy()
}

async function columnsOf(
  input: CopyInput,
  lane: LaneOptions,
  unpacked: AsyncGenerator<Buffer>,
): Promise<{ columns: readonly string[]; chunks: AsyncGenerator<Buffer> }> {
  if (lane.columns !== undefined) return { columns: lane.columns, chunks: unpacked }
  if (lane.options.header === 'none')
    return { columns: lane.table.columns.map(({ name }) => name), chunks: unpacked }
  let header: Buffer | undefined
  const isEnough = (head: Buffer) => {
    header = findHeader(lane.options, head)
    return header !== undefined || head.length > HEADER_BYTES
  }
  const { head, rest } = await peek(unpacked, 1, isEnough)
  // A file of one line without its line end.
  header ??= head.length <= HEADER_BYTES ? head : undefined
  if (header === undefined || header.length === 0)
    throw engineError('COPY_HEADER_EMPTY', { name: input.name })
  return { columns: readHeader(lane.options, header, input.name), chunks: rest }
}

function openRouter(
  lane: LaneOptions,
  columns: readonly string[],
  writers: ShardWriters | undefined,
): RowRouter {
  const { placer, table } = lane
  const keyIndex = placer === undefined ? -1 : columns.indexOf(placer.table.column)
  const keyType = table.columns.find(({ name }) => name === placer?.table.column)?.type
  const layout: CopyLayout = {
    table: table.name,
    columns,
    serverMajor: table.serverMajor,
    keyIsText: keyType === undefined || /^(text|character)/.test(keyType),
    ...(keyIndex < 0 ? {} : { keyIndex }),
  }
  return makeRowRouter({
    options: lane.options,
    layout,
    shardCount: lane.shardCount,
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
    router.push(chunk)
    lane.onProgress(0, router.rows - before)
    await writers?.ready()
    await lane.pace(chunk.length)
  }
  const before = router.rows
  router.finish()
  lane.onProgress(0, router.rows - before)
  await writers?.ready()
}
