/**
 * The extended protocol: messages are gathered up to a Sync or Flush, resolved to shared statements, routed as one,
 * and sent with what the server lacks (Parse of a statement that another server has). Replies that the client did not
 * ask for are swallowed in their place, and those that the server was spared are put in.
 * @see PostgreSQL documentation, "Extended Query", "Pipelining"
 */

import { type EngineError, engineError } from '../../errors/engine-error.js'
import type { Plan, PlannedStatement } from '../../plan/plan.js'
import { queryFrame } from '../../server/server-connection.js'
import { closeCompleteFrame, completeFrame } from '../answers.js'
import { hearFirst } from '../listen/hear-first.js'
import { refuseChannels } from '../listen/listening-channels.js'
import { noteShard } from '../request-books.js'
import type { SessionCore } from '../session-core.js'
import type { ClientStatement } from '../state/client-statements.js'
import type { HeldServer } from '../state/held-servers.js'
import { withSnapshots } from '../state/one-snapshot.js'
import { orFail } from '../state/or-fail.js'
import { type BatchItem, readBatch, syncFrame } from './batch.js'
import { gathersCopy, isPlain, localFrame, takesData } from './batch-answers.js'
import { BatchBuilder } from './batch-builder.js'
import { fitsOneShard, isControl, planOf } from './batch-plans.js'
import {
  channelsBound,
  onlyStatement,
  refuseTransactions,
  resolveBatch,
  type Step,
} from './batch-steps.js'
import {
  checkNames,
  isOfSeveral,
  leadingCloses,
  looksAtNothing,
  plansOfPortals,
  unitsOf,
} from './batch-units.js'
import { runScript } from './implicit-transaction.js'
import { answerLocally, canAnswerLocally } from './local-answer.js'
import type { ShardedRequests } from './over-shards/sharded-requests.js'
import { nextPortions } from './portal-rows.js'
import { checkCursors, requestRole, shardOf } from './request-route.js'
import { whenShapesHold } from './result-shape.js'
import { isOutdated } from './send-again.js'
import { runSpecialBatch } from './special-batch.js'

/** A client that sends so much before its Sync is served meanwhile, as PostgreSQL does, instead of being stored. */
const GATHERED_ITEMS = 10_000
const GATHERED_BYTES = 33_554_432

export class ExtendedQuery {
  readonly #core: SessionCore
  readonly #sharded: ShardedRequests
  #items: BatchItem[] = []
  #bytes = 0
  /** The server of a request that was flushed and has not seen its Sync. */
  #bound: HeldServer | undefined
  /** A portal was bound on it, so that the request cannot move to another shard. */
  #boundWorks = false
  /** A COPY FROM STDIN was sent with a Flush: what comes next may be its data. */
  awaitsCopy = false
  /** The server of what was flushed is told Sync, and what comes next waits for its answer. */
  isLeaving = false
  /** It is not to be pipelined. */
  #isAlone = false
  /** Part of the answer has gone out before a server was there. */
  #answered = false
  /** What runs now, as it was gathered. */
  #gathered: BatchItem[] = []

  constructor(core: SessionCore, sharded: ShardedRequests) {
    this.#core = core
    this.#sharded = sharded
  }

