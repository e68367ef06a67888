/** Feeds a splitter in chunks and keeps what it says, as text. */
import type { CopyOptions } from '../../../src/copy/copy-options.js'
import type { CopyLayout, RowKey } from '../../../src/copy/copy-row.js'
import { makeRowSplitter } from '../../../src/copy/row-splitter.js'

export interface Collected {
  header: string | undefined
  rows: string[]
  keys: (string | null | { kind: string })[]
  lines: number[]
}

export function collectRows(
  options: CopyOptions,
  layout: CopyLayout,
  input: Buffer,
  chunkBytes = input.length,
): Collected {
  const result: Collected = { header: undefined, rows: [], keys: [], lines: [] }
  const splitter = makeRowSplitter(options, layout)
  const sink = {
    header: (bytes: Buffer, start: number, end: number) => {
      result.header = bytes.toString('latin1', start, end)
    },
    row: (bytes: Buffer, start: number, end: number, key: RowKey) => {
      result.rows.push(bytes.toString('latin1', start, end))
      result.lines.push(key.line)
      if (key.kind === 'value') result.keys.push(key.bytes.toString('latin1', key.start, key.end))
      else result.keys.push(key.kind === 'null' ? null : { kind: key.kind })
    },
  }
  for (let at = 0; at < input.length; at += Math.max(1, chunkBytes)) {
    // A chunk is borrowed: what is read later must have been copied.
    const chunk = Buffer.from(input.subarray(at, at + Math.max(1, chunkBytes)))
    splitter.push(chunk, sink)
    chunk.fill(0x2a)
  }
  splitter.finish(sink)
  return result
}
