/**
 * A server lent for pipelining: requests of several clients stand behind one another on it, and its answers are handed
 * back by counting ReadyForQuery. Only the request at the head hears what the server says; the others have lost nothing
 * when they must run elsewhere (hard-parts §1). Given back as soon as it is empty and every cancel has arrived.
 */

import type { EngineError } from '../../errors/engine-error.js'
import type { ServerCheckout } from '../../pool/shard-pools.js'
import type { ServerConnection, ServerReceiver } from '../../server/server-connection.js'
import { isFatal, sqlstateOf } from '../../server/server-error.js'
import type { Settings } from '../../server/settings.js'
import { shapeOf } from '../../server/shared-statement.js'
import { backend, TX_IDLE } from '../../wire/tags.js'
import { AnswerTimes } from './answer-times.js'
import { noteStall } from './class-figures.js'
import { writeJoined } from './joined-write.js'
import type { LaneOwner } from './lane-owner.js'
import { LaneQueue } from './lane-queue.js'
import type { Carrier, PipelinedClient } from './pipelined-client.js'
import type { Prelude } from './prelude.js'
import { replyBudget } from './reply-budget.js'
import { Slot } from './slot.js'

/** A lane that is never empty gives its server back after this, so that the pool can judge it. */
const LEASE_MS = 250
/** The same while others wait for a server. */
const SHARED_LEASE_MS = 5

const parseCompleteFrame = Buffer.from([backend.parseComplete, 0, 0, 0, 4])
const READY_BYTES = 6
const CANCELLED = '57014'
/** A shared statement answers so where the client's own would not: it names it, or has outlived a change. */
const ofSharing = new Set(['08P01', '0A000'])

export class Lane implements ServerReceiver, Carrier {
  readonly isWaiting = false
  readonly #owner: LaneOwner
  readonly #server: ServerConnection
  readonly #checkout: ServerCheckout
  readonly #settings: Settings
  readonly #openedMs: number
  readonly #queue = new LaneQueue()
  #headSinceMs: number
  readonly #times: AnswerTimes
  #isFresh = true
  /** Takes no more requests. */
  #isClosed = false
  #isOver = false
  /** Cancels on their way: they may hit whatever runs when they arrive. */
  #cancels = 0
  #isCautious = false
  #isPaused = false
  #sawFatal = false

  constructor(owner: LaneOwner, checkout: ServerCheckout, settings: Settings, nowMs: number) {
    this.#owner = owner
    this.#checkout = checkout
    this.#server = checkout.resource
    this.#settings = settings
    this.#times = new AnswerTimes(owner)
    this.#openedMs = nowMs
    this.#headSinceMs = nowMs
    this.#server.receiver = this
  }

  /** Expected time until it is free. */
  get costMs(): number {
    return this.#queue.costMs
  }

  /** Nothing in the answer at the head is ours to look at but its beginning and its end. */
  get passesPlain(): boolean {
    const described = this.#queue.head?.describes
    return described === undefined || described.shape !== undefined
  }

  /** What the server must hear before the first request. */
  begin(prelude: Prelude): void {
    const { bytes } = prelude
    const slot = Slot.of(undefined, { bytes, length: bytes.length }, 0, true)
    slot.prelude = prelude
    for (let i = 1; i < prelude.syncs; i++) this.#queue.push(Slot.of(undefined, slot.unit, 0, true))
    this.#queue.push(slot)
    this.#server.write(bytes, prelude.syncs)
  }

