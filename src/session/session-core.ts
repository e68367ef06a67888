/**
 * What the parts of a session share: the client's output, its transaction, its statements, the servers it holds,
 * and the request that runs now. Sends requests to servers and keeps the books when the replies pass.
 */

import { type EngineError, engineError } from '../errors/engine-error.js'
import type { FanOut } from '../executor/fan-out.js'
import type { Expectation, RelayListener } from '../executor/relay.js'
import { readyFrame } from '../executor/relay.js'
import type { PlannedStatement, RouteContext } from '../plan/plan.js'
import { isFatal, sqlstateOf } from '../server/server-error.js'
import { errorFrame, parameterStatusFrame } from './answers.js'
import type { ClientOutput } from './client-output.js'
import type { ClientFigures, DatabaseAccess, SessionEnvironment } from './environment.js'
import type { Listening } from './listen/listening.js'
import { inOwnWords, limitError, saysNoServer } from './own-words.js'
import { RequestBooks } from './request-books.js'
import { PipelinedRequests } from './requests/pipelined.js'
import { runInTurn, SendAgain } from './requests/send-again.js'
import {
  type CoreParts,
  newRequest,
  newSharedRequest,
  type RequestScript,
  type RunningRequest,
  type SessionHooks,
} from './running-request.js'
import { sendBehind, sendNow } from './send-request.js'
import { applyCompleted, type CompletedStatement } from './state/apply-effects.js'
import { ClientStatements } from './state/client-statements.js'
import { type HeldServer, HeldServers } from './state/held-servers.js'
import { routeContextOf } from './state/route-context.js'
import type { Outgoing } from './state/seen-positions.js'
import { shardsInTurn } from './state/shard-turns.js'
import type { Transaction } from './state/transaction.js'

export class SessionCore {
  readonly environment: SessionEnvironment
  readonly access: DatabaseAccess
  readonly output: ClientOutput
  readonly transaction: Transaction
  readonly statements = new ClientStatements()
  readonly figures: ClientFigures
  readonly held: HeldServers
  /** The client's requests that share a server with others. */
  readonly pipelined: PipelinedRequests
  readonly identity: { readonly user: string; processId(): number }
  /** Made by the first LISTEN that no server shall run. */
  listening: Listening | undefined
  /** Parameter values as the client was last told; shared by clients who were told the same at login. */
  told: ReadonlyMap<string, string>
  running: RunningRequest | undefined
  /** Set while statements of the request run one by one: it hears the end of each in the place of the client. */
  script: RequestScript | undefined
  /** The shard for a statement that any can answer. */
  readonly nextShard: () => number
  readonly #books: RequestBooks
  #sawFatal = false
  /** One object for all requests that share a server. */
  readonly #shared: RunningRequest = newSharedRequest()
  readonly #changed = new Map<string, string>()
  /** What hands on the answer of several servers: it waits for the client to read. */
  fanOut: Pick<FanOut, 'clientDrained'> | undefined
  /** Runs the waiting request once more from its beginning; set while it waits for a server. */
  again: (() => void) | undefined
  readonly sendAgain = new SendAgain(this)
  cancelled = false
  /** Stands in for the answer of a request that was cancelled by a limit of ours. */
  timedOut: EngineError | undefined
  readonly hooks: SessionHooks

