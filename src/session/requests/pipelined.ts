/**
 * The requests of one client that may share a server with those of others (executor/pipeline): which of them may, what
 * they put on the server, and what becomes of one that must run on a server of its own after all.
 */
import type { Clock } from '../../base/clock.js'
import { type EngineError, engineError } from '../../errors/engine-error.js'
import { mayEnter } from '../../executor/pipeline/class-figures.js'
import type { Carrier, PipelinedClient, Unit } from '../../executor/pipeline/pipelined-client.js'
import type { Pipelines } from '../../executor/pipeline/pipelines.js'
import { replyBudget } from '../../executor/pipeline/reply-budget.js'
import type { ClassFigures, PlannedStatement, QueryPlanner } from '../../plan/plan.js'
import type { ServerConnection } from '../../server/server-connection.js'
import { readingOf, Settings } from '../../server/settings.js'
import type { SharedStatement } from '../../server/shared-statement.js'
import type { ClientOutput } from '../client-output.js'
import type { AlikeBatch } from './alike-batch.js'
import {
  type Decided,
  isAnotherBatch,
  isAnotherQuery,
  type LastBatch,
  type LastQuery,
  lastBatchOf,
  lastQueryOf,
} from './alike-request.js'
import { AloneTimes } from './alone-times.js'
import { KeptQuery } from './kept-query.js'
import { batchUnit, type PipelinedBatch, pipelinedBatchOf, type Step } from './pipelined-batch.js'
import type { PipelinableRequest, PipelinedHost } from './pipelined-host.js'

/** Settings that make a text mean something else than we read, or that a server may refuse. */
const UNFIT = ['role', 'session_authorization', 'standard_conforming_strings', 'client_encoding']
const plainEncodings = new Set(['UTF8', 'SQL_ASCII', undefined])
const nothing = Buffer.alloc(0)
const noTypes: readonly number[] = []
const noFigures: ClassFigures = {
  ...{ runs: 0, hotRuns: 0, meanMs: 0, typicalMs: 0, replyBytes: 0 },
  seen: undefined,
}

export class PipelinedRequests implements PipelinedClient {
  readonly output: ClientOutput
  settings: Settings = Settings.none
  figures: ClassFigures = noFigures
  readonly #core: PipelinedHost
  readonly #planner: QueryPlanner
  readonly #pipelines: Pipelines | undefined
  readonly #clock: Clock
  #carrier: Carrier | undefined
  /** The last one; it runs while `#isRunning`. */
  #request: PipelinableRequest | undefined
  #isRunning = false
  readonly #query = new KeptQuery()
  #batch: PipelinedBatch | undefined
  #hasFailed = false
  /** A parameter has changed, which the client is to be told. */
  #hasNews = false
  /** Began as another of its template, and nothing of it runs elsewhere. */
  #isShared = false
  /** The last Query that was pipelined, and what was decided of it. */
  #last: LastQuery | undefined
  #lastBatch: LastBatch | undefined
  /** No other request has run since the last one of these, so that the session is as it was judged then. */
  #settled: LastQuery | LastBatch | undefined
  /** Runs now. */
  #alike: AlikeBatch | undefined
  /** Settings that were judged, and whether they allow it. */
  #judged: Settings | undefined
  #isFit = false
  readonly #aloneTimes: AloneTimes

  constructor(core: PipelinedHost) {
    this.#core = core
    this.#planner = core.access.planner
    // what has been seen is asked for behind each request, on a server of its own
    this.#pipelines = core.held.seen ? undefined : core.access.pipelines
    this.#clock = core.environment.clock
    this.#aloneTimes = new AloneTimes(core.environment.clock)
    this.output = core.output
  }

  /** True while its request stands in line for a server. */
  get isWaiting(): boolean {
    return this.#carrier?.isWaiting === true
  }

  /** What it stands in line for, for people. */
  get waitsFor(): string | undefined {
    const request = this.#isRunning && this.isWaiting ? this.#request : undefined
    return request && this.#core.access.pools.whyWaiting(request.shard, request.role)
  }

