/** One shard's part of a COPY FROM STDIN: its server, from the statement to ReadyForQuery. */
import { deferred } from '../../base/deferred.js'
import type { EngineError } from '../../errors/engine-error.js'
import type { ServerReceiver } from '../../server/server-connection.js'
import { serverErrorOf } from '../../server/server-error.js'
import { FrameWriter } from '../../wire/frame-writer.js'
import { backend, frontend } from '../../wire/tags.js'
import type { HeldServer } from '../state/held-servers.js'

export interface CopyShardResult {
  readonly rows: number
  /** Absent, too, when the server has only said that it was told to fail. */
  readonly error?: EngineError
}

/** query_canceled: what a CopyFail is answered with. */
const CANCELED = '57014'

const doneFrame = new FrameWriter(8).begin(frontend.copyDone).end().take()
const failFrame = new FrameWriter(64)
  .begin(frontend.copyFail)
  .cstring('another shard failed')
  .end()
  .take()

export class CopyShard implements ServerReceiver {
  readonly number: number
  /** The CopyInResponse, to be sent to the client. */
  response: Buffer | undefined
  onDrained: (() => void) | undefined
  /** An error came while data was expected. */
  onFailed: (() => void) | undefined
  /** A notice for the client: borrowed. */
  onNotice: ((frame: Buffer) => void) | undefined
  readonly #held: HeldServer
  readonly #opened = deferred<void>()
  readonly #result = deferred<CopyShardResult>()
  #error: EngineError | undefined
  #rows = 0
  #takesData = false
  #wasFailed = false

  constructor(held: HeldServer, copyStatement: Buffer) {
    this.#held = held
    this.number = held.shard
    held.server.receiver = this
    held.server.write(copyStatement, 1)
  }

  /** Resolves when the server takes data; rejects with its error, after its ReadyForQuery. */
  get opened(): Promise<void> {
    return this.#opened.promise
  }

  /** After ReadyForQuery, or the loss of the server. */
  get result(): Promise<CopyShardResult> {
    return this.#result.promise
  }

  /** False: the socket is full, wait for `onDrained`. */
  send(header: Buffer, bytes: Buffer): boolean {
    if (!this.#takesData) return true
    const { server } = this.#held
    server.write(header, 0)
    return server.write(bytes, 0)
  }

  done(): void {
    if (this.#takesData) this.#held.server.write(doneFrame, 0)
    this.#takesData = false
  }

  fail(): void {
    if (this.#takesData) this.#held.server.write(failFrame, 0)
    if (this.#takesData) this.#wasFailed = true
    this.#takesData = false
  }

  /** The client has gone; whoever recovers the server reads its replies. */
  abandon(): void {
    this.fail()
    this.#result.resolve({ rows: 0 })
  }

  rows(): void {
    // COPY FROM has none
  }

  endOfRead(): void {
    // nothing goes to the client from here
  }

  drained(): void {
    this.onDrained?.()
  }

  serverLost(error: EngineError): void {
    this.#fail(error)
    this.#settle()
  }

  frame(tag: number, buffer: Buffer, start: number, end: number): void {
    const { server } = this.#held
    switch (tag) {
      case backend.copyInResponse:
        this.response = Buffer.from(buffer.subarray(start, end))
        this.#takesData = true
        this.#opened.resolve()
        break
      case backend.commandComplete:
        this.#rows = Number(/(\d+)$/.exec(buffer.toString('latin1', start + 5, end - 1))?.[1] ?? 0)
        break
      case backend.errorResponse:
        this.#fail(serverErrorOf(buffer, start, end))
        break
      case backend.noticeResponse:
        this.onNotice?.(buffer.subarray(start, end))
        break
      case backend.parameterStatus:
        server.parameterStatus(buffer, start, end)
        break
      case backend.readyForQuery:
        server.ready(buffer[start + 5] as number)
        server.receiver = this.#held.relay
        this.#settle()
        break
    }
  }

  #fail(error: EngineError): void {
    if (this.#wasFailed && error.sqlstate === CANCELED) return
    this.#error ??= error
    const wasTaking = this.#takesData
    this.#takesData = false
    if (wasTaking) this.onFailed?.()
  }

  #settle(): void {
    const error = this.#error
    if (error) this.#opened.promise.catch(() => undefined)
    if (error) this.#opened.reject(error)
    this.#result.resolve({ rows: this.#rows, ...(error ? { error } : {}) })
  }
}
