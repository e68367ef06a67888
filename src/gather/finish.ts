/**
 * The client's statement on the server where its tables' copies stand: the answer goes to the client as it comes, and the
 * transaction that holds the copies is rolled back behind it, so that they are gone for everybody.
 */
import { type Deferred, deferred } from '../base/deferred.js'
import type { EngineError } from '../errors/engine-error.js'
import { readCString } from '../server/read-cstring.js'
import {
  queryFrame,
  type ServerConnection,
  type ServerReceiver,
} from '../server/server-connection.js'
import { isFatal } from '../server/server-error.js'
import { backend } from '../wire/tags.js'

export interface FinishOutput {
  forward(buffer: Buffer, start: number, end: number): void
  append(bytes: Buffer): void
  /** False: no more until the client has read. */
  flush(): boolean
}

export interface Finish {
  readonly server: ServerConnection
  readonly output: FinishOutput
  /** Frames up to one ReadyForQuery. */
  readonly frames: Buffer
  /** A Describe of the statement comes first. */
  readonly describesStatement: boolean
  readonly describesPortal: boolean
  readonly isExtended: boolean
  /** Rows go to the output whole. */
  readonly wholeRows?: boolean
  /** Rows are the client's. */
  readonly executes: boolean
  /** What goes out before the first of the answer; `description` answers Describe of the statement. */
  opening(description: Buffer): Buffer
  /** The statement has failed. Gives what is sent in the place of the server's ErrorResponse, if anything. */
  failed(): Buffer | undefined
}

export interface Finished {
  /** Absent when the statement failed: its error has gone out. */
  readonly tag?: string
  /** The server is gone, and the client has not been told. */
  readonly lost?: EngineError
}

const rollback = queryFrame('ROLLBACK')

export class FinishReply implements ServerReceiver {
  readonly wholeRows: boolean
  readonly #finish: Finish
  readonly #done: Deferred<Finished> = deferred()
  #isOpened = false
  #description: Buffer[] = []
  #isDescribing: boolean
  #readiesLeft = 2
  #tag: string | undefined
  #hasFailed = false
  #isPaused = false

  constructor(finish: Finish) {
    this.#finish = finish
    this.wholeRows = finish.wholeRows ?? false
    this.#isDescribing = finish.describesStatement
  }

  /** Resolves when the statement has been answered and the copies are gone. */
  start(): Promise<Finished> {
    const { server, frames } = this.#finish
    server.receiver = this
    server.write(Buffer.concat([frames, rollback]), 2)
    return this.#done.promise
  }

  /** The client has read what was waiting. */
  clientDrained(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    if (!this.#finish.server.closed) this.#finish.server.socket.resume()
  }

  rows(buffer: Buffer, start: number, end: number): void {
    if (this.#finish.executes) this.#finish.output.forward(buffer, start, end)
  }

  endOfRead(): void {
    if (this.#finish.output.flush() || this.#isPaused || this.#readiesLeft === 0) return
    this.#isPaused = true
    this.#finish.server.socket.pause()
  }

  serverLost(error: EngineError): void {
    // behind the statement's own end nothing of it can be lost any more
    if (this.#readiesLeft === 1 || this.#hasFailed) this.#done.resolve(this.#outcome())
    else this.#done.resolve({ lost: error })
  }

  frame(tag: number, buffer: Buffer, start: number, end: number): void {
    const { server } = this.#finish
    if (tag === backend.readyForQuery) {
      server.ready(buffer[start + 5] as number)
      if (--this.#readiesLeft === 0) this.#done.resolve(this.#outcome())
      return
    }
    if (tag === backend.parameterStatus) return server.parameterStatus(buffer, start, end)
    if (this.#readiesLeft === 2) this.#answer(tag, buffer, start, end)
  }

  #outcome(): Finished {
    return this.#tag === undefined || this.#hasFailed ? {} : { tag: this.#tag }
  }

  #answer(tag: number, buffer: Buffer, start: number, end: number): void {
    const { output } = this.#finish
    switch (tag) {
      case backend.parseComplete:
        return
      case backend.parameterDescription:
        this.#description.push(Buffer.from(buffer.subarray(start, end)))
        return
      case backend.bindComplete:
        return this.#open()
      case backend.rowDescription:
      case backend.noData:
        return this.#described(buffer, start, end)
      case backend.commandComplete:
        this.#tag = readCString(buffer, start + 5, end).text
        return
      case backend.errorResponse:
        return this.#failed(buffer, start, end)
      case backend.noticeResponse:
      case backend.copyOutResponse:
      case backend.copyDone:
        output.forward(buffer, start, end)
    }
  }

  #described(buffer: Buffer, start: number, end: number): void {
    const { isExtended, describesPortal, output } = this.#finish
    if (this.#isDescribing) {
      this.#isDescribing = false
      this.#description.push(Buffer.from(buffer.subarray(start, end)))
    } else if (!isExtended || describesPortal) output.forward(buffer, start, end)
  }

  #open(): void {
    if (this.#isOpened) return
    this.#isOpened = true
    this.#finish.output.append(this.#finish.opening(Buffer.concat(this.#description)))
  }

  #failed(buffer: Buffer, start: number, end: number): void {
    const { output } = this.#finish
    // the end of that server is not the end of the client's session: what is told is that it was lost
    if (isFatal(buffer, start, end)) return
    this.#hasFailed = true
    const own = this.#finish.failed()
    if (own) output.append(own)
    else output.forward(buffer, start, end)
  }
}
