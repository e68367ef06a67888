/** Opens a part of an input: its columns, its bytes, and what each COPY of it needs around the rows. */
import type { CopyLayout } from '../../copy/copy-row.js'
import { firstLines } from '../../copy/first-lines.js'
import { engineError } from '../../errors/engine-error.js'
import { placeDefault } from '../../sharding/default-key.js'
import { checkColumns, copySql } from '../copy-target.js'
import { type CopyInput, peek, readChunks } from '../input/open-input.js'
import { findHeader, readHeader } from '../input/read-header.js'
import type { LaneOptions } from '../request/lane-options.js'
import type { Framing } from '../shards/batch-shard.js'
import type { JobPart } from './copy-job.js'

/** Bytes that a header may take; longer ones are no header. */
const HEADER_BYTES = 1 << 20

/** Signature, no flags, no extension. */
export const BINARY_HEAD = Buffer.concat([
  Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1'),
  Buffer.alloc(8),
])
export const BINARY_TAIL = Buffer.from([0xff, 0xff])

export interface OpenedPart {
  readonly layout: CopyLayout
  readonly options: LaneOptions['options']
  readonly framing: Framing
  readonly chunks: AsyncGenerator<Buffer>
}

/** @throws COPY_HEADER_EMPTY, COPY_COLUMN_MISSING */
export async function openPart(
  part: JobPart,
  input: CopyInput,
  lane: LaneOptions,
): Promise<OpenedPart> {
  const isRange = part.end >= 0
  const isFirst = part.start === 0
  const whole = () =>
    readChunks(input, lane.compression, (bytes) => lane.onProgress(isRange ? 0 : bytes, 0))
  const { columns, chunks } = await columnsOf(input, lane, whole())
  checkColumns(lane.table, columns)
  const layout = layoutOf(lane, columns)
  const framing = framingOf(lane, layout)
  if (!isRange) return { layout, options: lane.options, framing, chunks }
  await chunks.return(undefined)
  const options = isFirst ? lane.options : { ...lane.options, header: 'none' as const }
  const isBinary = lane.options.format === 'binary'
  return {
    layout,
    options,
    framing,
    chunks: rangeOf(part, input, lane, isBinary && !isFirst ? BINARY_HEAD : undefined),
  }
}

async function* rangeOf(
  part: JobPart,
  input: CopyInput,
  lane: LaneOptions,
  head: Buffer | undefined,
): AsyncGenerator<Buffer> {
  if (head !== undefined) yield head
  if (part.end <= part.start) return
  const stretch = { ...input, file: { path: input.name, start: part.start, end: part.end } }
  yield* readChunks(stretch, 'none', (bytes) => lane.onProgress(bytes, 0))
}

export async function columnsOf(
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
  const source = { header, name: input.name, table: lane.table }
  return { columns: await readHeader(lane.options, source), chunks: rest }
}

/** Where rows belong that leave the key to its default. */
export function placesDefault({ placer, table }: LaneOptions): number | undefined {
  const key = table.columns.find(({ name }) => name === placer?.table.column)
  return key === undefined || placer === undefined ? undefined : placeDefault(key, placer)
}

export function layoutOf(lane: LaneOptions, columns: readonly string[]): CopyLayout {
  const { placer, table } = lane
  const keyIndex = placer === undefined ? -1 : columns.indexOf(placer.table.column)
  const keyType = table.columns.find(({ name }) => name === placer?.table.column)?.type
  return {
    table: table.name,
    columns,
    serverMajor: table.serverMajor,
    keyIsText: keyType === undefined || /^(text|character)/.test(keyType),
    ...(keyIndex < 0 ? {} : { keyIndex }),
  }
}

function framingOf(lane: LaneOptions, layout: CopyLayout): Framing {
  const options = { ...lane.options, header: 'none' as const }
  const sql = copySql(lane.table, layout.columns, options)
  const countLines = (row: readonly Buffer[]) => firstLines(options, layout, row)
  return options.format === 'binary'
    ? { sql, countLines: () => 1, head: BINARY_HEAD, tail: BINARY_TAIL }
    : { sql, countLines }
}
