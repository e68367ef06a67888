/**
 * Hands the replies of one server to one client: whole chunks go on untouched, and only the frames that end or
 * change something are looked at. What we asked for ourselves (settings, BEGIN, Parse) is swallowed in its place.
 * Never decides where a statement goes.
 */
import { RingQueue } from '../base/ring-queue.js'
import type { EngineError } from '../errors/engine-error.js'
import type { ServerConnection, ServerReceiver } from '../server/server-connection.js'
import { type SharedStatement, shapeOf } from '../server/shared-statement.js'
import { backend } from '../wire/tags.js'

/** Where relayed bytes go. */
export interface RelayOutput {
  forward(buffer: Buffer, start: number, end: number): void
  append(bytes: Buffer): void
  /** False: pause the server until the client has read. */
  flush(): boolean
}

/** What the server still owes, in the order in which it was asked. */
export interface Expectation {
  readonly kind: 'query' | 'sync' | 'parse' | 'bind' | 'describe' | 'execute' | 'close' | 'insert'
  /** The reply is ours, not the client's. */
  readonly skip?: boolean
  /** With query: its ReadyForQuery is not the client's, because another query of ours follows. */
  readonly holdsReady?: boolean
  /** With skip: an error does not matter. */
  readonly isLenient?: boolean
  /** With parse: becomes prepared on the server when confirmed. With describe: whose columns the reply tells. */
  readonly statement?: SharedStatement
  /** With insert: sent to the client when its turn comes. */
  readonly bytes?: Buffer
  /** Sent to the client in the place of the ErrorResponse that this message was made to cause. */
  readonly planted?: Buffer
  /** With query: makes the client's own of an ErrorResponse, when the server heard another text. The frame is borrowed. */
  readonly reworded?: (frame: Buffer) => Buffer
  /** With skip: hears the rows, in pieces; borrowed. */
  readonly rows?: (buffer: Buffer, start: number, end: number) => void
  /** With skip: hears the tag of CommandComplete. */
  readonly completed?: (tag: string) => void
  /** Called when the reply has come without error. */
  readonly done?: (() => void) | undefined
}

/** What the session hears. Frames are borrowed. */
export interface RelayListener {
  /** CommandComplete or EmptyQueryResponse of the client's own statement, before it is forwarded. Returns bytes to send instead, if any. */
  completed(buffer: Buffer, start: number, end: number): Buffer | undefined
  /** ErrorResponse, before it is forwarded. Returns bytes to send instead, if any. */
  failed(buffer: Buffer, start: number, end: number): Buffer | undefined
  /** A statement of ours (settings, BEGIN) failed: the server is not fit for the client's request. */
  preludeFailed(buffer: Buffer, start: number, end: number): void
  copyIn(): void
  /** ReadyForQuery of the client's own request, before it is forwarded; the status byte to send, or 0: the listener sends it later. */
  ready(status: number): number
  /** ReadyForQuery was sent, and nothing is owed any more. */
  finished(): void
  /** A ParameterStatus, which is not forwarded: what differs from what the client knows is told before ReadyForQuery. */
  parameterStatus(buffer: Buffer, start: number, end: number): void
  /** True while the client listens: no other client's notifications may reach it. */
  listens(): boolean
  lost(error: EngineError): void
}

export class Relay implements ServerReceiver {
  /** The server's socket takes bytes again. */
  onDrained: (() => void) | undefined
  readonly #server: ServerConnection
  readonly #output: RelayOutput
  readonly #listener: RelayListener
  readonly #owed = new RingQueue<Expectation>()
  #paused = false
  /** After an error, before its Sync was sent: the server answers nothing else. */
  #skipsToSync = false

  constructor(server: ServerConnection, output: RelayOutput, listener: RelayListener) {
    this.#server = server
    this.#output = output
    this.#listener = listener
  }

  get owes(): boolean {
    return this.#owed.size > 0
  }

  expect(expectation: Expectation): void {
    if (this.#skipsToSync) {
      if (!endsRequest(expectation)) return
      this.#skipsToSync = false
    }
    if (expectation.kind === 'insert' && this.#owed.size === 0) {
      this.#output.append(expectation.bytes as Buffer)
      expectation.done?.()
      return
    }
    this.#owed.push(expectation)
  }

