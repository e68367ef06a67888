/**
 * Rows that were rejected: FILE holds their original bytes, in the format of the input, so that it can be repaired and loaded;
 * FILE.reasons holds a line of JSON for each with its file, line, SQLSTATE and reason. Both are on disk before the batch that
 * leaves the rows out is committed.
 */
import { closeSync, fsyncSync, openSync, readFileSync, truncateSync, writeSync } from 'node:fs'
import { engineError, isEngineError } from '../../errors/engine-error.js'

export interface Reject {
  readonly part: number
  /** Of the rows of its part, from 1. */
  readonly row: number
  /** Index of the shard that refused it; −1: no shard could be told. */
  readonly shard: number
  readonly file: string
  readonly line: number
  readonly sqlstate: string
  readonly reason: string
  readonly bytes: Buffer
}

interface Stored {
  readonly part: number
  readonly row: number
  readonly shard: number
  /** Bytes of FILE after it. */
  readonly end: number
}

export interface RejectStart {
  readonly path: string
  /** Header or signature that the data must begin with. */
  readonly head: Buffer
  /** text and csv. */
  readonly hasLines: boolean
  /** Of a row, where it can be told. */
  readonly countFields?: (row: Buffer) => number | undefined
  /** Rows of an earlier run that are to be kept; absent: begin anew. */
  readonly keeps?: (part: number, row: number, shard: number) => boolean
}

export class RejectFile {
  count = 0
  readonly #path: string
  readonly #data: number
  readonly #reasons: number
  readonly #hasLines: boolean
  readonly #countFields: RejectStart['countFields']
  #lineEnd = '\n'
  #end: number

  constructor(start: RejectStart) {
    const { path, head, keeps } = start
    this.#hasLines = start.hasLines
    this.#countFields = start.countFields
    this.#path = path
    this.#end = head.length
    const isKept = keeps !== undefined
    this.#data = this.#open(path, isKept)
    this.#reasons = this.#open(`${path}.reasons`, isKept)
    try {
      if (isKept) this.#keep(keeps, head)
      else writeAll(this.#data, head)
    } catch (error) {
      this.close(undefined)
      throw this.#failed(error)
    }
  }

  /** Writes the rows of a batch, in the order of the file, and waits for the disk. */
  write(rejects: readonly Reject[]): void {
    if (rejects.length === 0) return
    try {
      for (const reject of rejects) this.#write(reject)
      fsyncSync(this.#data)
      fsyncSync(this.#reasons)
    } catch (error) {
      throw this.#failed(error)
    }
  }

  close(tail: Buffer | undefined): void {
    try {
      if (tail !== undefined) writeAll(this.#data, tail)
    } catch {
      // All rows are there, and binary data may end without its trailer.
    }
    closeSync(this.#data)
    closeSync(this.#reasons)
  }

  #write(reject: Reject): void {
    const { bytes: given, ...rest } = reject
    const bytes = this.#ended(given)
    writeAll(this.#data, bytes)
    this.#end += bytes.length
    const text = bytes.toString()
    const original = Buffer.from(text).equals(bytes)
      ? { data: text }
      : { data_base64: bytes.toString('base64') }
    const fields = this.#countFields?.(bytes)
    const counted = fields === undefined ? {} : { fields }
    const reason = { ...rest, ...counted, ...original, end: this.#end }
    writeAll(this.#reasons, `${JSON.stringify(reason)}\n`)
    this.count++
  }

  /** The last row of a file may lack its line end. */
  #ended(bytes: Buffer): Buffer {
    if (!this.#hasLines) return bytes
    const lineEnd = /\r?\n$|\r$/.exec(bytes.toString('latin1', Math.max(0, bytes.length - 2)))?.[0]
    if (lineEnd === undefined) return Buffer.concat([bytes, Buffer.from(this.#lineEnd)])
    this.#lineEnd = lineEnd
    return bytes
  }

  /** Drops what an unfinished batch has left: its rows come again. */
  #keep(keeps: NonNullable<RejectStart['keeps']>, head: Buffer): void {
    const lines = readFileSync(`${this.#path}.reasons`, 'utf8').split('\n').slice(0, -1)
    const data = readFileSync(this.#path)
    const kept: { line: string; bytes: Buffer }[] = []
    let from = head.length
    for (const line of lines) {
      const { part, row, shard, end } = JSON.parse(line) as Stored
      const bytes = data.subarray(from, end)
      if (keeps(part, row, shard)) kept.push({ line, bytes })
      from = end
    }
    truncateSync(this.#path, 0)
    truncateSync(`${this.#path}.reasons`, 0)
    writeAll(this.#data, head)
    for (const { line, bytes } of kept) {
      writeAll(this.#data, bytes)
      this.#end += bytes.length
      const stored = JSON.parse(line) as Stored
      writeAll(this.#reasons, `${JSON.stringify({ ...stored, end: this.#end })}\n`)
    }
    this.count = kept.length
  }

  #open(path: string, isKept: boolean): number {
    try {
      return openSync(path, isKept ? 'a' : 'w')
    } catch (error) {
      throw this.#failed(error)
    }
  }

  #failed(error: unknown): Error {
    if (isEngineError(error)) return error
    const reason = error instanceof Error ? error.message : String(error)
    return engineError('COPY_REJECT_FILE', { path: this.#path, reason }, { cause: error })
  }
}

/** A disk that is almost full takes a part. */
function writeAll(file: number, data: Buffer | string): void {
  const bytes = Buffer.from(data)
  for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at)
}
