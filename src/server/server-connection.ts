/**
 * One connection to a PostgreSQL server after its startup: bytes out, replies in, and what the server is known to
 * hold (parameters, settings, prepared statements). It never decides where a statement goes.
 */
import { type EngineError, engineError, toEngineError } from '../errors/engine-error.js'
import type { ByteSocket } from '../net/byte-socket.js'
import { FrameWriter } from '../wire/frame-writer.js'
import { backend, frontend, TX_IDLE } from '../wire/tags.js'
import { sendCancel } from './cancel.js'
import { QueryReceiver, type ServerResult } from './query-receiver.js'
import { readCString } from './read-cstring.js'
import { type ReplyReceiver, ReplyScanner } from './reply-scanner.js'
import type { ServerTarget } from './server-target.js'
import { Settings } from './settings.js'
import { type NumbersHolder, typesOnShard } from './shard-numbers.js'
import { NamesOnServer, PreparedOnServer, type SharedStatement } from './shared-statement.js'
import { noTraffic } from './traffic.js'

/** SQL names few statements; the rest of the limit is the protocol's. */
const MOST_NAMES = 100

/** What startup has learned. */
export interface StartedServer {
  readonly socket: ByteSocket
  readonly parameters: Map<string, string>
  readonly processId: number
  readonly cancelKey: Buffer
  /** The most prepared statements that it may hold (`prepared_statements_limit`). */
  readonly preparedLimit: number
}

/** Takes asynchronous messages of a server that nobody is talking to. */
export interface IdleListener {
  /** NotificationResponse, NoticeResponse or ParameterStatus, whole; borrowed. */
  frame(tag: number, buffer: Buffer, start: number, end: number): void
}

export class ServerConnection {
  readonly target: ServerTarget
  readonly socket: ByteSocket
  readonly parameters: Map<string, string>
  readonly processId: number
  readonly cancelKey: Buffer
  readonly prepared: PreparedOnServer
  /** Statements under names of clients, for SQL. */
  readonly names: NamesOnServer
  /** The settings put on by us or by the client that used it last. */
  settings: Settings = Settings.none
  /** Session state may have been changed in a way that cannot be read from statements (hard-parts §2). */
  tainted = false
  /** Prepared statements to be closed before the next request. */
  closing: SharedStatement[] = []
  /** Whose unnamed statement the server holds. */
  unnamed: SharedStatement | undefined
  /** 'I', 'T' or 'E' of the last ReadyForQuery, as its byte. */
  status: number = TX_IDLE
  /** ReadyForQuery still to come. */
  outstanding = 0
  /** The error that ended the connection. */
  lost: EngineError | undefined
  onIdle: IdleListener | undefined
  /** What passed since it was opened, our own checks and settings too. */
  readonly traffic = noTraffic()
  /** Called once when the connection has ended, after the receiver heard of it. */
  onClose: (() => void) | undefined
  readonly #scanner: ReplyScanner
  /** Messages were flushed to it whose Sync has not followed: replies may still come, and its transaction is open. */
  isUnsynced = false
  #receiver: ServerReceiver | undefined
  /** Hears the answer of a question of our own; `#receiver` hears what comes behind it. */
  #asking: QueryReceiver | undefined
  /** What waits for the end of that question, in order. */
  readonly #behind: (() => void)[] = []

  constructor(target: ServerTarget, started: StartedServer) {
    this.target = target
    this.socket = started.socket
    this.parameters = started.parameters
    this.processId = started.processId
    this.cancelKey = started.cancelKey
    const named = Math.max(1, Math.min(started.preparedLimit / 4, MOST_NAMES))
    this.names = new NamesOnServer(named)
    this.prepared = new PreparedOnServer(started.preparedLimit - named)
    this.#scanner = new ReplyScanner(this.#idleReceiver, this.traffic)
    this.socket.onChunk = (chunk) => this.#read(chunk)
    this.socket.onClose = (error) => this.#closed(error)
    this.socket.onDrain = () => this.#receiver?.drained?.()
  }

  /** A part of a row went to the receiver, and the rest has not come. */
  get isInRow(): boolean {
    return this.#scanner.isInRow
  }

  /** Bytes that it keeps. */
  get memory(): ConnectionMemory {
    const { used, setAside } = this.#scanner.kept
    return {
      usedBytes: used,
      setAsideBytes: setAside,
      unsentBytes: this.socket.writableLength,
      preparedBytes: this.prepared.bytes,
    }
  }

  get serverVersion(): number {
    return versionNumber(this.parameters.get('server_version') ?? '0')
  }

  get closed(): boolean {
    return this.lost !== undefined
  }