  constructor(options: CoreParts) {
    this.environment = options.environment
    this.access = options.access
    this.nextShard = shardsInTurn(this.access)
    this.output = options.output
    this.transaction = options.transaction
    this.figures = options.figures
    this.#books = new RequestBooks(options.figures, options.access)
    this.told = options.told
    this.hooks = options.hooks
    this.identity = options.identity
    this.held = new HeldServers(this, (held) => this.#listener(held))
    if (this.access.poolerMode === 'session') this.held.pins.add('session mode')
    this.pipelined = new PipelinedRequests(this)
  }

  /** A request waits for a server, or for the hub that listens for clients. */
  get isWaiting(): boolean {
    return this.held.isWaiting || this.listening?.isHearing === true
  }

  /** When the last request began that shares a server, by the monotonic clock. */
  get lastSharedMs(): number {
    return this.#shared.startedMs
  }

  get isSharded(): boolean {
    return this.access.planner.shardCount > 1
  }

  routeContext(types?: readonly number[], statement?: PlannedStatement): RouteContext {
    return routeContextOf(this, types, statement?.effects.cursor !== undefined)
  }

  /** Notes that a request runs; its statements are told apart by their CommandComplete. */
  begin(protocol: 'simple' | 'extended', statements: CompletedStatement[]): void {
    this.pipelined.disturb()
    this.running = newRequest(protocol, statements, this.environment.clock.monotonicMs())
    this.#books.starts(this.running.startedMs)
    this.cancelled = false
    this.timedOut = undefined
    this.listening?.requestStarts()
  }

  /** The same for a request that only reads and is expected to share a server; no listener, and nothing held. */
  beginShared(protocol: 'simple' | 'extended', nowMs: number, only: PlannedStatement): void {
    const running = this.#shared
    running.only = only
    running.protocol = protocol
    running.at = 0
    running.failed = false
    running.startedMs = nowMs
    this.running = running
    if (this.cancelled) this.cancelled = false
    if (this.timedOut) this.timedOut = undefined
  }

  /** Books at the end of such a request, when nothing else became of it. */
  endedShared(nowMs: number): void {
    const { running } = this
    this.running = undefined
    if (running) this.#books.ended(running, nowMs, false)
    this.hooks.sharedEnded()
  }

  /**
   * Sends a request to a held server, behind what the server must hear first.
   * `pieces` are owned, or borrowed for the call when the prelude needs no waiting.
   */
  send(held: HeldServer, pieces: Buffer[], expectations: Expectation[], syncs: number): void {
    if (held.deferred) {
      const owned = Buffer.concat(pieces)
      held.deferred.push(() => sendNow(held, owned, expectations, syncs))
      return
    }
    // in the middle of a request it has heard all it must, and an error there would make it skip more
    if (held.server.isUnsynced || pieces.length === 0)
      return sendNow(held, Buffer.concat(pieces), expectations, syncs)
    const out = { pieces, expectations, syncs }
    const isOpen = this.transaction.isExplicit
    this.#sendWhole(
      held,
      this.held.seen?.follow(held, out, this.running?.statements ?? [], isOpen) ?? out,
    )
  }