  add(item: BatchItem): void {
    this.#items.push(item)
    this.#bytes += item.frame.length
    if (this.#items.length >= GATHERED_ITEMS || this.#bytes >= GATHERED_BYTES) this.run('flush')
  }

  /** Messages have come since the last Sync. */
  get isOpen(): boolean {
    return this.#items.length > 0 || this.#bound !== undefined
  }

  /** Among the messages not yet sent is the Execute of a COPY FROM STDIN. */
  get gathersCopy(): boolean {
    return gathersCopy(this.#core, this.#items)
  }

  /** The server took COPY data, and the request goes on there up to its Sync. */
  stayOn(held: HeldServer): void {
    this.awaitsCopy = false
    this.#bound = held
    this.#boundWorks = true
  }

  get bound(): HeldServer | undefined {
    return this.#bound
  }

  /** The request has ended, or the connection of a flushed one is gone. */
  reset(): void {
    if (this.#items.length > 0) this.#items = []
    if (this.#gathered.length > 0) this.#gathered = []
    this.#bytes = 0
    this.#bound = undefined
    this.#boundWorks = false
    this.isLeaving = false
    this.awaitsCopy = false
  }

  /** Runs what was gathered. With `flush` the request stays open. */
  run(end: 'sync' | 'flush'): void {
    const core = this.#core
    const items = this.#items
    this.#items = []
    this.#bytes = 0
    this.#answered = false
    if (!core.running) core.begin('extended', [])
    if (core.running) core.running.awaitsSync = end === 'flush'
    // it failed behind a Flush with no server at work: the Sync ends it
    if (core.running?.failed && !this.#bound) return core.complete()
    try {
      const steps = resolveBatch(core, items, this.#bound === undefined)
      hearFirst(core, channelsBound(core, steps), () => this.#runSteps(steps, items, end))
    } catch (error) {
      this.#refuse(error as EngineError, end)
    }
  }

  #runSteps(steps: Step[], items: BatchItem[], end: 'sync' | 'flush'): void {
    const core = this.#core
    try {
      if (core.access.poolerMode === 'statement') refuseTransactions(steps)
      refuseChannels(core, steps)
      if (steps.length === 0 && !this.#bound) return end === 'sync' ? core.complete() : undefined
      if (!this.#bound && this.#runLocally(steps, end)) return
      const portions = nextPortions(steps, this.#bound !== undefined)
      if (portions) return this.#answer(portions, end)
      this.#gathered = items
      if (!core.transaction.needsOneSnapshot || steps.every(looksAtNothing)) this.#route(steps, end)
      else withSnapshots(core, this.#roleOf(steps), () => this.#route(steps, end))
      if (!this.#answered && !this.#bound) this.#keep(items, end)
    } catch (error) {
      this.#refuse(error as EngineError, end)
    }
  }

  /** What waits for a server, or may be refused by a fence, can be run again. */
  #keep(items: BatchItem[], end: 'sync' | 'flush'): void {
    const { held, sendAgain, script, running } = this.#core
    const again = this.#again(items, end)
    if (script) script.repeatBy(again)
    else if (running && (held.isWaiting || sendAgain.isOn)) sendAgain.keep(again)
  }

  #roleOf(steps: readonly Step[]): 'primary' | 'any' {
    const planned = steps.flatMap((step) => step.statement?.planned.statements ?? [])
    return requestRole(this.#core, planned)
  }

  /** Runs a batch from its beginning. */
  readonly #again = (items: BatchItem[], end: 'sync' | 'flush') => () => {
    this.#items = items
    this.run(end)
  }

  /** After a refusal the server, when one is bound, must still come to its Sync. */
  #refuse(error: EngineError, end: 'sync' | 'flush'): void {
    const bound = this.#bound
    if (!bound) return this.#core.fail(error)
    this.#send(bound, [{ kind: 'error', error }], end)
  }

  #route(steps: Step[], end: 'sync' | 'flush'): void {
    const core = this.#core
    if (core.isSharded && isOfSeveral(steps) && !fitsOneShard(core, steps)) {
      return this.#runUnits(steps, end)
    }
    const plans: Plan[] = []
    const statements: PlannedStatement[] = []
    for (const step of steps) {
      const statement = step.kind === 'bind' ? step.statement?.planned.statements[0] : undefined
      if (!statement || step.kind !== 'bind' || !step.statement) continue
      statements.push(statement)
      if (core.transaction.failedByUs || (core.isSharded && isControl(core, statement))) {
        return this.#control(steps, statement, step.statement, end)
      }
      if (core.isSharded && !this.#sharded.isNeutral(statement)) {
        plans.push(planOf(core, step.item.parameters, statement, step.statement))
      }
    }
    plans.push(...plansOfPortals(steps))
    this.#dispatch(steps, plans, statements, end)
  }

  /** Statements of one batch, each in its own way: together they are the transaction that one server would make of them. */
  #runUnits(steps: readonly Step[], end: 'sync' | 'flush'): void {
    const core = this.#core
    const items = this.#gathered
    const takes = steps.some((step) => step.kind === 'bind' && takesData(step.statement?.planned))
    if (end === 'flush' || this.#boundWorks || takes) {
      throw engineError('SESSION_SEVERAL_SHARDS_IN_REQUEST')
    }
    const units = unitsOf(items)
    // names are found again unit by unit, behind what those before it have done
    core.statements.dropUnconfirmed()
    const run = () =>
      runScript(
        core,
        units.map((unit) => () => {
          this.#items = unit
          this.run('sync')
        }),
        { again: this.#again(items, end) },
      )
    this.#leaveBound(end, run)
  }

  #dispatch(
    steps: Step[],
    plans: Plan[],
    statements: PlannedStatement[],
    end: 'sync' | 'flush',
  ): void {
    const core = this.#core
    const special = plans.find((plan) => plan.how !== 'relay')
    if (special) return this.#several(steps, special, plans, statements, end)
    const shard = core.isSharded ? this.#shardOf(plans) : 0
    checkCursors(core, statements, shard)
    checkNames(steps, shard)
    const role = requestRole(core, statements, plans)
    noteShard(core.running, statements, shard)
    const alone = () => core.withShard(shard, role, (held) => this.#sendChecked(held, steps, end))
    if (this.#bound && this.#bound.shard !== shard) return this.#leaveBound(end, alone)
    if (end === 'flush' || this.#bound) return alone()
    const items = this.#gathered
    const { generation } = core.access.planner
    const elsewhere = () => {
      core.again = this.#again(items, end)
      if (!isOutdated(core, generation)) alone()
    }
    const request = { shard, role, alone: elsewhere, again: (b: Buffer) => this.#runAlone(b) }
    if (!this.#isAlone && core.pipelined.runSteps(steps, statements, request)) this.reset()
    else alone()
  }

  /** It must be cut, and is no part itself; the first `closes` messages do not count. */
  #isOfUnits(closes = 0): boolean {
    return !this.#core.script && unitsOf(this.#gathered.slice(closes)).length > 1
  }

  #close(steps: readonly Step[]): void {
    for (const step of steps) {
      if (step.kind === 'close') step.confirm?.()
      this.#core.output.append(closeCompleteFrame)
      this.#answered = true
    }
  }

  /** A batch that was known by its bytes, on a server of its own. */
  #runAlone(batch: Buffer): void {
    this.#items = readBatch(batch)
    this.#isAlone = true
    this.run('sync')
    this.#isAlone = false
  }

  #several(
    steps: Step[],
    plan: Plan,
    plans: Plan[],
    [statement]: PlannedStatement[],
    end: 'sync' | 'flush',
  ): void {
    const core = this.#core
    const isCopy = plan.how === 'copy'
    const closes = isCopy ? 0 : leadingCloses(steps)
    // what stands before another portal or an error is answered, or fails, before it
    if (this.#isOfUnits(closes) && !isCopy) return this.#runUnits(steps, end)
    if (plans.length > 1 || end === 'flush' || this.#boundWorks || !statement) {
      throw engineError('SESSION_SEVERAL_SHARDS_IN_REQUEST')
    }
    this.#close(steps.slice(0, closes))
    const rest = steps.slice(closes)
    checkNames(rest)
    // described on one server: its Sync must be answered before it takes part
    this.#leaveBound(end, () => {
      if (isCopy) this.#answered = true
      const onOne = (held: HeldServer, some: Step[]) => this.#send(held, some, end)
      runSpecialBatch(core, this.#sharded, rest, plan, statement, onOne)
    })
  }

  #shardOf(plans: Plan[]): number {
    const needy = plans.some((plan) => plan.anyShard !== true)
    if (this.#bound && !needy) return this.#bound.shard
    const shard = shardOf(this.#core, plans)
    if (this.#bound && this.#bound.shard !== shard && this.#boundWorks) {
      throw engineError('SESSION_SEVERAL_SHARDS_IN_REQUEST')
    }
    return shard
  }

  /** What was flushed to another shard ends there; `then` follows when it has gone well, for PostgreSQL skips what stands behind an error. */
  #leaveBound(end: 'sync' | 'flush', then: () => void): void {
    const core = this.#core
    const bound = this.#bound
    this.#bound = undefined
    if (!bound) return then()
    this.isLeaving = true
    const ends = () => {
      this.isLeaving = false
      if (!core.transaction.isExplicit && core.held.pins.size === 0) core.held.release(bound)
      if (core.running?.failed) this.#leftFailed(end)
      else orFail(core, then)
      core.hooks.waitEnded()
    }
    core.send(bound, [syncFrame], [{ kind: 'sync', skip: true, done: ends }], 1)
  }

  #leftFailed(end: 'sync' | 'flush'): void {
    const core = this.#core
    if (core.transaction.isExplicit) core.transaction.fail()
    if (end === 'sync') core.complete()
  }

  #sendChecked(held: HeldServer, steps: Step[], end: 'sync' | 'flush'): void {
    if (end === 'flush' || this.#bound) return this.#send(held, steps, end)
    whenShapesHold(this.#core, held, steps, (sound) => this.#send(held, sound, end))
  }

  #send(held: HeldServer, steps: Step[], end: 'sync' | 'flush'): void {
    const core = this.#core
    const builder = new BatchBuilder(core, held)
    for (const step of steps) builder.add(step)
    const { pieces, expectations, syncs } = builder.finish(end)
    if (end === 'flush') {
      this.#bound = held
      this.awaitsCopy = steps.some(
        (step) => step.kind === 'execute' && takesData(step.statement?.planned),
      )
      this.#boundWorks ||= steps.some((step) => step.kind === 'bind')
    } else this.reset()
    core.send(held, pieces, expectations, syncs)
    if (end === 'flush') core.output.flush()
  }

  /** BEGIN, COMMIT and their kin when no server is needed; false when one is. */
  #runLocally(steps: Step[], end: 'sync' | 'flush'): boolean {
    const core = this.#core
    const statement = onlyStatement(steps)
    if (!statement) return false
    const planned = statement.planned.statements[0]
    if (!planned || !canAnswerLocally(core, planned) || !isPlain(steps)) return false
    const frames = steps.map((step) => localFrame(core, step, planned, statement))
    this.#answer(
      frames.filter((frame) => frame !== undefined),
      end,
    )
    return true
  }

  #answer(frames: readonly Buffer[], end: 'sync' | 'flush'): void {
    const { output } = this.#core
    for (const frame of frames) output.append(frame)
    if (end === 'sync') this.#core.complete()
    else output.flush()
  }

  /** A statement that ends or shapes a transaction over several servers: run as a simple query, answered as extended. */
  #control(
    steps: Step[],
    statement: PlannedStatement,
    client: ClientStatement,
    end: 'sync' | 'flush',
  ): void {
    const core = this.#core
    if (this.#isOfUnits() && end === 'sync') return this.#runUnits(steps, end)
    if (end === 'flush' || steps.filter((step) => step.kind === 'execute').length !== 1) {
      throw engineError('SESSION_SEVERAL_SHARDS_IN_REQUEST')
    }
    this.#answered = true
    const { text } = client.planned
    const local = core.transaction.failedByUs ? undefined : answerLocally(core, statement, text)
    for (const step of steps) {
      if (step.kind === 'execute') continue
      const frame = localFrame(core, step, statement, client)
      if (frame) core.output.append(frame)
    }
    if (local) return core.answer(completeFrame(local.tag))
    const sql = text.slice(statement.start, statement.end)
    const handled = this.#sharded.runControl(statement, text, queryFrame(sql))
    if (!handled) throw engineError('SESSION_ABORTED')
  }
}