  /** Drops a Sync that the server will not answer, because it came while COPY FROM was under way. */
  forgetSync(): void {
    const kept = [...this.#owed]
    this.#server.isUnsynced = true
    // anything but a Sync behind it makes the server fail, and that Sync will be answered
    if (kept[1]?.kind !== 'sync') return
    kept.splice(1, 1)
    this.#owed.clear()
    for (const expectation of kept) this.#owed.push(expectation)
    this.#server.outstanding--
  }

  rows(buffer: Buffer, start: number, end: number): void {
    const head = this.#owed.peek()
    if (!head?.skip) this.#output.forward(buffer, start, end)
    else head.rows?.(buffer, start, end)
  }

  endOfRead(): void {
    if (this.#output.flush() || this.#paused || this.#server.receiver !== this) return
    this.#paused = true
    this.#server.socket.pause()
  }

  /** The client has read what was waiting. */
  clientDrained(): void {
    if (!this.#paused) return
    this.#paused = false
    this.#server.socket.resume()
  }

  drained(): void {
    this.onDrained?.()
  }

  serverLost(error: EngineError): void {
    this.#listener.lost(error)
  }

  frame(tag: number, buffer: Buffer, start: number, end: number): void {
    switch (tag) {
      case backend.readyForQuery:
        return this.#ready(buffer, start, end)
      case backend.commandComplete:
      case backend.emptyQueryResponse:
      case backend.portalSuspended:
        return this.#completed(buffer, start, end)
      case backend.errorResponse:
        return this.#failed(buffer, start, end)
      case backend.parseComplete:
        return this.#parsed(buffer, start, end)
      case backend.bindComplete:
      case backend.closeComplete:
        return this.#answered(buffer, start, end)
      case backend.rowDescription:
      case backend.noData:
        return this.#described(buffer, start, end)
      case backend.parameterStatus:
        this.#server.parameterStatus(buffer, start, end)
        this.#listener.parameterStatus(buffer, start, end)
        return
      case backend.noticeResponse:
        if (!this.#owed.peek()?.skip) this.#output.forward(buffer, start, end)
        return
      case backend.copyInResponse:
        this.#output.forward(buffer, start, end)
        if (this.#owed.peek()?.kind === 'execute') this.forgetSync()
        return this.#listener.copyIn()
      case backend.notificationResponse:
        if (this.#listener.listens()) this.#output.forward(buffer, start, end)
        return
      default:
        this.#output.forward(buffer, start, end)
    }
  }

  /** Takes the head, sends it on when it is the client's, and sends what waited behind it. */
  #answered(buffer: Buffer, start: number, end: number): void {
    const head = this.#owed.shift()
    if (!head?.skip) this.#output.forward(buffer, start, end)
    head?.done?.()
    this.#inserts()
  }

  #parsed(buffer: Buffer, start: number, end: number): void {
    const statement = this.#owed.peek()?.statement
    if (statement) this.#server.notePrepared(statement)
    this.#answered(buffer, start, end)
  }

  #described(buffer: Buffer, start: number, end: number): void {
    const head = this.#owed.peek()
    if (head?.kind === 'describe') {
      if (head.statement) head.statement.shape ??= shapeOf(buffer, start, end)
      return this.#answered(buffer, start, end)
    }
    if (!head?.skip) this.#output.forward(buffer, start, end)
  }

  #completed(buffer: Buffer, start: number, end: number): void {
    const head = this.#owed.peek()
    if (head?.skip) {
      head.completed?.(buffer.toString('latin1', start + 5, end - 1))
      return
    }
    const instead = this.#listener.completed(buffer, start, end)
    if (instead) this.#output.append(instead)
    else this.#output.forward(buffer, start, end)
    if (head?.kind !== 'execute') return
    this.#owed.shift()
    head.done?.()
    this.#inserts()
  }

  #failed(buffer: Buffer, start: number, end: number): void {
    const head = this.#owed.peek()
    if (head?.isLenient) {
      if (head.kind !== 'query') this.#owed.shift()
      return
    }
    if (head?.skip && head.kind === 'query') return this.#listener.preludeFailed(buffer, start, end)
    const instead = this.#listener.failed(buffer, start, end)
    if (head?.planted) this.#output.append(head.planted)
    else if (head?.reworded) this.#output.append(head.reworded(buffer.subarray(start, end)))
    else if (instead) this.#output.append(instead)
    else this.#output.forward(buffer, start, end)
    // the server skips all messages up to the Sync
    while (this.#owed.size > 0 && !endsRequest(this.#owed.peek())) this.#owed.shift()
    this.#skipsToSync = this.#owed.size === 0
  }

  #ready(buffer: Buffer, start: number, end: number): void {
    const status = buffer[start + 5] as number
    this.#server.ready(status)
    const head = this.#owed.shift()
    if (head?.holdsReady || (head?.skip && this.#owed.size > 0)) {
      head.done?.()
      return this.#inserts()
    }
    if (head?.skip && !head.isLenient) {
      head.done?.()
      return
    }
    const shown = this.#listener.ready(status)
    if (shown === 0) {
      head?.done?.()
      return
    }
    if (shown === status) this.#output.forward(buffer, start, end)
    else this.#output.append(readyFrame(shown))
    head?.done?.()
    this.#inserts()
    if (this.#owed.size === 0) this.#listener.finished()
  }

  #inserts(): void {
    for (let head = this.#owed.peek(); head?.kind === 'insert'; head = this.#owed.peek()) {
      this.#output.append(head.bytes as Buffer)
      this.#owed.shift()
      head.done?.()
    }
  }
}

const endsRequest = (expectation: Expectation | undefined): boolean =>
  expectation?.kind === 'sync' || expectation?.kind === 'query'

/** ReadyForQuery with the status byte. */
export const readyFrame = (status: number): Buffer => Buffer.from([0x5a, 0, 0, 0, 5, status])
