/**
 * Where a file can be cut so that each stretch begins with a row: found by the splitter itself, from the beginning of the
 * file, because a newline may stand inside quotes that opened anywhere before it.
 */
import { closeSync, openSync, readSync } from 'node:fs'
import type { CopyOptions } from '../../copy/copy-options.js'
import type { RowKey, RowSink } from '../../copy/copy-row.js'
import { firstLines } from '../../copy/first-lines.js'
import { makeRowSplitter } from '../../copy/row-splitter.js'
import { fileChunks } from './file-chunks.js'
import type { CopyInput } from './open-input.js'

export interface FileRange {
  readonly start: number
  readonly end: number
  readonly linesBefore: number
}

/** Smaller pieces are not worth connections of their own. */
const LEAST_RANGE_BYTES = 1 << 20

/** `count` stretches of about the same length; undefined when the file cannot be cut: packed, a pipe, too small, at fault. */
export async function findRanges(
  input: CopyInput,
  options: CopyOptions,
  count: number,
  layout: { readonly columns: readonly string[]; readonly serverMajor: number },
): Promise<FileRange[] | undefined> {
  const size = input.sizeBytes
  const most = Math.min(count, Math.floor((size ?? 0) / LEAST_RANGE_BYTES))
  if (size === undefined || most < 2 || isPacked(input.name)) return undefined
  const finder = new RangeFinder(size / most, (row) =>
    firstLines(options, { table: '', ...layout }, [row]),
  )
  const splitter = makeRowSplitter(options, { table: '', ...layout })
  try {
    for await (const chunk of fileChunks(input.name)) splitter.push(chunk, finder)
    splitter.finish(finder)
  } catch {
    // The load will meet the fault, and say where.
    return undefined
  }
  return finder.ranges(size)
}

class RangeFinder implements RowSink {
  readonly #step: number
  readonly #countLines: (row: Buffer) => number
  readonly #starts: { at: number; lines: number }[] = [{ at: 0, lines: 0 }]
  #at = 0

  constructor(step: number, countLines: (row: Buffer) => number) {
    this.#step = step
    this.#countLines = countLines
  }

  header(_bytes: Buffer, start: number, end: number): void {
    this.#at = end - start
  }

  row(bytes: Buffer, start: number, end: number, key: RowKey): void {
    // The splitter of the stretch will count its first row as PostgreSQL counts a first row.
    if (this.#at >= this.#step * this.#starts.length)
      this.#starts.push({
        at: this.#at,
        lines: key.line - this.#countLines(bytes.subarray(start, end)),
      })
    this.#at += end - start
  }

  ranges(size: number): FileRange[] {
    return this.#starts.map(({ at, lines }, index) => ({
      start: at,
      end: this.#starts[index + 1]?.at ?? size,
      linesBefore: lines,
    }))
  }
}

function isPacked(path: string): boolean {
  const file = openSync(path, 'r')
  try {
    const head = Buffer.alloc(4)
    const length = readSync(file, head, 0, 4, 0)
    return (
      (head[0] === 0x1f && head[1] === 0x8b) ||
      (length === 4 && head.readUInt32LE(0) === 0xfd2fb528)
    )
  } finally {
    closeSync(file)
  }
}
