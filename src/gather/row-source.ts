/**
 * One shard's half of gathering: the rows of its tables, in the order of the tables, as frames that a server takes as they
 * are. Rows of a table whose turn has not come are kept (one read's worth), and the shard is not read meanwhile.
 */
import type { EngineError } from '../errors/engine-error.js'
import type { ServerConnection, ServerReceiver } from '../server/server-connection.js'
import { isFatal, serverErrorOf } from '../server/server-error.js'
import { backend, frontend } from '../wire/tags.js'
import type { RowFormat } from './part-sql.js'

const FRAME_BYTES = 5
/** Signature, flags, and the length of the extension at their end. */
const SIGNATURE_BYTES = 19
const TAB = 0x09
const NEWLINE = 0x0a
/** A tab and \N. */
const NULL_BYTES = 3

export interface SourceTable {
  /** Its place in the order in which tables are taken in. */
  readonly number: number
  readonly format: RowFormat
  readonly columns: number
}

/** Who takes the rows. */
export interface RowSink {
  /** The table that is taken in now. */
  readonly current: number
  /** No more shall be read for the moment. */
  readonly isFull: boolean
  take(bytes: Buffer, count: number): void
  tableEnded(table: number): void
  failed(error: EngineError): void
  /** ReadyForQuery came, or the server was lost. */
  sourceEnded(): void
}

interface Waiting {
  readonly table: number
  /** Absent: the table has ended. */
  readonly bytes?: Buffer
  readonly count: number
}

export class RowSource implements ServerReceiver {
  readonly wholeRows = true
  readonly #server: ServerConnection
  readonly #tables: readonly SourceTable[]
  /** All tables come in one COPY, each row behind its table's number. */
  readonly #isTogether: boolean
  readonly #sink: RowSink
  #at = 0
  #isFirst = true
  #waiting: Waiting[] = []
  #isPaused = false
  #isDropped = false

  constructor(
    server: ServerConnection,
    tables: readonly SourceTable[],
    isTogether: boolean,
    sink: RowSink,
  ) {
    this.#server = server
    this.#tables = tables
    this.#isTogether = isTogether
    this.#sink = sink
  }

  start(query: Buffer): void {
    this.#server.receiver = this
    this.#server.write(query, 1)
  }

  /** Nothing more is wanted: what still comes is read and thrown away. */
  drop(): void {
    this.#isDropped = true
    this.#waiting = []
    this.settle()
  }

