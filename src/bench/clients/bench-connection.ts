/**
 * One client's connection: sends a command in the chosen protocol in one write and resolves when the server is ready
 * again. Keeps rows only where \gset or \aset asks for them.
 */
import type { EngineError } from '../../errors/engine-error.js'
import type { ServerConnection, ServerReceiver } from '../../server/server-connection.js'
import { decodeRowDescription } from '../../wire/backend-messages.js'
import { decodeErrorFields, type ErrorFields } from '../../wire/error-response.js'
import { FrameWriter } from '../../wire/frame-writer.js'
import { backend, frontend, TX_IDLE } from '../../wire/tags.js'

/** What one query of a command gave. */
export interface QueryResult {
  /** Names of columns; undefined when it returned no rows at all (INSERT, BEGIN). */
  columns: readonly string[] | undefined
  rowCount: number
  lastRow: readonly string[]
}

export interface Outcome {
  /** The first error, and the number of the query that it came from. */
  readonly error?: ErrorFields
  readonly queryIndex: number
  /** The connection ended. */
  readonly lost?: EngineError
  /** The statement was a COPY from or to the client: the connection is of no more use. */
  readonly isCopy?: boolean
  /** Filled when results were asked for. */
  readonly results: readonly QueryResult[]
}

const portalFormats = Buffer.from([0, 0])
const noNotice = () => undefined
/** Of what went well and kept no rows. */
const fine: Outcome = { queryIndex: 0, results: [] }

function readRow(buffer: Buffer, start: number): string[] {
  const count = buffer.readUInt16BE(start)
  const row: string[] = []
  let at = start + 2
  for (let i = 0; i < count; i++) {
    const length = Math.max(buffer.readInt32BE(at), 0)
    row.push(buffer.toString('utf8', at + 4, at + 4 + length))
    at += 4 + length
  }
  return row
}

export class BenchConnection implements ServerReceiver {
  /** Position in the list of nodes. */
  readonly nodeIndex: number
  wholeRows = false
  readonly #server: ServerConnection
  readonly #writer = new FrameWriter(1024)
  readonly #notice: (line: string) => void
  #resolve: ((outcome: Outcome) => void) | undefined
  #queryIndex = 0
  #error: { fields: ErrorFields; queryIndex: number } | undefined
  #results: QueryResult[] = []
  #columns: readonly string[] | undefined
  #rowCount = 0
  #lastRow: readonly string[] = []
  readonly #prepared = new Set<string>()

  constructor(
    server: ServerConnection,
    nodeIndex: number,
    notice: (line: string) => void = noNotice,
  ) {
    this.#server = server
    this.nodeIndex = nodeIndex
    this.#notice = notice
    server.receiver = this
  }

  get isInTransaction(): boolean {
    return this.#server.status !== TX_IDLE
  }

  /** It ended while nothing was asked of it, or before. */
  get isLost(): boolean {
    return this.#server.lost !== undefined
  }

  isPrepared(name: string): boolean {
    return this.#prepared.has(name)
  }

  /** Query message. */
  simple(sql: string, keepResults = false): Promise<Outcome> {
    this.#writer.begin(frontend.query).cstring(sql).end()
    return this.#send(keepResults)
  }

  /** Parse and Sync of a named statement; counted as prepared even when it fails, as pgbench does. */
  prepare(name: string, sql: string): Promise<Outcome> {
    this.#prepared.add(name)
    this.#writer.begin(frontend.parse).cstring(name).cstring(sql).int16(0).end()
    return this.sync(false)
  }

  /** Parse of the unnamed statement, Bind, Describe, Execute: without Sync. */
  queueExtended(sql: string, parameters: readonly (string | null)[]): void {
    this.#writer.begin(frontend.parse).cstring('').cstring(sql).int16(0).end()
    this.queuePrepared('', parameters)
  }

  /** Bind, Describe, Execute: without Sync. */
  queuePrepared(name: string, parameters: readonly (string | null)[]): void {
    const writer = this.#writer
    writer.begin(frontend.bind).cstring('').cstring(name).int16(0).int16(parameters.length)
    for (const value of parameters) writer.value(value)
    // No result formats: all text.
    writer.bytes(portalFormats).end()
    writer.begin(frontend.describe).byte(0x50).cstring('').end()
    writer.begin(frontend.execute).cstring('').int32(0).end()
  }

