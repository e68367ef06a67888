/** Rows in and out of a merge, as values. */
import { RowMerge, type RowMergeOptions } from '../../../src/merge/row-merge.js'
import type { MergeProgram, SortKey } from '../../../src/plan/merge-program.js'
import {
  decodeDataRow,
  encodeDataRow,
  type FieldDescription,
} from '../../../src/wire/backend-messages.js'
import { FrameWriter } from '../../../src/wire/frame-writer.js'

export type Value = Buffer | string | null

export const rowFrame = (values: readonly Value[]): Buffer => {
  const writer = new FrameWriter()
  encodeDataRow(writer, values)
  return writer.take()
}

export const field = (typeOid: number, format = 0, name = 'x'): FieldDescription => ({
  name,
  tableOid: 0,
  columnNumber: 0,
  typeOid,
  typeSize: -1,
  typeModifier: -1,
  format,
})

export const ascending = (column: number, more: Partial<SortKey> = {}): SortKey => ({
  column,
  descending: false,
  nullsFirst: false,
  bytewise: true,
  ...more,
})

export const program = (more: Partial<MergeProgram> = {}): MergeProgram => ({
  sql: '',
  visible: 1,
  order: [],
  combine: [],
  limit: null,
  offset: 0n,
  withTies: false,
  ...more,
})

/** Rows that leave, taken at once, as a client's output does at the latest when the call ends. */
export class Taken {
  readonly rows: (Buffer | null)[][] = []

  forward(buffer: Buffer, start: number, end: number): void {
    let at = start
    while (at < end) {
      const next = at + 1 + buffer.readInt32BE(at + 1)
      this.rows.push(decodeDataRow(Buffer.from(buffer.subarray(at + 5, next))))
      at = next
    }
  }

  get texts(): (string | null)[][] {
    return this.rows.map((row) => row.map((value) => value?.toString('latin1') ?? null))
  }
}

export interface MergeRig {
  readonly taken: Taken
  readonly merge: RowMerge
}

export function openMerge(
  options: Pick<RowMergeOptions, 'program' | 'fields' | 'shards'> & Partial<RowMergeOptions>,
): MergeRig {
  const taken = new Taken()
  return { taken, merge: new RowMerge({ sink: taken, ...options }) }
}

/** Feeds rows of a shard in one buffer that is overwritten afterwards, as a socket's memory is. */
export function feed(merge: RowMerge, shard: number, rows: readonly (readonly Value[])[]): void {
  const bytes = Buffer.concat(rows.map(rowFrame))
  merge.rows(shard, bytes, 0, bytes.length)
  bytes.fill(0xff)
}

/** All rows of all shards, shard by shard, then their ends. */
export function mergeAll(
  options: Pick<RowMergeOptions, 'program' | 'fields'>,
  shards: readonly (readonly (readonly Value[])[])[],
): Taken {
  const { taken, merge } = openMerge({ ...options, shards: shards.length })
  shards.forEach((rows, shard) => {
    feed(merge, shard, rows)
  })
  shards.forEach((_, shard) => {
    merge.ended(shard)
  })
  if (!merge.isComplete) throw new Error('the merge did not end')
  return taken
}
