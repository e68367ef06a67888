/**
 * One source shard followed: its stream is queued within a bound, routed, applied to the targets in batches,
 * and acknowledged only when every target has committed. It can be held between two transactions, let on up to
 * a position, and asked when a marker written on the source has been applied.
 */
import type { Clock } from '../../base/clock.js'
import { type Deferred, deferred } from '../../base/deferred.js'
import { RingQueue } from '../../base/ring-queue.js'
import type { HostTarget } from '../../pg/host-client.js'
import type { Change } from '../../replication/change.js'
import type { Lsn } from '../../replication/lsn.js'
import { ReplicationStream } from '../../replication/stream.js'
import type { JournalPart } from '../journal/journal.js'
import { type MovePlan, tablesOf } from '../move-table.js'
import { placeOf } from '../side.js'
import { type Barrier, rekeyRow, truncateTables } from './apply-barriers.js'
import { ChangeRouter } from './route-change.js'
import { readSourceRow } from './source-row.js'
import { TargetWriter, type WriterOptions } from './target-writer.js'
import { Watermarks } from './watermarks.js'

const MAX_BATCH_CHANGES = 2_000
const MAX_BATCH_BYTES = 4 << 20
const MAX_QUEUED_BYTES = 32 << 20
const RESUME_QUEUED_BYTES = 8 << 20
export const MARKER_PREFIX = 'pgshard'

export interface FollowerOptions {
  readonly plan: MovePlan
  readonly run: string
  readonly shard: number
  readonly source: HostTarget
  readonly targets: readonly HostTarget[]
  readonly slot: string
  readonly publication: string
  readonly startLsn: Lsn
  readonly serverVersion: number
  readonly binary: boolean
  readonly replicaRole: boolean
  readonly clock: Clock
  /** The parts of all sources, as the journal has them. */
  readonly parts: readonly JournalPart[]
  /** Called before a batch is committed anywhere. */
  readonly onBatch?: (() => Promise<void>) | undefined
  /** Called when the first target has committed a batch. */
  readonly onCommitted?: (() => Promise<void>) | undefined
}

export class Follower {
  readonly #options: FollowerOptions
  readonly #router: ChangeRouter
  readonly #queue = new RingQueue<Change>()
  readonly #markers = new Map<string, Deferred<void>>()
  readonly #failure: Deferred<never> = deferred()
  #queuedBytes = 0
  #isPaused = false
  #writers: TargetWriter[] = []
  #watermarks: Watermarks
  #stream: ReplicationStream | undefined
  #wake: Deferred<void> = deferred()
  #signals = 0
  #isStopped = false
  #loop: Promise<void> = Promise.resolve()
  /** Commits that start here or later wait. undefined: none waits. */
  #limit: bigint | undefined
  #atLimit: Deferred<void> | undefined
  #commitStart: Lsn | undefined
  #markersSeen: string[] = []
  /** End of the last transaction read whole, to be stored with the next batch. */
  #readTo: Lsn | undefined
  changes = 0
  transactions = 0
  appliedLsn: Lsn

  constructor(options: FollowerOptions) {
    this.#options = options
    this.#router = new ChangeRouter(options.plan, placeOf(options.source))
    this.appliedLsn = options.startLsn
    this.#watermarks = new Watermarks([], options.shard, [], [])
    this.#failure.promise.catch(() => undefined)
  }

  /** Rejects when the follower has failed; never resolves. */
  get failed(): Promise<never> {
    return this.#failure.promise
  }

  get singleRows(): number {
    return this.#writers.reduce((sum, writer) => sum + writer.singleRows, 0)
  }