  get statement(): SharedStatement | undefined {
    return (this.#alike ?? this.#batch)?.statement.shared
  }

  /** A Query of one statement. False: it needs a server of its own. `frame` is borrowed. */
  runQuery(statement: PlannedStatement, frame: Buffer, request: PipelinableRequest): boolean {
    if (!this.#mayRun(statement, noTypes)) return false
    this.#query.keep(frame, 0, frame.length)
    this.#batch = undefined
    const { settings } = this.#core.transaction
    this.#last = lastQueryOf(statement, request, this.#planner, settings)
    return this.#run(request, this.#clock.monotonicMs())
  }

  /** The whole of a read that comes right behind the end of a request of ours: true when it is another like that, which runs then. */
  runOn(chunk: Buffer): boolean {
    const last = this.#settled
    if (!last || !this.#holdsOn(last)) return false
    const { batch } = last
    if (!(batch ? this.#isAnother(batch, chunk) : isAnotherQuery(last, chunk))) return false
    const nowMs = this.#clock.monotonicMs()
    this.#core.beginShared(batch ? 'extended' : 'simple', nowMs, last.planned)
    this.#alike = batch
    this.#runDecided(last, nowMs, chunk, 0, chunk.length)
    return true
  }

  /** A Query, at [start, end), that differs from the one before it in its literals alone. False: it is to be read. */
  runAlike(buffer: Buffer, start: number, end: number): boolean {
    const last = this.#last
    if (!last?.pattern.matches(buffer, start + 5, end - 1)) return false
    if (!this.#isSound(last)) return false
    const core = this.#core
    const nowMs = this.#clock.monotonicMs()
    if (this.#settled !== last) core.statements.dropUnnamed()
    core.beginShared('simple', nowMs, last.planned)
    this.#runDecided(last, nowMs, buffer, start, end)
    return true
  }

  /** Messages up to a Sync, [0, end), that differ from those before them in their parameters alone. False: they are to be read. */
  runAlikeBatch(buffer: Buffer, starts: () => void): boolean {
    const last = this.#lastBatch
    if (!last || !this.#isSound(last) || !this.#isAnother(last.batch, buffer)) return false
    const core = this.#core
    if (this.#settled !== last && !last.batch.isNamedIn(core.statements)) return false
    this.#alike = last.batch
    starts()
    const nowMs = this.#clock.monotonicMs()
    core.beginShared('extended', nowMs, last.planned)
    this.#runDecided(last, nowMs, buffer, 0, buffer.length)
    return true
  }

  #isAnother(batch: AlikeBatch, buffer: Buffer): boolean {
    return isAnotherBatch(batch, buffer, this.#core.access.statements.epoch)
  }

  #runDecided(
    last: LastQuery | LastBatch,
    nowMs: number,
    bytes: Buffer,
    start: number,
    end: number,
  ): void {
    if (this.#settled !== last) this.#settled = last
    this.#isShared = true
    this.#query.keep(bytes, start, end)
    if (this.figures !== last.figures) this.figures = last.figures
    if (!this.#run(last.request, nowMs)) this.#alone(last.request)
  }

  /** Another request begins: it may change what was judged. */
  disturb(): void {
    this.#settled = undefined
    this.#isShared = false
  }

  #alone(request: PipelinableRequest): void {
    const query = this.#batch ? nothing : this.#query.whole
    this.#forget()
    this.disturb()
    request.alone(query)
  }

  #isSound(last: LastQuery | LastBatch): boolean {
    if (last.generation !== this.#planner.generation) return false
    if (this.#settled === last ? !this.#isFreeStill() : !this.#holdsStill(last)) return false
    return this.#mayEnter(last.figures)
  }

  /** The same when it was settled with the last request. */
  #holdsOn(last: Decided): boolean {
    return (
      last.generation === this.#planner.generation &&
      this.#isFreeStill() &&
      this.#mayEnter(last.figures)
    )
  }

  #mayEnter(figures: ClassFigures): boolean {
    const limits = this.#pipelines?.limits
    return limits !== undefined && limits.depth > 0 && mayEnter(figures, limits.stallMs)
  }

  #holdsStill(last: Decided): boolean {
    const { transaction, held, listening } = this.#core
    if (last.settings !== transaction.settings) return false
    return !listening && held.temporary.size === 0 && this.#isFree()
  }

  /** Messages of the extended protocol up to their Sync. False: they need a server of their own. */
  runSteps(
    steps: readonly Step[],
    statements: readonly PlannedStatement[],
    request: PipelinableRequest,
  ): boolean {
    const [statement] = statements
    if (statements.length !== 1 || !statement?.figures) return false
    const batch = pipelinedBatchOf(steps)
    if (!batch) return false
    const { shared } = batch.statement
    // its text is a PREPARE: a server learns it by running that, under the client's own name
    if (shared.isSql) return false
    // prepared elsewhere under other settings, it would mean something else
    if (!readingOf(this.#core.transaction.settings).equals(shared.reading)) return false
    if (!this.#mayRun(statement, shared.parameterTypes)) return false
    // what its client was told of its columns must be compared first (result-shape.ts)
    if (shared.shape !== undefined && shared.epoch !== this.#core.access.statements.epoch)
      return false
    this.#batch = batch
    const { settings } = this.#core.transaction
    this.#lastBatch = lastBatchOf(batch, statement, request, this.#planner, settings)
    return this.#run(request, this.#clock.monotonicMs())
  }

  /** True when the request is the pipeline's to cancel. */
  cancel(): boolean {
    const carrier = this.#carrier
    if (!carrier) return false
    if (!carrier.cancel(this)) return true
    this.#forget()
    this.disturb()
    this.#core.fail(this.#core.timedOut ?? engineError('SESSION_CANCELLED'))
    return true
  }

  /** The client has gone. */
  leave(): void {
    const carrier = this.#carrier
    this.#forget()
    carrier?.leave(this)
    this.#aloneTimes.stop()
    replyBudget.release(this)
  }

  clientDrained(): void {
    replyBudget.release(this)
    this.#carrier?.resume()
  }

  /** A request goes to a server of its own. */
  sent(): void {
    this.#aloneTimes.sent(this.output.bytesSent)
  }

  /** A request has ended. */
  ended(hasFailed: boolean): void {
    const stallMs = this.#core.access.pipelines?.limits.stallMs
    this.#aloneTimes.ended(this.output.bytesSent, hasFailed ? undefined : stallMs)
  }

  carriedBy(carrier: Carrier): void {
    this.#carrier = carrier
  }

  unitFor(server: ServerConnection): Unit {
    if (this.#alike) {
      server.unnamed = undefined
      return this.#alike.unitFor(server, this.#query.bytes)
    }
    if (this.#batch) return batchUnit(this.#batch, server)
    server.unnamed = undefined
    return this.#query
  }

  parsed(): void {
    if (this.#alike?.hasParse) this.#alike.statement.confirmed = true
    if (this.#batch?.parse) this.#batch.statement.confirmed = true
  }

  failed(): void {
    this.#hasFailed = true
    this.#settled = undefined
    this.#core.figures.errors++
    this.#core.statements.dropUnconfirmed()
  }

  parameterStatus(buffer: Buffer, start: number, end: number): void {
    this.#hasNews = true
    this.#core.noteStatus(buffer, start, end)
  }

  ready(): void {
    // a client that listens is not settled
    if (this.#settled && !this.#hasNews) return
    this.#hasNews = false
    this.#core.tellChanges()
    this.#core.listening?.tell()
  }

  finished(nowMs: number): void {
    const core = this.#core
    if (!this.#hasFailed) {
      core.figures.queries++
      core.figures.transactions++
    }
    this.#forget()
    if (this.#isShared) core.endedShared(nowMs)
    else core.ended()
  }

  elsewhere(): void {
    if (this.#isRunning && this.#request) this.#alone(this.#request)
  }

  lost(error: EngineError, ends: boolean): void {
    this.#forget()
    this.disturb()
    if (!ends) return this.#core.fail(error)
    this.output.flush()
    this.#core.hooks.ends()
  }

  #run(request: PipelinableRequest, nowMs: number): boolean {
    const pipeline = this.#pipelines?.of(request.shard, request.role)
    if (!pipeline) return false
    this.#hasFailed = false
    if (this.#request !== request) this.#request = request
    this.#isRunning = true
    this.#carrier = pipeline.run(this, nowMs)
    return true
  }

  #forget(): void {
    this.#carrier = undefined
    this.#isRunning = false
    this.#batch = undefined
    this.#alike = undefined
    this.#query.drop()
  }

  #mayRun(statement: PlannedStatement, types: readonly number[]): boolean {
    const { figures } = statement
    const core = this.#core
    const limits = core.access.pipelines?.limits
    if (!figures || !limits || limits.depth === 0 || !this.#isFree()) return false
    if (statement.mayPipeline?.(core.routeContext(), types) !== true) return false
    if (!mayEnter(figures, limits.stallMs)) {
      this.#aloneTimes.watch(figures)
      return false
    }
    this.figures = figures
    return true
  }

  /** What others than the client decide. */
  #isFreeStill(): boolean {
    return this.#planner.isCurrent !== false && !this.output.isBlocked
  }

  /** The client holds nothing that another could disturb, and reads what it is sent. */
  #isFree(): boolean {
    const { transaction, held, access } = this.#core
    if (transaction.isExplicit || held.size > 0 || held.pins.size > 0) return false
    // which host may answer then depends on what this client has seen, and each answer adds to it
    if (held.seen) return false
    if (access.poolerMode === 'session' || access.planner.isCurrent === false) return false
    if (this.#judged !== transaction.settings) this.#judge(transaction.settings)
    return this.#isFit && !this.output.isBlocked
  }

  #judge(settings: Settings): void {
    const { told } = this.#core
    this.#judged = settings
    this.settings = settings.pipelined
    this.#isFit =
      !UNFIT.some((name) => settings.values.has(name)) &&
      told.get('standard_conforming_strings') !== 'off' &&
      plainEncodings.has(told.get('client_encoding'))
  }
}