  /** A request up to its end. */
  #sendWhole(held: HeldServer, out: Outgoing): void {
    const prelude = this.held.prelude(held, this.transaction)
    this.pipelined.sent()
    sendBehind(held, prelude, out)
  }

  /** A server for the request, at once or after waiting; errors end the request. */
  withShard(shard: number, role: 'primary' | 'any', then: (held: HeldServer) => void): void {
    let acquired: HeldServer | Promise<HeldServer>
    try {
      acquired = this.held.acquire(shard, role)
    } catch (error) {
      this.fail(error as EngineError)
      return
    }
    if (!(acquired instanceof Promise)) return then(acquired)
    const from = this.environment.clock.monotonicMs()
    acquired.then(
      (held) => {
        this.figures.waitMs += this.environment.clock.monotonicMs() - from
        then(held)
        this.hooks.waitEnded()
      },
      (error: EngineError) =>
        this.fail(this.cancelled ? (this.timedOut ?? engineError('SESSION_CANCELLED')) : error),
    )
  }

  /** Ends the request with an error of ours. */
  fail(cause: EngineError): void {
    const error = cause.sqlstate === '57014' ? (this.timedOut ?? cause) : cause
    const { again } = this
    this.again = undefined
    // the shards were exchanged under a waiting request: nothing of it has run, so it is planned anew
    if (again && error.code === 'POOL_LAYOUT_CHANGED' && this.held.size === 0) {
      this.statements.dropUnconfirmed()
      return runInTurn(this, again)
    }
    this.figures.errors++
    if (this.access.dropsUnserved && saysNoServer(error)) return this.hooks.mustEnd(error, true)
    this.#spoil()
    this.output.append(errorFrame(error, 'ERROR'))
    if (!this.running?.awaitsSync) return this.#end()
    this.output.flush()
    this.hooks.waitEnded()
  }

  /** Books behind an error. */
  #spoil(): void {
    this.statements.dropUnconfirmed()
    if (this.running) this.running.failed = true
    if (this.transaction.isExplicit) this.transaction.fail()
    else this.transaction.undoImplicit()
  }

  /** An error of ours behind what the server has answered; its ReadyForQuery ends the request. */
  refuseAfterwards(error: EngineError): void {
    this.figures.errors++
    if (this.transaction.isExplicit) this.transaction.fail()
    this.output.append(errorFrame(error, 'ERROR'))
  }

  /** Ends the request with an answer of ours; ReadyForQuery is added. */
  answer(frames: Buffer): void {
    this.conclude(frames)
    this.#end()
  }

  /** The end of a statement's answer, its CommandComplete. */
  conclude(frames: Buffer): void {
    if (!this.script?.holdsBack(frames)) this.output.append(frames)
  }

  /** Ends a request that was answered in full but for ReadyForQuery. */
  complete(): void {
    this.#end()
  }

  #end(): void {
    if (this.script) return this.script.statementEnded()
    if (this.#mustHold()) return
    if (this.#changed.size > 0) this.tellChanges()
    this.output.append(readyFrame(this.transaction.statusByte))
    this.output.flush()
    this.ended()
  }

  /** True: the answer is complete but for ReadyForQuery, which comes behind a notification of the client's own. */
  #mustHold(): boolean {
    if (!this.listening || this.transaction.isExplicit) return false
    return this.listening.holdsReady(() => this.#end())
  }

  /** The client has read what was waiting for it. */
  clientDrained(): void {
    this.pipelined.clientDrained()
    this.fanOut?.clientDrained()
    for (const held of this.held.all()) held.relay.clientDrained()
    this.listening?.drained()
  }

  /** Books at the end of a request, after ReadyForQuery went out; gives servers back. */
  ended(): void {
    const running = this.running
    this.running = undefined
    this.pipelined.ended(running?.failed ?? false)
    running?.whenEnded?.()
    this.again = undefined
    this.fanOut = undefined
    const { isExplicit } = this.transaction
    if (running) this.#books.ended(running, this.environment.clock.monotonicMs(), isExplicit)
    if (!isExplicit) {
      this.transaction.keepImplicit()
      if (this.statements.portals.size > 0) this.statements.portals.clear()
      if (this.held.size > 0) this.held.releaseAll()
    }
    this.hooks.requestEnded()
  }

  #listener(heldOf: () => HeldServer): RelayListener {
    return {
      completed: (buffer, start, end) => this.#completed(heldOf(), buffer, start, end),
      failed: (buffer, start, end) => this.#failed(heldOf(), buffer, start, end),
      preludeFailed: (buffer, start, end) => {
        this.output.forward(buffer, start, end)
        this.#broken(heldOf(), 'settings of the client were refused')
      },
      copyIn: () => this.hooks.copyStarted(heldOf()),
      ready: (status) => this.#ready(status),
      finished: () => this.#finished(heldOf()),
      parameterStatus: (buffer, start, end) => this.noteStatus(buffer, start, end),
      listens: () => this.held.pins.has('listen') || this.held.pins.has('session mode'),
      lost: (error) => this.#lost(heldOf(), error),
    }
  }

  /** Notes a ParameterStatus of a server that works for the client. */
  noteStatus(buffer: Buffer, start: number, end: number): void {
    const zero = buffer.indexOf(0, start + 5)
    const name = buffer.toString('utf8', start + 5, zero)
    this.#changed.set(name, buffer.toString('utf8', zero + 1, end - 1))
  }

  /** Tells the client what has changed, as PostgreSQL does before ReadyForQuery. */
  tellChanges(): void {
    // clearing an empty map is not free
    if (this.#changed.size === 0) return
    for (const [name, value] of this.#changed) {
      if (this.told.get(name) === value) continue
      this.told = new Map(this.told).set(name, value)
      this.output.append(parameterStatusFrame(name, value))
    }
    this.#changed.clear()
  }

  #completed(held: HeldServer, buffer: Buffer, start: number, end: number): Buffer | undefined {
    const running = this.running
    const statement = running?.statements[running.at]
    if (!running || !statement) return undefined
    running.at++
    const tag = buffer[start] === 0x43 ? buffer.toString('latin1', start + 5, end - 1) : ''
    const own = applyCompleted(this, held, statement, tag)
    if (!this.script) return own
    const frame = own ?? Buffer.from(buffer.subarray(start, end))
    return this.script.holdsBack(frame) ? Buffer.alloc(0) : frame
  }

  #failed(held: HeldServer, buffer: Buffer, start: number, end: number): Buffer | undefined {
    const sqlstate = sqlstateOf(buffer, start, end)
    const own =
      limitError(sqlstate, this.timedOut) ?? inOwnWords(buffer, start, end, this.statements)
    this.figures.errors++
    this.#sawFatal = isFatal(buffer, start, end)
    if (this.running) this.running.failed = true
    if (!this.transaction.isExplicit) {
      this.transaction.undoImplicit()
      held.server.settings = this.transaction.settings
    }
    this.statements.dropUnconfirmed()
    this.hooks.copyEnded()
    // a shared statement whose result type changed must be prepared anew for the next one who asks
    if (sqlstate === '0A000') held.server.closing.push(...held.server.prepared.drain())
    if (sqlstate !== '25006') return own
    this.access.pools.wasReadOnly(held.shard, held.server)
    return this.sendAgain.takes(buffer, start, end) ? Buffer.alloc(0) : own
  }

  #ready(status: number): number {
    if (!this.transaction.failedByUs) this.#follow(status)
    if (this.sendAgain.isDue) return this.sendAgain.start()
    if (this.script) {
      this.script.statementEnded()
      return 0
    }
    if (this.#changed.size > 0) this.tellChanges()
    return !this.transaction.failedByUs && this.#mustHold() ? 0 : this.transaction.statusByte
  }

  #follow(status: number): void {
    const { transaction } = this
    if (status === 0x45) transaction.phase = 'failed'
    else if (status === 0x49 && transaction.isExplicit && transaction.phase !== 'pending')
      transaction.end(false)
    else if (status === 0x54 && transaction.phase !== 'open') transaction.phase = 'open'
  }

  #finished(held: HeldServer): void {
    if (held.relay.owes) return
    this.output.flush()
    this.ended()
  }

  /** The server cannot go on with this client: the request ends, the server is thrown away. */
  #broken(held: HeldServer, why: string): void {
    this.held.discard(held, why)
    this.hooks.copyEnded()
    this.#spoil()
    this.#end()
  }

  #lost(held: HeldServer, error: EngineError): void {
    const working = held.relay.owes
    const wasPinned = this.held.pins.size > 0
    this.held.discard(held, error.message)
    this.held.pins.clear()
    this.held.temporary.clear()
    if (this.access.poolerMode === 'session') this.held.pins.add('session mode')
    if (this.transaction.isExplicit) this.transaction.fail()
    else this.transaction.undoImplicit()
    if (this.#sawFatal || (working && held.server.isInRow)) {
      // its own FATAL has gone to the client, or a part of a row behind which no error would be seen: the end, as directly
      this.output.flush()
      return this.hooks.ends()
    }
    if (wasPinned) {
      // what the client had there (a temporary table, LISTEN, a lock) is gone, and no other server can stand in
      this.output.append(errorFrame(error, 'FATAL'))
      this.output.flush()
      return this.hooks.ends()
    }
    if (!working) return this.script?.lost(error)
    this.output.append(errorFrame(error, 'ERROR'))
    this.figures.errors++
    this.hooks.copyEnded()
    this.#spoil()
    this.#end()
  }
}