  async start(): Promise<void> {
    const { targets, run, shard, replicaRole, clock, plan, parts } = this.#options
    this.#writers = await openWriters(
      targets.map((target) => ({ target, run, source: shard, replicaRole, clock })),
    )
    const copied = await Promise.all(this.#writers.map((writer) => writer.copied()))
    this.#watermarks = new Watermarks(tablesOf(plan, shard), shard, parts, copied)
    const { source, slot, publication, ...rest } = this.#options
    this.#stream = new ReplicationStream(
      { ...rest, target: source, slot, publications: [publication], origin: 'any' },
      {
        onChange: (change) => this.#enqueue(change),
        onKeepalive: (walEnd) => this.#idleAt(walEnd),
        onEnd: (error) => this.#fail(error),
      },
    )
    await this.#stream.start()
    this.#loop = this.#run().catch((error: unknown) => this.#fail(error))
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#signal()
    await this.#loop.catch(() => undefined)
    await this.#stream?.stop()
    await Promise.all(this.#writers.map((writer) => writer.close()))
  }

  /** Stops between two transactions; resolves when all that was begun is committed on the targets. */
  hold(): Promise<void> {
    return this.#setLimit(0n)
  }

  /** Lets a held follower apply the commits whose record starts before `lsn`; resolves when the next one waits. */
  holdAt(lsn: Lsn): Promise<void> {
    return this.#setLimit(lsn)
  }

  release(): void {
    this.#limit = undefined
    this.#atLimit = undefined
    this.#signal()
  }

  /** Resolves when the transaction that wrote the marker, and so all before it, is committed on the targets. */
  marker(token: string): Promise<void> {
    const waiting: Deferred<void> = deferred()
    this.#markers.set(token, waiting)
    return Promise.race([waiting.promise, this.failed])
  }

  #setLimit(limit: bigint): Promise<void> {
    this.#limit = limit
    this.#atLimit = deferred()
    this.#signal()
    return Promise.race([this.#atLimit.promise, this.failed])
  }

  #signal(): void {
    this.#signals++
    this.#wake.resolve()
  }

