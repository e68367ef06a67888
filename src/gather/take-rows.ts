/**
 * Rows of several shards into the copies on the server that finishes: its tables are taken in one after the other, each
 * from all shards as they send, with back-pressure, so that memory does not grow with the rows. Bounded.
 */
import { type Deferred, deferred } from '../base/deferred.js'
import { type EngineError, engineError } from '../errors/engine-error.js'
import { readCString } from '../server/read-cstring.js'
import {
  queryFrame,
  type ServerConnection,
  type ServerReceiver,
} from '../server/server-connection.js'
import { isFatal, serverErrorOf } from '../server/server-error.js'
import { FrameWriter } from '../wire/frame-writer.js'
import { backend, frontend } from '../wire/tags.js'
import type { RowFormat } from './part-sql.js'
import { copyData, type RowSink, RowSource, type SourceTable } from './row-source.js'

const signature = copyData(
  Buffer.concat([Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1'), Buffer.alloc(8)]),
)
/** Of the only value of a DataRow: tag, length, count, length. */
const VALUE_START = 11

const trailer = copyData(Buffer.from([0xff, 0xff]))
const copyDone = new FrameWriter(8).begin(frontend.copyDone).end().take()
const copyFail = new FrameWriter(64)
  .begin(frontend.copyFail)
  .cstring('the rows of a shard could not be read')
  .end()
  .take()

export interface TakeRows {
  readonly finisher: ServerConnection
  /** Makes the copies and takes rows in by COPY FROM STDIN, table by table in the order of `formats`. */
  readonly loadSql: string
  readonly formats: readonly RowFormat[]
  readonly sources: readonly {
    readonly server: ServerConnection
    readonly sql: string
    readonly tables: readonly SourceTable[]
    readonly isTogether: boolean
  }[]
  readonly limits: GatherLimits
  /** What was taken already: it counts. */
  readonly before?: Taken
  /** The first error came: whoever still works may be told to stop. */
  failed(): void
}

export interface GatherLimits {
  readonly maxRows: number
  readonly maxBytes: number
}

export interface Taken {
  readonly rows: number
  readonly bytes: number
}

/** Resolves when all is there, and rejects with the first error, both after every server is ready or lost. */
export function takeRows(job: TakeRows): Promise<Taken> {
  return new Taking(job).start()
}

class Taking implements RowSink, ServerReceiver {
  readonly wholeRows = true
  current = 0
  isFull = false
  readonly #job: TakeRows
  readonly #sources: readonly RowSource[]
  /** Of each table, the sources that have not ended it. */
  readonly #open: number[]
  readonly #done: Deferred<Taken> = deferred()
  #left: number
  #isLoading = true
  #rows = 0
  #bytes = 0
  #error: EngineError | undefined

  constructor(job: TakeRows) {
    this.#job = job
    this.#left = job.sources.length + 1
    this.#rows = job.before?.rows ?? 0
    this.#bytes = job.before?.bytes ?? 0
    this.#open = job.formats.map(
      (_, number) =>
        job.sources.filter(({ tables }) => tables.some((table) => table.number === number)).length,
    )
    this.#sources = job.sources.map(
      ({ server, tables, isTogether }) => new RowSource(server, tables, isTogether, this),
    )
  }

  start(): Promise<Taken> {
    const { finisher, loadSql, sources } = this.#job
    finisher.receiver = this
    finisher.write(queryFrame(loadSql), 1)
    this.#beginTable()
    for (const [index, source] of this.#sources.entries()) {
      source.start(queryFrame(sources[index]?.sql ?? ''))
    }
    return this.#done.promise
  }

  // what the sources say

  take(bytes: Buffer, count: number): void {
    if (this.#error) return
    this.#rows += count
    this.#bytes += bytes.length
    this.#write(bytes)
    this.#checkLimits()
  }

  tableEnded(table: number): void {
    const left = (this.#open[table] ?? 1) - 1
    this.#open[table] = left
    if (left > 0 || this.#error) return
    if (this.#job.formats[table] === 'binary') this.#write(trailer)
    this.#write(copyDone)
    this.current++
    this.#beginTable()
    for (const source of this.#sources) source.settle()
  }

  failed(error: EngineError): void {
    if (this.#error) return
    this.#error = error
    if (this.#isLoading && !this.#job.finisher.closed) this.#job.finisher.write(copyFail, 0)
    for (const source of this.#sources) source.drop()
    this.#job.failed()
  }

  sourceEnded(): void {
    this.#end()
  }

  // what the finisher says

  endOfRead(): void {
    // nothing is passed on
  }

  drained(): void {
    this.isFull = false
    for (const source of this.#sources) source.settle()
  }

  serverLost(error: EngineError): void {
    this.failed(error)
    this.#end()
  }

  /** The size of what stood on this server already. */
  rows(buffer: Buffer, start: number, end: number): void {
    if (buffer[start] !== backend.dataRow) return
    this.#bytes += Number(buffer.toString('latin1', start + VALUE_START, end))
    this.#checkLimits()
  }

  frame(tag: number, buffer: Buffer, start: number, end: number): void {
    const { finisher } = this.#job
    switch (tag) {
      case backend.commandComplete:
        return this.#completed(readCString(buffer, start + 5, end).text)
      case backend.errorResponse:
        if (isFatal(buffer, start, end)) return
        this.#isLoading = false
        return this.failed(inOurWords(serverErrorOf(buffer, start, end)))
      case backend.parameterStatus:
        return finisher.parameterStatus(buffer, start, end)
      case backend.readyForQuery:
        this.#isLoading = false
        finisher.ready(buffer[start + 5] as number)
        return this.#end()
    }
  }

  #beginTable(): void {
    if (this.#job.formats[this.current] === 'binary') this.#write(signature)
  }

  #write(bytes: Buffer): void {
    if (!this.#isLoading) return
    if (!this.#job.finisher.write(bytes, 0)) this.isFull = true
  }

  /** Rows that this server had itself are counted too. */
  #completed(tag: string): void {
    const own = /^INSERT 0 (\d+)$/.exec(tag)
    if (!own) return
    this.#rows += Number(own[1])
    this.#checkLimits()
  }

  #checkLimits(): void {
    const { maxRows, maxBytes } = this.#job.limits
    if (this.#rows > maxRows) {
      this.failed(engineError('GATHER_TOO_MANY_ROWS', { limit: maxRows }))
    } else if (this.#bytes > maxBytes) {
      this.failed(engineError('GATHER_TOO_MANY_BYTES', { limit: maxBytes }))
    }
  }

  #end(): void {
    if (--this.#left > 0) return
    if (this.#error) this.#done.reject(this.#error)
    else this.#done.resolve({ rows: this.#rows, bytes: this.#bytes })
  }
}

/**
 * The right to make temporary tables is asked for by us, not by the client's statement. A server that has made some before
 * denies the schema in which they stand.
 */
function inOurWords(error: EngineError): EngineError {
  const isTemporary = error.sqlstate === '42501' && /temporary|pg_temp_/.test(error.message)
  return isTemporary ? engineError('GATHER_TEMPORARY', {}, { cause: error }) : error
}