  mayTake(client: PipelinedClient, nowMs: number): boolean {
    if (this.#isClosed || this.#settings !== client.settings) return false
    if (this.#queue.size >= this.#owner.limits.depth) return false
    const { statement } = client
    if (statement && this.#queue.isPreparing(statement)) return false
    const lentMs = nowMs - this.#openedMs
    return lentMs < SHARED_LEASE_MS || (lentMs < LEASE_MS && this.#owner.waiting === 0)
  }

  push(client: PipelinedClient, nowMs: number): void {
    const unit = client.unitFor(this.#server)
    const isFirst = this.#queue.size === 0
    const costMs = this.#owner.wakeUp.costOf(client.figures)
    const slot = Slot.of(client, unit, costMs, this.#isFresh && isFirst)
    this.#isFresh = false
    this.#queue.push(slot)
    if (isFirst) {
      this.#headSinceMs = nowMs
      slot.isWritten = true
      this.#server.writeCopied(unit.bytes, unit.length, 1)
      return
    }
    slot.wasQueued = true
    if (this.#queue.join(slot)) this.#owner.flushSoon(this)
    this.#owner.watch()
  }

  /** Writes what was joined since the last read, in one piece. */
  flush(): void {
    const slots = this.#queue.takeJoined()
    if (slots.length === 0 || this.#isOver) return
    writeJoined(this.#server, slots)
  }

  cancel(client: PipelinedClient): boolean {
    const head = this.#queue.head
    if (head?.client !== client || !head.isWritten) {
      this.#queue.withdraw((slot) => slot.client === client)
      return true
    }
    head.isCancelled = true
    this.#sendCancel()
    return false
  }

  leave(client: PipelinedClient): void {
    this.#queue.withdraw((slot) => slot.client === client)
    this.resume()
    this.#owner.watch()
  }

  /** The client at the head has read what was waiting. */
  resume(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    this.#server.socket.resume()
  }

  /** Looks whether the head keeps others waiting, or runs on for a client that has gone. False: nothing to watch. */
  check(nowMs: number): boolean {
    const head = this.#queue.head
    if (!head || head.prelude) return false
    const isLate = nowMs - this.#headSinceMs >= this.#owner.limits.stallMs
    if (isLate && !head.client && this.#cancels === 0 && !head.isCancelled) {
      head.isCancelled = true
      this.#sendCancel()
    }
    if (this.#queue.size > 1 && isLate) {
      if (head.client) noteStall(head.client.figures, this.#owner.limits.stallMs)
      this.#evict()
      return false
    }
    return this.#queue.size > 1 || !head.client
  }

  rows(buffer: Buffer, start: number, end: number): void {
    this.#pass(buffer, start, end)
  }

  /** A whole answer with nothing in it to look at goes on in one piece. */
  answer(buffer: Buffer, start: number, end: number): void {
    const slot = this.#queue.head
    const client = slot?.client
    const isUsual = slot && client && !slot.hasAnswered && !slot.isStray && !slot.failed
    if (!isUsual || this.#isCautious || slot.prelude) {
      this.#pass(buffer, start, end - READY_BYTES)
      return this.#ready(buffer, end - READY_BYTES, end)
    }
    slot.replyBytes += end - start - READY_BYTES
    slot.hasAnswered = true
    this.#server.ready(buffer[end - 1] as number)
    this.#queue.shift()
    this.#headSinceMs = this.#times.answered(slot, this.#headSinceMs)
    this.#server.traffic.reads++
    this.#insertParse(slot, client)
    client.ready()
    this.#endOfAnswer(client, client.output.pass(buffer, start, end))
  }

  frame(tag: number, buffer: Buffer, start: number, end: number): void {
    switch (tag) {
      case backend.readyForQuery:
        return this.#ready(buffer, start, end)
      case backend.errorResponse:
        return this.#failed(buffer, start, end)
      case backend.parseComplete:
        return this.#parsed(buffer, start, end)
      case backend.rowDescription:
      case backend.noData: {
        const described = this.#queue.head?.describes
        if (described) described.shape ??= shapeOf(buffer, start, end)
        return this.#pass(buffer, start, end)
      }
      case backend.parameterStatus:
        this.#server.parameterStatus(buffer, start, end)
        this.#queue.head?.client?.parameterStatus(buffer, start, end)
        return
      case backend.notificationResponse:
        return
      default:
        this.#pass(buffer, start, end)
    }
  }

  endOfRead(): void {
    this.#times.readEnds()
    this.#owner.refill(this)
    const head = this.#queue.head
    if (!head) return this.#giveBack()
    if (!head.isWritten) this.flush()
    const { client } = head
    if (client && head.hasAnswered && !client.output.flush()) this.#isSlow(client)
  }

  serverLost(error: EngineError): void {
    this.#end()
    this.#checkout.discard(error.message)
    const [head, ...others] = this.#queue.takeAll()
    if (head?.client) {
      if (head.isWritten && !head.isStray) {
        this.#handKept(head, head.client)
        head.client.lost(error, this.#sawFatal || (head.hasAnswered && this.#server.isInRow))
      } else head.client.elsewhere()
    }
    for (const { client } of others) client?.elsewhere()
  }

  /** Hands bytes of the answer to the client at the head. */
  #pass(buffer: Buffer, start: number, end: number): void {
    const slot = this.#queue.head
    const client = slot?.client
    if (!slot || !client || slot.isStray) return
    slot.replyBytes += end - start
    if (this.#isCautious && !slot.isCancelled && !slot.hasAnswered) {
      slot.kept ??= []
      slot.kept.push(Buffer.from(buffer.subarray(start, end)))
      return
    }
    this.#hand(slot, client, buffer, start, end)
  }

  #hand(slot: Slot, client: PipelinedClient, buffer: Buffer, start: number, end: number): void {
    slot.hasAnswered = true
    this.#insertParse(slot, client)
    client.output.forward(buffer, start, end)
  }

  #insertParse(slot: Slot, client: PipelinedClient): void {
    if (!slot.mustInsertParse) return
    slot.mustInsertParse = false
    client.parsed()
    client.output.append(parseCompleteFrame)
  }

  #handKept(slot: Slot, client: PipelinedClient): void {
    const kept = slot.kept ?? []
    slot.kept = undefined
    for (const bytes of kept) this.#hand(slot, client, bytes, 0, bytes.length)
  }

  #parsed(buffer: Buffer, start: number, end: number): void {
    const slot = this.#queue.head
    const statement = slot?.prepares
    if (slot && statement) {
      this.#server.notePrepared(statement)
      this.#queue.parsed(slot)
    }
    if (slot?.hidesParse) return
    slot?.client?.parsed()
    this.#pass(buffer, start, end)
  }

  #failed(buffer: Buffer, start: number, end: number): void {
    const slot = this.#queue.head
    this.#sawFatal ||= isFatal(buffer, start, end)
    if (!slot) return
    slot.failed = true
    const { client } = slot
    const state = sqlstateOf(buffer, start, end)
    // a shared statement whose result type changed must be prepared anew for the next one who asks
    if (state === '0A000') this.#server.closing.push(...this.#server.prepared.drain())
    if (!client) return
    if (!slot.hasAnswered && this.#isNotItsOwn(slot, state)) {
      slot.isStray = true
      slot.kept = undefined
      return
    }
    client.failed()
    this.#pass(buffer, start, end)
  }

  /** An error that the client would not get from a server of its own. */
  #isNotItsOwn(slot: Slot, state: string): boolean {
    if (slot.isCancelled || this.#sawFatal) return false
    if (state === CANCELLED) return slot.wasQueued || this.#isCautious
    return slot.insertsParse && ofSharing.has(state)
  }

  #ready(buffer: Buffer, start: number, end: number): void {
    const server = this.#server
    server.ready(buffer[start + 5] as number)
    const slot = this.#queue.shift()
    if (!slot) return server.destroy()
    this.#headSinceMs = this.#times.answered(slot, this.#headSinceMs)
    const { client } = slot
    if (slot.prelude) this.#prepared(slot, slot.prelude)
    else if (client && slot.isStray) client.elsewhere()
    else if (client) {
      this.#handKept(slot, client)
      client.ready()
      this.#hand(slot, client, buffer, start, end)
      if (!slot.failed) server.traffic.reads++
      return this.#endOfAnswer(client, client.output.flush())
    }
    this.#assertIdle()
  }

  #endOfAnswer(client: PipelinedClient, isTaken: boolean): void {
    if (!isTaken) this.#hold(client)
    client.finished(this.#headSinceMs)
    this.#assertIdle()
  }

  /** Nothing that was pipelined leaves a transaction open. */
  #assertIdle(): void {
    if (this.#server.status !== TX_IDLE) this.#abandon('a transaction was left open')
  }

  #prepared(slot: Slot, prelude: Prelude): void {
    if (slot.failed) this.#abandon('settings of a client were refused')
    else prelude.done()
  }

  /** Bytes wait in memory for the client at the head, which reads slowly. */
  #isSlow(client: PipelinedClient): void {
    if (this.#hold(client) || this.#isPaused || this.#isOver) return
    this.#evict()
    this.#isPaused = true
    this.#server.socket.pause()
  }

  /** True while the client may have more. */
  #hold(client: PipelinedClient): boolean {
    const { replyBufferBytes } = this.#owner.limits
    return replyBudget.hold(client, client.output.queuedBytes, replyBufferBytes)
  }

  #sendCancel(): void {
    this.#isClosed = true
    this.#isCautious = true
    this.#cancels++
    const arrived = () => {
      this.#cancels--
      if (this.#queue.size === 0) this.#giveBack()
    }
    this.#server.cancel().then(arrived, arrived)
  }

  /** Lets everybody behind the head run elsewhere; the lane takes no more. */
  #evict(): void {
    this.#isClosed = true
    const head = this.#queue.head
    const clients = this.#queue.withdraw((slot) => slot !== head && !slot.hasAnswered)
    for (const client of clients) client.elsewhere()
  }

  /** The server is not fit to go on: nobody has heard of it yet, so everybody runs elsewhere. */
  #abandon(why: string): void {
    if (this.#isOver) return
    this.#end()
    const slots = this.#queue.takeAll()
    this.#checkout.discard(why)
    for (const { client } of slots) client?.elsewhere()
  }

  #giveBack(): void {
    if (this.#isOver || this.#cancels > 0) return
    this.#end()
    this.#checkout.release()
  }

  #end(): void {
    this.#isOver = true
    this.#isClosed = true
    this.#owner.ended(this)
    this.resume()
    if (this.#server.receiver === this) this.#server.receiver = undefined
  }
}