  #fail(error: unknown): void {
    this.#isStopped = true
    this.#signal()
    this.#failure.reject(error)
  }

  #enqueue(change: Change): void {
    this.#queue.push(change)
    this.#queuedBytes += sizeOf(change)
    if (!this.#isPaused && this.#queuedBytes > MAX_QUEUED_BYTES) {
      this.#isPaused = true
      this.#stream?.pause()
    }
    this.#signal()
  }

  #dequeue(): void {
    const change = this.#queue.shift()
    if (change) this.#queuedBytes -= sizeOf(change)
    if (this.#isPaused && this.#queuedBytes < RESUME_QUEUED_BYTES) {
      this.#isPaused = false
      this.#stream?.resume()
    }
  }

  /** With nothing in hand all that the server has read is settled: it may forget that WAL. */
  #idleAt(walEnd: Lsn): void {
    const isIdle = this.#queue.size === 0 && this.#commitStart === undefined
    if (isIdle && this.#readTo === undefined) this.#stream?.acknowledge(walEnd)
  }

  async #run(): Promise<void> {
    while (!this.#isStopped) {
      const signals = this.#signals
      const change = this.#queue.peek()
      if (change && !this.#mustWait(change)) {
        await this.#take(change)
        this.#dequeue()
        continue
      }
      if (this.#commitStart === undefined) {
        await this.#flush()
        if (change || this.#limit === 0n) this.#atLimit?.resolve()
      }
      this.#wake = deferred()
      // What was signalled while flushing is seen before sleeping.
      if (this.#signals === signals && !this.#isStopped) await this.#wake.promise
    }
  }

  #mustWait(change: Change): boolean {
    const { finalLsn } = change as { finalLsn?: Lsn }
    return change.kind === 'begin' && this.#limit !== undefined && (finalLsn as Lsn) >= this.#limit
  }

  async #take(change: Change): Promise<void> {
    switch (change.kind) {
      case 'begin':
        this.#commitStart = change.finalLsn
        return
      case 'commit':
        return this.#commit(change.endLsn)
      case 'insert':
      case 'update':
      case 'delete':
        return this.#row(change)
      case 'truncate':
        return truncateTables(
          change.relations.map((relation) => this.#router.tableOf(relation)),
          this.#barrier(),
        )
      case 'message':
        if (change.prefix === MARKER_PREFIX) this.#markersSeen.push(change.content.toString())
        return
      default:
        return
    }
  }

  async #row(change: Extract<Change, { kind: 'insert' | 'update' | 'delete' }>): Promise<void> {
    this.changes++
    const routed = this.#router.route(change)
    if (routed.kind === 'rekey') return rekeyRow(routed.rekey, this.#barrier())
    const start = this.#commitStart as Lsn
    for (const { shard, op } of routed.ops) {
      const writer = this.#writers[shard] as TargetWriter
      if (!this.#isNew(writer)) continue
      if (!this.#watermarks.covers(shard, op.table, op.row, start)) writer.batch.add(op)
    }
    if (this.#isFull()) await this.#flush()
  }

  #barrier(): Barrier {
    const { plan, shard, source, run, clock } = this.#options
    return {
      plan,
      source: shard,
      writers: this.#writers,
      watermarks: this.#watermarks,
      commitStart: this.#commitStart as Lsn,
      isNew: (target) => this.#isNew(this.#writers[target] as TargetWriter),
      settle: () => this.#flush(),
      reread: (table, row) => readSourceRow(source, run, clock, { table, row }),
    }
  }

  /** False for a target that has committed the transaction at hand before a restart. */
  #isNew(writer: TargetWriter): boolean {
    // Commit records do not overlap: one that starts before the stored end is stored.
    return (this.#commitStart ?? 0n) >= writer.progress
  }

  async #commit(endLsn: Lsn): Promise<void> {
    this.#commitStart = undefined
    this.#readTo = endLsn
    this.transactions++
    // What is open on a target ends with its source transaction: a slot on the same server would wait for it.
    const isOpen = this.#writers.some((writer) => writer.isOpen)
    if (this.#markersSeen.length === 0 && !isOpen && !this.#isFull()) return
    const seen = this.#markersSeen
    this.#markersSeen = []
    await this.#flush()
    for (const token of seen) {
      this.#markers.get(token)?.resolve()
      this.#markers.delete(token)
    }
  }

  #isFull(): boolean {
    // A row that must be read again wants no open transaction on the targets: transactions are kept whole for longer.
    const start = this.#commitStart
    const factor = start !== undefined && start < this.#watermarks.highest ? 16 : 1
    const changes = MAX_BATCH_CHANGES * factor
    const bytes = MAX_BATCH_BYTES * factor
    return this.#writers.some(({ batch }) => batch.size >= changes || batch.bytes >= bytes)
  }

  /** Commits what is batched on every target, then acknowledges. Inside a transaction its rows are sent, and wait for its end. */
  async #flush(): Promise<void> {
    const isWhole = this.#commitStart === undefined
    const upTo = isWhole ? this.#readTo : undefined
    if (upTo !== undefined) await this.#options.onBatch?.()
    await this.#flushAll(upTo)
    if (upTo === undefined) return
    this.#readTo = undefined
    this.appliedLsn = upTo
    this.#stream?.acknowledge(upTo)
  }

  async #flushAll(upTo: Lsn | undefined): Promise<void> {
    const { onCommitted } = this.#options
    if (!onCommitted) {
      await Promise.all(this.#writers.map((writer) => writer.flush(upTo)))
      return
    }
    for (const [i, writer] of this.#writers.entries()) {
      await writer.flush(upTo)
      if (i === 0 && upTo !== undefined) await onCommitted()
    }
  }
}

/** About what a change holds in memory. */
function sizeOf(change: Change): number {
  if (change.kind === 'insert' || change.kind === 'update') return change.after.bytes.length + 200
  return change.kind === 'delete' ? change.before.bytes.length + 200 : 100
}

/** Opens all; closes those that opened when one fails. */
async function openWriters(options: readonly WriterOptions[]): Promise<TargetWriter[]> {
  const ends = await Promise.allSettled(options.map((one) => TargetWriter.open(one)))
  const opened = ends.flatMap((end) => (end.status === 'fulfilled' ? [end.value] : []))
  for (const end of ends) {
    if (end.status === 'fulfilled') continue
    await Promise.all(opened.map((writer) => writer.close()))
    throw end.reason
  }
  return opened
}