  /** Sends what is queued with a Sync behind it. */
  sync(keepResults = false): Promise<Outcome> {
    this.#writer.begin(frontend.sync).end()
    return this.#send(keepResults)
  }

  close(): void {
    this.#server.receiver = undefined
    this.#server.close()
  }

  #send(keepResults: boolean): Promise<Outcome> {
    this.#queryIndex = 0
    this.#error = undefined
    this.wholeRows = keepResults
    if (this.#results.length > 0) this.#results = []
    this.#columns = undefined
    this.#rowCount = 0
    const { lost } = this.#server
    if (lost !== undefined) {
      this.#writer.clear()
      return Promise.resolve({ lost, queryIndex: 0, results: [] })
    }
    return new Promise((resolve) => {
      this.#resolve = resolve
      this.#writer.lend((bytes, end) => this.#server.writeCopied(bytes, end, 1))
    })
  }

  #finish(end?: Pick<Outcome, 'lost' | 'isCopy'>): void {
    const resolve = this.#resolve
    this.#resolve = undefined
    if (resolve === undefined) return
    if (this.#error === undefined && end === undefined && !this.wholeRows) return resolve(fine)
    resolve({
      results: this.#results,
      queryIndex: this.#error?.queryIndex ?? this.#queryIndex,
      ...(this.#error === undefined ? {} : { error: this.#error.fields }),
      ...end,
    })
  }

  rows(buffer: Buffer, start: number, end: number): void {
    if (!this.wholeRows) return
    let at = start
    while (at < end) {
      if (buffer[at] === backend.dataRow) {
        this.#rowCount++
        this.#lastRow = readRow(buffer, at + 5)
      }
      at += buffer.readInt32BE(at + 1) + 1
    }
  }

  frame(tag: number, buffer: Buffer, start: number, end: number): void {
    switch (tag) {
      case backend.commandComplete:
      case backend.emptyQueryResponse:
        this.#endQuery()
        break
      case backend.readyForQuery:
        this.#server.ready(buffer[start + 5] as number)
        this.#finish()
        break
      case backend.errorResponse:
        this.#error ??= {
          fields: decodeErrorFields(buffer.subarray(start + 5, end)),
          queryIndex: this.#queryIndex,
        }
        break
      case backend.rowDescription:
        if (this.wholeRows)
          this.#columns = decodeRowDescription(buffer.subarray(start + 5, end)).map(
            (column) => column.name,
          )
        break
      case backend.parameterStatus:
        this.#server.parameterStatus(buffer, start, end)
        break
      case backend.noticeResponse:
        this.#tellNotice(decodeErrorFields(buffer.subarray(start + 5, end)))
        break
      case backend.copyInResponse:
      case backend.copyOutResponse:
      case backend.copyBothResponse:
        this.#finish({ isCopy: true })
        break
    }
  }

  endOfRead(): void {
    // every frame was looked at when it came
  }

  serverLost(error: EngineError): void {
    this.#finish({ lost: error })
  }

  #endQuery(): void {
    if (this.wholeRows) {
      this.#results.push({
        columns: this.#columns,
        rowCount: this.#rowCount,
        lastRow: this.#lastRow,
      })
      this.#columns = undefined
      this.#rowCount = 0
    }
    this.#queryIndex++
  }

  #tellNotice(fields: ErrorFields): void {
    this.#notice(messageText(fields, 'NOTICE'))
  }
}

/** A message as libpq prints it: severity, text, DETAIL and HINT. */
function messageText(fields: ErrorFields, severity: string): string {
  const lines = [`${fields['S'] ?? severity}:  ${fields['M'] ?? ''}`]
  if (fields['D'] !== undefined) lines.push(`DETAIL:  ${fields['D']}`)
  if (fields['H'] !== undefined) lines.push(`HINT:  ${fields['H']}`)
  return lines.join('\n')
}

/** PQerrorMessage's form; the context is told of errors only. Without LINE: the statement is the script's own. */
export function errorText(fields: ErrorFields): string {
  const text = messageText(fields, 'ERROR')
  return fields['W'] === undefined ? text : `${text}\nCONTEXT:  ${fields['W']}`
}
