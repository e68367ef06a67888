/** Collects the answer of simple queries as text rows: for health checks, settings and administrative statements, not for the relay. */
import { type EngineError, isEngineError } from '../errors/engine-error.js'
import { backend } from '../wire/tags.js'
import { readCString } from './read-cstring.js'
import type { ReplyReceiver } from './reply-scanner.js'
import { serverErrorOf } from './server-error.js'

export interface ServerResult {
  readonly columns: readonly { readonly name: string; readonly typeOid: number }[]
  readonly rows: (string | null)[][]
  /** The command tag, `SELECT 1`; empty for an empty query. */
  tag: string
}

/** What of a connection the receiver must keep up to date. */
interface Noting {
  ready(status: number): void
  parameterStatus(buffer: Buffer, start: number, end: number): void
}

export class QueryReceiver implements ReplyReceiver {
  readonly wholeRows = true
  readonly #connection: Noting
  readonly #done: (error: EngineError | undefined, results: ServerResult[]) => void
  #readies: number
  #results: ServerResult[] = []
  #current: ServerResult | undefined
  #error: EngineError | undefined

  /** Calls `done` once, after `readies` ReadyForQuery or the loss of the server. */
  constructor(
    connection: Noting,
    readies: number,
    done: (error: EngineError | undefined, results: ServerResult[]) => void,
  ) {
    this.#connection = connection
    this.#readies = readies
    this.#done = done
  }

  /** ReadyForQuery still to come. */
  get owed(): number {
    return this.#readies
  }

  rows(buffer: Buffer, start: number, end: number): void {
    let at = start
    while (at < end) {
      const length = buffer.readInt32BE(at + 1)
      if (buffer[at] === backend.dataRow) this.#current?.rows.push(readRow(buffer, at + 5))
      at += length + 1
    }
  }

  frame(tag: number, buffer: Buffer, start: number, end: number): void {
    switch (tag) {
      case backend.rowDescription:
        this.#current = { columns: readColumns(buffer, start + 5, end), rows: [], tag: '' }
        break
      case backend.commandComplete: {
        const result = this.#current ?? { columns: [], rows: [], tag: '' }
        result.tag = readCString(buffer, start + 5, end).text
        this.#results.push(result)
        this.#current = undefined
        break
      }
      case backend.emptyQueryResponse:
        this.#results.push({ columns: [], rows: [], tag: '' })
        break
      case backend.errorResponse:
        this.#error ??= serverErrorOf(buffer, start, end)
        break
      case backend.parameterStatus:
        this.#connection.parameterStatus(buffer, start, end)
        break
      case backend.readyForQuery:
        this.#connection.ready(buffer[start + 5] as number)
        if (--this.#readies === 0) this.#done(this.#error, this.#results)
        break
    }
  }

  endOfRead(): void {
    // rows are collected, nothing waits to be flushed
  }

  serverLost(error: EngineError): void {
    this.#done(this.#error && isEngineError(this.#error) ? this.#error : error, this.#results)
  }
}

function readColumns(buffer: Buffer, start: number, end: number): ServerResult['columns'] {
  const columns: { name: string; typeOid: number }[] = []
  const count = buffer.readUInt16BE(start)
  let at = start + 2
  for (let i = 0; i < count; i++) {
    const name = readCString(buffer, at, end)
    columns.push({ name: name.text, typeOid: buffer.readUInt32BE(name.next + 6) })
    at = name.next + 18
  }
  return columns
}

function readRow(buffer: Buffer, start: number): (string | null)[] {
  const count = buffer.readUInt16BE(start)
  const row: (string | null)[] = []
  let at = start + 2
  for (let i = 0; i < count; i++) {
    const length = buffer.readInt32BE(at)
    at += 4
    if (length < 0) row.push(null)
    else row.push(buffer.toString('utf8', at, at + length))
    at += Math.max(length, 0)
  }
  return row
}