  /** Hands on what waited for its table, and reads on or stops reading. */
  settle(): void {
    for (
      let head = this.#waiting[0];
      head && head.table === this.#sink.current;
      head = this.#waiting[0]
    ) {
      this.#waiting.shift()
      if (head.bytes) this.#sink.take(head.bytes, head.count)
      else this.#sink.tableEnded(head.table)
    }
    const wanted = !this.#isDropped && (this.#waiting.length > 0 || this.#sink.isFull)
    if (wanted === this.#isPaused || this.#server.closed) return
    this.#isPaused = wanted
    if (wanted) this.#server.socket.pause()
    else this.#server.socket.resume()
  }

  rows(buffer: Buffer, start: number, end: number): void {
    if (this.#isDropped || buffer[start] !== backend.copyData) return
    if (this.#isTogether) return this.#splitRows(buffer, start, end)
    const table = this.#tables[this.#at]
    if (!table) return
    if (table.format === 'text') {
      return this.#give(table.number, buffer.subarray(start, end), countFrames(buffer, start, end))
    }
    this.#binaryRows(table.number, buffer, start, end)
  }

  endOfRead(): void {
    this.settle()
  }

  serverLost(error: EngineError): void {
    this.#sink.failed(error)
    this.#sink.sourceEnded()
  }

  frame(tag: number, buffer: Buffer, start: number, end: number): void {
    switch (tag) {
      case backend.copyOutResponse:
        this.#isFirst = true
        return
      case backend.copyDone:
        return this.#copyEnded()
      case backend.errorResponse:
        // the end of that server, which is not that of the client's session: it will be heard as lost
        if (isFatal(buffer, start, end)) return
        return this.#sink.failed(serverErrorOf(buffer, start, end))
      case backend.parameterStatus:
        return this.#server.parameterStatus(buffer, start, end)
      case backend.readyForQuery:
        this.#server.ready(buffer[start + FRAME_BYTES] as number)
        return this.#sink.sourceEnded()
    }
  }

  #copyEnded(): void {
    if (this.#isDropped) return
    const last = this.#isTogether ? this.#tables.length : this.#at + 1
    while (this.#at < last) this.#endTable()
  }

  #endTable(): void {
    const { number: table } = this.#tables[this.#at++] as SourceTable
    if (this.#waiting.length > 0 || this.#sink.current !== table) {
      this.#waiting.push({ table, count: 0 })
    } else this.#sink.tableEnded(table)
  }

  #give(table: number, bytes: Buffer, count: number): void {
    if (count === 0) return
    if (this.#waiting.length > 0 || this.#sink.current !== table) {
      this.#waiting.push({ table, bytes: Buffer.from(bytes), count })
    } else this.#sink.take(bytes, count)
  }

  /** Without signature and trailer, which the taker writes once for all shards. */
  #binaryRows(table: number, buffer: Buffer, start: number, end: number): void {
    let from = start
    if (this.#isFirst) {
      this.#isFirst = false
      from = frameEnd(buffer, start)
      const body = start + FRAME_BYTES
      const extension = buffer.readInt32BE(body + SIGNATURE_BYTES - 4)
      const row = copyData(buffer.subarray(body + SIGNATURE_BYTES + extension, from))
      if (row.length > FRAME_BYTES && !isTrailer(row, 0)) this.#give(table, row, 1)
    }
    let until = from
    let count = 0
    while (until < end && !isTrailer(buffer, until)) {
      until = frameEnd(buffer, until)
      count++
    }
    this.#give(table, buffer.subarray(from, until), count)
  }

  /** Rows behind the number of their table: each run of one table is handed on. */
  #splitRows(buffer: Buffer, start: number, end: number): void {
    const width = Math.max(...this.#tables.map(({ columns }) => columns))
    let run: Buffer[] = []
    const flush = (): void => {
      const table = this.#tables[this.#at]
      if (table && run.length > 0) this.#give(table.number, Buffer.concat(run), run.length)
      run = []
    }
    for (let at = start; at < end; ) {
      const next = frameEnd(buffer, at)
      const tab = buffer.indexOf(TAB, at + FRAME_BYTES)
      const place = Number(buffer.toString('latin1', at + FRAME_BYTES, tab))
      if (place > this.#at) flush()
      while (place > this.#at) this.#endTable()
      const pads = width - (this.#tables[place]?.columns ?? 0)
      const row = copyData(buffer.subarray(tab + 1, next - pads * NULL_BYTES))
      row[row.length - 1] = NEWLINE
      run.push(row)
      at = next
    }
    flush()
  }
}

const frameEnd = (buffer: Buffer, at: number): number => at + 1 + buffer.readInt32BE(at + 1)

/** The field count −1 and no more. */
const isTrailer = (buffer: Buffer, at: number): boolean =>
  buffer.readInt32BE(at + 1) === 6 && buffer.readInt16BE(at + FRAME_BYTES) === -1

function countFrames(buffer: Buffer, start: number, end: number): number {
  let count = 0
  for (let at = start; at < end; at = frameEnd(buffer, at)) count++
  return count
}

export function copyData(body: Buffer): Buffer {
  const frame = Buffer.allocUnsafe(body.length + FRAME_BYTES)
  frame[0] = frontend.copyData
  frame.writeInt32BE(body.length + 4, 1)
  body.copy(frame, FRAME_BYTES)
  return frame
}
