/**
 * One client's conversation after its login: frames in, requests one after the other, replies out. It gathers, queues
 * and watches limits; what a request does is decided by simple-query.ts and extended-query.ts.
 */
import { type EngineError, engineError, toEngineError } from '../errors/engine-error.js'
import type { ByteSocket } from '../net/byte-socket.js'
import { FrameReader, tagName } from '../wire/frame-reader.js'
import { frontend } from '../wire/tags.js'
import { errorFrame } from './answers.js'
import { newFigures } from './client-figures.js'
import { ClientOutput } from './client-output.js'
import { ClientCopy } from './copy/client-copy.js'
import type {
  ClientFigures,
  ClientHandle,
  ClientHoldings,
  RequestWatch,
  SessionEnvironment,
} from './environment.js'
import { FrameQueue } from './frame-queue.js'
import { RequestTimers } from './request-timers.js'
import { readBatchItem, statementText } from './requests/batch.js'
import { ExtendedQuery } from './requests/extended-query.js'
import { ShardedRequests } from './requests/over-shards/sharded-requests.js'
import { runFunctionCall, runSimpleQuery } from './requests/simple-query.js'
import { SessionCore } from './session-core.js'
import { holdingsOf } from './session-holdings.js'
import type { SessionOptions } from './session-options.js'
import { unquote } from './sql-literal.js'
import type { HeldServer } from './state/held-servers.js'
import { recoverServers } from './state/recover-servers.js'

/** Bytes of requests that may wait behind the running one before the client is no longer read. */
const QUEUE_HIGH_WATER_BYTES = 1_048_576

export class Session implements ClientHandle {
  readonly user: string
  readonly database: string
  readonly connectedAtMs: number
  readonly figures: ClientFigures = newFigures()
  /** Called once, when the client has gone. */
  onGone: (() => void) | undefined
  readonly #socket: ByteSocket
  readonly #environment: SessionEnvironment
  readonly #core: SessionCore
  readonly #extended: ExtendedQuery
  readonly #sharded: ShardedRequests
  readonly #reader: FrameReader
  readonly #queue: FrameQueue
  #isBusy = false
  /** Nothing waits, and only reads that share a server have run since that was looked at: the next may run without another look. */
  #isCalm = false
  #lastRequestMs: number
  #isDraining = false
  #isGone = false
  readonly #copy: ClientCopy
  readonly #watch: RequestWatch | undefined
  readonly #timers: RequestTimers
  #endsBecause: EngineError | undefined
  /** A Query that came behind messages without a Sync, which are answered first. */
  #behind: Buffer | undefined

