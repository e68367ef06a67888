/**
 * Where a load failed, in the words of its own file: a server counts only the lines that its shard got, so the file is read
 * again up to the row that the server named.
 */

import type { CopyLayout, RowKey, RowSink } from '../copy/copy-row.js'
import { makeRowSplitter } from '../copy/row-splitter.js'
import { catalogue } from '../errors/catalogue.js'
import { EngineError, toEngineError } from '../errors/engine-error.js'
import type { LaneOptions } from './lane-options.js'
import { type CopyInput, readChunks } from './open-input.js'

/** Larger files are not read again. */
const MAX_REREAD_BYTES = 4e9

export interface FailedCopy {
  readonly input: CopyInput
  readonly lane: LaneOptions
  readonly layout: CopyLayout
  /** Index of the shard whose server failed. */
  readonly shard: number | undefined
}

/** The failure with file and line; exit code 5, because nothing has been committed. */
export async function placeFailure(error: unknown, failed: FailedCopy): Promise<EngineError> {
  const known = toEngineError(error)
  const { input, layout, shard } = failed
  const file = `file "${input.name}"`
  if (known.code !== 'SERVER_ERROR') {
    if (known.where === undefined || known.code === 'INTERRUPTED') return known
    return rebuild(known, known.detail, `${known.where}\n${file}`)
  }
  const line = shardLine(known)
  const own =
    line === undefined || shard === undefined ? undefined : await sourceLine(failed, shard, line)
  const place = own === undefined ? file : `COPY ${layout.table}, line ${own} of ${file}`
  const counted = line === undefined ? '' : `\nlines above as counted by shard ${shard}`
  return rebuild(known, known.detail, place + (own === undefined ? counted : ''))
}

/** A failure before the first commit: exit code 5, nothing has changed. */
export const nothingChanged = (error: unknown): EngineError => {
  const known = toEngineError(error)
  return known.code === 'SERVER_ERROR' ? rebuild(known, known.detail, known.where) : known
}

function rebuild(
  error: EngineError,
  detail: string | undefined,
  where: string | undefined,
): EngineError {
  const entry = { ...catalogue[error.code], sqlstate: error.sqlstate, exit: 5 }
  return new EngineError(error.code, error.message, entry, {
    cause: error.cause ?? error,
    ...(where === undefined ? {} : { where }),
    ...(detail === undefined ? {} : { detail }),
    ...(error.hint === undefined ? {} : { hint: error.hint }),
  })
}

function shardLine(error: EngineError): number | undefined {
  const { where } = (error.cause ?? {}) as { where?: string }
  const line = /^COPY .*?, line (\d+)/m.exec(where ?? '')?.[1]
  return line === undefined ? undefined : Number(line)
}

/** Line of the input that holds the row which is line `line` of what the shard got. */
async function sourceLine(
  failed: FailedCopy,
  shard: number,
  line: number,
): Promise<number | undefined> {
  const { input, lane } = failed
  if (input.sizeBytes === undefined || input.sizeBytes > MAX_REREAD_BYTES) return undefined
  const finder = new LineFinder(failed, shard, line)
  const splitter = makeRowSplitter(lane.options, failed.layout)
  try {
    for await (const chunk of readChunks(input, lane.compression, () => undefined)) {
      splitter.push(chunk, finder)
      if (finder.found !== undefined) return finder.found
    }
    splitter.finish(finder)
    finder.finish(splitter.line)
  } catch {
    // The file has another fault further on, or changed; the server's own words must do.
  }
  return finder.found
}

/** Counts the shard's lines with a splitter of its own, as its server did. */
class LineFinder implements RowSink {
  found: number | undefined
  readonly #failed: FailedCopy
  readonly #shard: number
  readonly #line: number
  readonly #counter
  readonly #nowhere: RowSink = { header: () => undefined, row: () => undefined }

  constructor(failed: FailedCopy, shard: number, line: number) {
    this.#failed = failed
    this.#shard = shard
    this.#line = line
    const { keyIndex: _, ...keyless } = failed.layout
    this.#counter = makeRowSplitter(failed.lane.options, keyless)
  }

  header(bytes: Buffer, start: number, end: number): void {
    this.#counter.push(bytes.subarray(start, end), this.#nowhere)
  }

  row(bytes: Buffer, start: number, end: number, key: RowKey): void {
    if (this.found !== undefined || this.#place(key) !== this.#shard) return
    this.#counter.push(bytes.subarray(start, end), this.#nowhere)
    if (this.#counter.line >= this.#line) this.found = key.line
  }

  /** The last row of the data, when its line end is missing. */
  finish(lastLine: number): void {
    this.#counter.finish(this.#nowhere)
    if (this.found === undefined && this.#counter.line >= this.#line) this.found = lastLine
  }

  #place(key: RowKey): number {
    const { placer, options } = this.#failed.lane
    if (placer === undefined) return this.#shard
    if (key.kind !== 'value') return placer.ofNull()
    return options.format === 'binary'
      ? placer.ofBinary(key.bytes, key.start, key.end)
      : placer.ofText(key.bytes, key.start, key.end)
  }
}