  /** True when nothing is under way and no transaction is open: fit to be lent to another client. */
  get isIdle(): boolean {
    return this.outstanding === 0 && this.status === TX_IDLE && !this.closed && !this.isUnsynced
  }

  get receiver(): ServerReceiver | undefined {
    return this.#receiver
  }

  /** Who hears the replies from now on, behind that of a question under way; undefined while the server is idle. */
  set receiver(receiver: ServerReceiver | undefined) {
    this.#receiver = receiver
    if (this.#asking === undefined) this.#scanner.receiver = receiver ?? this.#idleReceiver
  }

  /**
   * Sends bytes; `syncs` is the number of Query and Sync messages among them.
   * Borrowed memory is allowed. Returns false when the socket wants a pause (see `ServerReceiver.drained`).
   */
  write(bytes: Buffer, syncs: number): boolean {
    this.outstanding += syncs
    this.traffic.queries += syncs
    this.traffic.sent += bytes.length
    return this.socket.write(bytes)
  }

  /** How its numbers of types and tables become those of shard 0. */
  get numbers(): NumbersHolder | undefined {
    return this.#scanner.numbers
  }

  set numbers(holder: NumbersHolder | undefined) {
    this.#scanner.numbers = holder
  }

  /** Types that a client declares by the numbers of shard 0, in those of this server. */
  typesHere(types: readonly number[]): readonly number[] {
    return types.length === 0 ? types : typesOnShard(types, this.#scanner.numbers?.current)
  }

  /** The same for [0, end) of memory of the caller's, which he uses again as soon as the call returns. */
  writeCopied(bytes: Buffer, end: number, syncs: number): boolean {
    this.outstanding += syncs
    this.traffic.queries += syncs
    this.traffic.sent += end
    return this.socket.writeCopied(bytes, 0, end)
  }

  /** Whether it holds the statement; one that waits to be closed is kept instead. */
  hasPrepared(statement: SharedStatement): boolean {
    if (this.prepared.has(statement)) return true
    const at = this.closing.indexOf(statement)
    if (at < 0) return false
    this.closing.splice(at, 1)
    this.closing.push(...this.prepared.add(statement))
    return true
  }

  /** Notes that the server confirmed Parse; statements that this pushes out are closed with the next request. */
  notePrepared(statement: SharedStatement): void {
    if (this.prepared.has(statement)) return
    this.traffic.preparedMisses++
    const pushedOut = this.prepared.add(statement)
    if (pushedOut.length === 0) return
    this.traffic.preparedEvictions += pushedOut.length
    this.closing.push(...pushedOut)
  }

  /** DEALLOCATE ALL, or more, has run. */
  forgetStatements(): void {
    this.prepared.clear()
    this.names.clear()
    this.closing = []
  }

  /** Notes ReadyForQuery; whoever receives frames must call it for each. */
  ready(status: number): void {
    this.outstanding--
    this.status = status
    if (status === TX_IDLE) this.traffic.transactions++
  }

  /** Notes a ParameterStatus; whoever receives frames must call it for each. */
  parameterStatus(buffer: Buffer, start: number, end: number): void {
    const name = readCString(buffer, start + 5, end)
    const value = readCString(buffer, name.next, end)
    this.parameters.set(name.text, value.text)
  }

  /**
   * Runs a simple query on an idle connection (or one in a transaction) and collects its rows as text.
   * @throws as `ask`
   */
  query(sql: string): Promise<ServerResult[]> {
    return this.ask(queryFrame(sql), 1)
  }

  /**
   * Sends bytes with `syncs` Query and Sync messages and collects what they are answered, each caller his own: who asks
   * while a question is under way is asked behind it.
   * @throws the server's error, SERVER_LOST, or INTERNAL when the server owes somebody else a reply
   */
  ask(bytes: Buffer, syncs: number): Promise<ServerResult[]> {
    return new Promise((resolve, reject) => {
      this.#inTurn(() => {
        if (this.lost) return reject(this.lost)
        if (this.outstanding > 0) return reject(askedWhileBusy(this.label))
        this.#asking = new QueryReceiver(this, syncs, (error, results) => {
          this.#asking = undefined
          this.receiver = this.#receiver
          if (error) reject(error)
          else resolve(results)
          while (!this.#asking && this.#behind.length > 0) this.#behind.shift()?.()
        })
        this.#scanner.receiver = this.#asking
        this.write(bytes, syncs)
      })
    })
  }

  #inTurn(act: () => void): void {
    if (this.#asking) this.#behind.push(act)
    else act()
  }

  /** Reads and drops all replies still owed; COPY FROM that waits for data is failed. */
  drain(): Promise<void> {
    return new Promise((resolve, reject) => this.#inTurn(() => this.#drain(resolve, reject)))
  }

  #drain(resolve: () => void, reject: (error: EngineError) => void): void {
    if (this.lost) return reject(this.lost)
    if (this.outstanding === 0) return resolve()
    const fail = copyFailFrame
    this.receiver = {
      rows: () => undefined,
      endOfRead: () => undefined,
      serverLost: reject,
      frame: (tag, buffer, start, end) => {
        if (tag === backend.parameterStatus) this.parameterStatus(buffer, start, end)
        else if (tag === backend.copyInResponse) this.write(fail, 0)
        if (tag !== backend.readyForQuery) return
        this.ready(buffer[start + 5] as number)
        if (this.outstanding > 0) return
        this.receiver = undefined
        resolve()
      },
    }
    this.socket.resume()
    // a COPY FROM that has begun hears of the end; elsewhere the message is ignored
    this.write(fail, 0)
  }

  /** Asks the server to cancel what this connection runs; resolves when the server has closed the request's socket. */
  async cancel(): Promise<void> {
    await sendCancel(this.target, this.processId, this.cancelKey)
  }

  /** Says Terminate and closes. */
  close(): void {
    if (this.closed) return
    this.lost = engineError('SERVER_CLOSED_BY_US', { server: this.label })
    this.socket.end(terminate)
  }

  /** Drops the connection at once. */
  destroy(): void {
    this.lost ??= engineError('SERVER_CLOSED_BY_US', { server: this.label })
    this.socket.destroy()
  }

  /** `host:port` for messages. */
  get label(): string {
    return `${this.target.host}:${this.target.port}`
  }

  #read(chunk: Buffer): void {
    this.traffic.received += chunk.length
    try {
      this.#scanner.push(chunk)
    } catch (error) {
      this.lost ??= engineError(
        'SERVER_OUT_OF_STEP',
        { server: this.label, reason: toEngineError(error).message },
        { cause: error },
      )
      this.socket.destroy()
    }
  }

  #closed(error?: Error): void {
    this.lost ??= engineError(
      'SERVER_LOST',
      { server: this.label },
      { ...(error ? { cause: error } : {}), retry: this.outstanding === 0 ? 'safe' : 'unknown' },
    )
    const receiver = this.#receiver
    const asking = this.#asking
    this.receiver = undefined
    const isOwed = this.outstanding > (asking?.owed ?? 0)
    asking?.serverLost(this.lost)
    if (!asking || isOwed) receiver?.serverLost(this.lost)
    this.onClose?.()
  }

  readonly #idleReceiver: ReplyReceiver = {
    rows: () => undefined,
    endOfRead: () => undefined,
    frame: (tag, buffer, start, end) => {
      if (tag === backend.parameterStatus) this.parameterStatus(buffer, start, end)
      else if (tag === backend.readyForQuery) this.ready(buffer[start + 5] as number)
      else if (tag === backend.errorResponse) this.#idleError(buffer, start, end)
      this.onIdle?.frame(tag, buffer, start, end)
    },
  }

  /** A FATAL that comes to an idle server: the administrator ended it, or the server shuts down. */
  #idleError(buffer: Buffer, start: number, end: number): void {
    const text = buffer.toString('latin1', start + 5, end)
    const reason = /\0M([^\0]*)\0/.exec(`\0${text}`)?.[1] ?? 'unknown'
    this.lost ??= engineError('SERVER_ENDED', { server: this.label, reason })
  }
}

export interface ConnectionMemory {
  readonly usedBytes: number
  readonly setAsideBytes: number
  readonly unsentBytes: number
  readonly preparedBytes: number
}

/** A ReplyReceiver that also wants to hear of the end and of room to write. */
export interface ServerReceiver extends ReplyReceiver {
  serverLost(error: EngineError): void
  /** The socket to the server takes bytes again. */
  drained?(): void
}

const askedWhileBusy = (server: string): EngineError =>
  engineError('INTERNAL', { message: `server ${server} was asked while it owes others replies` })

/** A Query message. */
export function queryFrame(sql: string): Buffer {
  return new FrameWriter(sql.length + 16).begin(frontend.query).cstring(sql).end().take()
}

const copyFailFrame = new FrameWriter(64)
  .begin(frontend.copyFail)
  .cstring('the client has gone')
  .end()
  .take()
const terminate = new FrameWriter(8).begin(frontend.terminate).end().take()

/** `15.4 (Debian …)` → 150004, `18beta1` → 180000. */
export function versionNumber(text: string): number {
  const match = /^(\d+)(?:\.(\d+))?/.exec(text)
  return match ? Number(match[1]) * 10_000 + Number(match[2] ?? 0) : 0
}