  constructor(options: SessionOptions) {
    const { socket, environment, access } = options
    this.user = options.user
    this.database = options.database
    this.#socket = socket
    this.#queue = new FrameQueue(socket, QUEUE_HIGH_WATER_BYTES)
    this.#environment = environment
    this.#watch = environment.watchRequests?.(options.user, options.database)
    this.connectedAtMs = environment.clock.nowMs()
    this.#lastRequestMs = environment.clock.monotonicMs()
    this.#timers = new RequestTimers(environment.clock, access.limits, {
      requestIsLate: (limit) => {
        this.#core.timedOut = engineError('SESSION_QUERY_TIMEOUT', { limit })
        void this.cancel()
      },
      isIdle: (isOpen) =>
        this.#die(engineError(isOpen ? 'SESSION_IDLE_IN_TRANSACTION' : 'SESSION_IDLE')),
    })
    this.#core = new SessionCore({
      environment,
      access,
      output: new ClientOutput(socket),
      transaction: options.transaction,
      figures: this.figures,
      told: options.told,
      identity: options,
      hooks: {
        requestEnded: () => this.#requestEnded(),
        sharedEnded: () => this.#sharedEnded(),
        waitEnded: () => this.#runBehind(),
        copyStarted: (held) => this.#copyStarted(held),
        copyEnded: () => this.#copyEnded(),
        ends: () => {
          socket.end()
          this.#gone()
        },
        mustEnd: (error, now) => this.end(now, error),
        runAgain: (query) => this.#runQuery(query),
        shardedCopy: (statement, plan, text) => this.#copy.toShards({ statement, plan, text }),
      },
    })
    this.#copy = new ClientCopy(this.#core, socket, this.#queue)
    this.#sharded = new ShardedRequests(this.#core)
    this.#extended = new ExtendedQuery(this.#core, this.#sharded)
    this.#reader = new FrameReader((tag, buffer, start, end) =>
      this.#frame(tag, buffer, start, end),
    )
    socket.onDrain = () => this.#core.clientDrained()
    socket.onClose = () => this.#gone()
    this.#timers.rests(false)
  }

  get lastRequestAtMs(): number {
    const { clock } = this.#environment
    const lastMs = Math.max(this.#lastRequestMs, this.#core.lastSharedMs)
    return clock.nowMs() - (clock.monotonicMs() - lastMs)
  }

  get address(): string {
    return this.#socket.remoteAddress
  }

  get port(): number {
    return this.#socket.remotePort
  }

  get encrypted(): boolean {
    return this.#socket.encrypted
  }

  get applicationName(): string {
    return unquote(this.#core.transaction.settings.values.get('application_name') ?? '')
  }

  get state(): ClientHandle['state'] {
    if (this.#core.isWaiting || this.#core.pipelined.isWaiting) return 'waiting'
    if (this.#isBusy) return 'active'
    return this.#core.transaction.isExplicit ? 'idle in transaction' : 'idle'
  }

  get waitsFor(): string | undefined {
    return this.#core.held.waitsFor ?? this.#core.pipelined.waitsFor
  }

  get pins(): readonly string[] {
    return [...this.#core.held.pins]
  }

  get preparedStatements(): number {
    return this.#core.statements.size
  }

  get holdings(): ClientHoldings {
    return holdingsOf(this.#core, this.#reader.pendingBytes)
  }

  get isQuiet(): boolean {
    return !this.#isBusy && !this.#core.running && !this.#core.transaction.isExplicit
  }

  /** Bytes of the client; borrowed. */
  receive(chunk: Buffer): void {
    this.figures.bytesReceived += chunk.length
    try {
      if (this.#isCalm && !this.#isBusy) {
        this.#isBusy = true
        if (this.#core.pipelined.runOn(chunk)) return
        this.#isBusy = false
      }
      this.#isCalm = false
      if (!this.#isAlike(chunk)) this.#reader.push(chunk)
    } catch (error) {
      this.#die(toEngineError(error))
    }
  }

  /** A batch like the one before it, which runs without being read. */
  #isAlike(chunk: Buffer): boolean {
    if (chunk[0] !== frontend.parse && chunk[0] !== frontend.bind) return false
    if (this.#reader.pendingBytes > 0 || this.#queue.size > 0 || this.#mustQueue) return false
    if (this.#isGone || this.#watch || this.#copy.isThere || this.#extended.isOpen) return false
    if (this.#core.running) return false
    return this.#core.pipelined.runAlikeBatch(chunk, () => this.#startRequest())
  }

  /** Kept when no server can be hit by it any more. */
  async cancel(): Promise<void> {
    const { held } = this.#core
    if (!this.#isBusy && !this.#core.running) return
    this.#core.cancelled = true
    // a server that is shared takes nothing more of this client until the cancel has arrived
    if (this.#core.pipelined.cancel()) return
    if (held.isWaiting) return held.stopWaiting()
    held.cancel()
    await held.whenGivenBack()
  }

  end(now: boolean, error = engineError('SESSION_SHUTDOWN')): void {
    if (now || this.isQuiet) this.#die(error)
    else this.#endsBecause ??= error
  }

  #frame(tag: number, buffer: Buffer, start: number, end: number): void {
    if (this.#isGone) return
    if (this.#copy.takes(tag, buffer, start, end)) return
    if (this.#mustQueue || this.#queue.size > 0) return this.#queue.push(buffer, start, end)
    this.#handle(tag, buffer, start, end)
  }

  /** A request runs, or one that was flushed waits for its server or for room on the way there. */
  get #mustQueue(): boolean {
    if (this.#behind !== undefined || this.#core.transaction.schemaReads > 0) return true
    if (this.#extended.isLeaving) return true
    return this.#isBusy || this.#core.isWaiting || this.#extended.awaitsCopy || this.#isServerFull
  }

  /** What was flushed to a server stands in our memory still: it must leave before more is taken. */
  get #isServerFull(): boolean {
    if (!this.#core.running?.awaitsSync) return false
    const held = this.#core.held.first
    if (!held || held.server.socket.writableLength <= QUEUE_HIGH_WATER_BYTES) return false
    held.relay.onDrained = () => this.#drainQueue()
    return true
  }

  #handle(tag: number, buffer: Buffer, start: number, end: number): void {
    if (this.#skipsToSync && tag !== frontend.sync && tag !== frontend.terminate) return
    if (this.#watch && (tag === frontend.query || tag === frontend.parse))
      this.#watch.statement(() => statementText(buffer, start, end), end - start)
    switch (tag) {
      case frontend.query:
        if (!this.#extended.isOpen) return this.#query(buffer, start, end)
        this.#behind = Buffer.from(buffer.subarray(start, end))
        this.#extended.run('flush')
        return this.#runBehind()
      case frontend.parse:
      case frontend.bind:
      case frontend.describe:
      case frontend.execute:
      case frontend.close:
        return this.#extended.add(readBatchItem(Buffer.from(buffer.subarray(start, end))))
      case frontend.sync:
        this.#startRequest()
        return this.#extended.run('sync')
      case frontend.flush:
        return this.#extended.run('flush')
      case frontend.functionCall:
        this.#startRequest()
        return runFunctionCall(this.#core, Buffer.from(buffer.subarray(start, end)))
      case frontend.copyData:
      case frontend.copyDone:
      case frontend.copyFail:
        if (this.#extended.gathersCopy) {
          // its data may come before the Sync, which the server does not wait for
          this.#extended.run('flush')
          return this.#queue.push(buffer, start, end)
        }
        return // left over from a COPY that failed: ignored, as PostgreSQL does
      case frontend.terminate:
        this.#socket.end()
        return this.#gone()
      default:
        this.#die(engineError('WIRE_UNEXPECTED', { tag: tagName(tag), where: 'from a client' }))
    }
  }

  #query(buffer: Buffer, start: number, end: number): void {
    this.#startRequest()
    this.#extended.reset()
    if (this.#core.pipelined.runAlike(buffer, start, end)) return
    this.#runQuery(buffer.subarray(start, end))
  }

  #runQuery(frame: Buffer): void {
    runSimpleQuery(this.#core, this.#sharded, frame.toString('utf8', 5, frame.length - 1), frame)
  }

  /** Runs the Query that waits, once what was flushed before it is answered (JDBC sends BEGIN so). */
  #runBehind(): void {
    const frame = this.#behind
    if (!frame) return this.#drainQueue()
    if (this.#core.isWaiting || this.#core.transaction.schemaReads > 0) return
    const run = () => {
      if (this.#behind !== frame) return
      this.#behind = undefined
      if (!this.#skipsToSync) this.#query(frame, 0, frame.length)
      this.#drainQueue()
    }
    const { bound } = this.#extended
    if (!bound?.relay.owes || this.#skipsToSync) return run()
    this.#core.send(bound, [], [{ kind: 'insert', bytes: Buffer.alloc(0), done: run }], 0)
  }

  /** A flushed request has failed: what follows means nothing until its Sync. */
  get #skipsToSync(): boolean {
    const { running } = this.#core
    return running?.awaitsSync === true && running.failed
  }

  #startRequest(): void {
    this.#isBusy = true
    this.#timers.requestStarts()
    this.#lastRequestMs = this.#environment.clock.monotonicMs()
  }

  /** The end of a request that shared a server all the time: there is less to look at. */
  #sharedEnded(): void {
    if (!this.#isCalm && !this.#mayBeCalm) return this.#requestEnded()
    if (this.#endsBecause || this.#environment.isDraining) return this.#requestEnded()
    this.#isBusy = false
    this.#isCalm = true
    this.figures.bytesSent = this.#core.output.bytesSent
  }

  get #mayBeCalm(): boolean {
    if (!this.#timers.areOff || this.#watch || this.#isGone || this.#copy.isThere) return false
    if (this.#reader.pendingBytes > 0 || this.#queue.size > 0) return false
    return this.#behind === undefined && !this.#extended.isOpen
  }

  #requestEnded(): void {
    this.#isBusy = false
    this.#isCalm = false
    this.#timers.requestEnded()
    this.#extended.reset()
    this.#copy.forget()
    this.figures.bytesSent = this.#core.output.bytesSent
    if (this.#isGone) return
    if (this.isQuiet && (this.#endsBecause || this.#environment.isDraining)) {
      if (this.#queue.size === 0) return this.end(true, this.#endsBecause)
    }
    if (this.#core.held.size > 0) this.#core.held.watchPinned()
    this.#timers.rests(this.#core.transaction.isExplicit)
    this.#drainQueue()
  }

  /** Requests that came while another ran. Not recursive: a request may end before `#handle` returns. */
  #drainQueue(): void {
    if (this.#isDraining || this.#queue.size === 0) return
    this.#isDraining = true
    try {
      while (!this.#mustQueue && !this.#isGone && this.#queue.size > 0) {
        const frame = this.#queue.shift()
        this.#handle(frame[0] as number, frame, 0, frame.length)
      }
    } catch (error) {
      this.#die(toEngineError(error))
    } finally {
      this.#isDraining = false
    }
  }

  #copyStarted(held: HeldServer): void {
    const { running } = this.#core
    const protocol = running?.protocol ?? 'simple'
    const isExtended = protocol === 'extended'
    this.#copy.toServer(held, protocol, () => {
      // what follows the data belongs to the same request, which its Sync ends
      if (isExtended) this.#isBusy = false
    })
    if (isExtended && running) {
      running.awaitsSync = true
      this.#extended.stayOn(held)
    }
    this.#copy.feed()
    this.#drainQueue()
  }

  /** The server has failed the COPY, or the request is over. */
  #copyEnded(): void {
    this.#copy.ended()
    this.#extended.awaitsCopy = false
    if (this.#behind && this.#skipsToSync) this.#runBehind()
    else this.#drainQueue()
  }

  /** Ends the session with a FATAL. */
  #die(error: EngineError): void {
    if (this.#isGone) return
    this.#core.output.append(errorFrame(error, 'FATAL'))
    this.#core.output.flush()
    this.#socket.end()
    this.#gone()
  }

  #gone(): void {
    if (this.#isGone) return
    this.#isGone = true
    this.#isCalm = false
    this.#timers.stop()
    this.#copy.stop()
    this.#queue.clear()
    this.#core.pipelined.leave()
    this.figures.bytesSent = this.#core.output.bytesSent
    recoverServers(this.#core).catch((error) =>
      this.#environment.log.warn('a server could not be recovered', { reason: String(error) }),
    )
    this.onGone?.()
  }
}
