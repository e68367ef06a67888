/**
 * A whole move, N shards to M, while the source serves: preflight, schema, copy, follow, verify, cutover.
 * Each step stands in the journal. A failure before the switch leaves the source as it was and takes our slots away.
 */
import type { Clock } from '../base/clock.js'
import type { Log } from '../base/log.js'
import { engineError, toEngineError } from '../errors/engine-error.js'
import { adminQuery } from '../pg/admin-query.js'
import type { SnapshotSlot } from '../replication/slot.js'
import { copyTables, type TableCopied } from './copy/copy-tables.js'
import { type CutoverReport, cutover } from './cutover/cutover.js'
import type { ConfigSwitch } from './cutover/switch-config.js'
import type { TrafficGate } from './cutover/traffic-gate.js'
import { Follower } from './follow/follower.js'
import { Journal, type JournalObject, readJournal } from './journal/journal.js'
import {
  dropSourceObjects,
  makePublications,
  makeSlots,
  publicationName,
  slotName,
} from './journal/run-objects.js'
import { catchUp } from './marker.js'
import { type MoveTable, tableLabel } from './move-table.js'
import { type Preflight, type Problem, preflight, refuseProblems } from './preflight/preflight.js'
import { makeIndexes, makeTables, makeTriggers, validateForeignKeys } from './schema/copy-schema.js'
import { dumpSchema, type SchemaDump } from './schema/dump-schema.js'
import { onEachShard, type ReshardSide } from './side.js'
import { describeDifference, type VerifyReport, verifyLive } from './verify/verify.js'

/** What a run tells while it works. */
export interface RunListener {
  step(text: string): void
  /** Bytes read of a table, all sources together. */
  copied?(table: string, bytes: number, totalBytes: number): void
  followed?(changes: number): void
}

export interface RunOptions {
  readonly source: ReshardSide
  readonly target: ReshardSide
  readonly gate: TrafficGate
  readonly config: ConfigSwitch
  readonly clock: Clock
  readonly log: Log
  readonly listener: RunListener
  /** Readers a source shard. */
  readonly jobs: number
  readonly budgetMs: number
  readonly verifyHoldMs: number
  readonly stopAfter?: 'copy' | 'follow' | 'verify'
  readonly signal?: AbortSignal
  /** pg_dump to use; null: the one in npm. */
  readonly dumpProgram?: string | null
}

export interface RunReport {
  readonly run: string
  readonly state: 'copying' | 'following' | 'ready' | 'cut_over'
  readonly warnings: readonly Problem[]
  readonly rowsCopied: number
  readonly bytesCopied: number
  readonly changesApplied: number
  readonly tables: readonly {
    readonly name: string
    readonly rows: number
    readonly bytes: number
  }[]
  readonly verify?: VerifyReport
  readonly cutover?: CutoverReport
  readonly brokenForeignKeys: readonly string[]
  readonly elapsedMs: number
}

/** The whole move. @throws RESHARD_*; before the cutover's point of no return the source is unharmed */
export async function runReshard(options: RunOptions): Promise<RunReport> {
  const { source, target } = options
  const earlier = await readJournal(source.name, target)
  if (earlier && !['cleaned', 'cut_over'].includes(earlier.state)) {
    throw engineError('RESHARD_RUN_OPEN', {
      run: earlier.run,
      state: earlier.state,
      from: source.name,
      to: target.name,
    })
  }
  options.listener.step('looking at both sides')
  const found = await preflight(source, target)
  refuseProblems(found, source.name, target.name)
  if (!options.stopAfter) {
    await options.config.prepare()
    await options.gate.open()
  }
  const journal = await Journal.begin(source, target)
  const run = new Run(options, found, journal)
  try {
    return await run.all()
  } catch (error) {
    await run.failed(error)
    throw error
  } finally {
    await run.close()
  }
}

/** All that the run makes on the targets, which were bare. */
const targetSchema: JournalObject = { kind: 'target_schema', side: 'target', shard: 0, name: 'all' }

class Run {
  readonly #options: RunOptions
  readonly #found: Preflight
  readonly #journal: Journal
  readonly #startedMs: number
  readonly #copied: TableCopied[] = []
  #dump: SchemaDump | undefined
  #slots: SnapshotSlot[] = []
  #followers: Follower[] = []

  constructor(options: RunOptions, found: Preflight, journal: Journal) {
    this.#options = options
    this.#found = found
    this.#journal = journal
    this.#startedMs = options.clock.monotonicMs()
  }

  async all(): Promise<RunReport> {
    const { stopAfter } = this.#options
    await this.#schema()
    await this.#copy()
    if (stopAfter === 'copy') return this.#report('copying')
    await this.#follow()
    if (stopAfter === 'follow') return this.#report('following')
    const verify = await this.#verify()
    if (stopAfter === 'verify') return this.#report('ready', { verify })
    const report = await this.#cutover()
    const brokenForeignKeys = await this.#afterSwitch(report)
    return this.#report('cut_over', { verify, cutover: report, brokenForeignKeys })
  }

  /** The move is done: what fails here is told and left to cleanup. */
  async #afterSwitch(report: CutoverReport): Promise<string[]> {
    const { source, target, listener, log } = this.#options
    listener.step('clearing up: slots and publications')
    const attempt = async (what: string, work: () => Promise<void>): Promise<void> => {
      await work().catch((error: unknown) => {
        log.warn(`the move is done, but ${what} failed`, { reason: toEngineError(error).message })
      })
    }
    let broken: string[] = []
    await attempt('ending the streams', () => this.#stopFollowers())
    await attempt('dropping slots and publications (say reshard cleanup)', () =>
      this.#dropObjects(),
    )
    await attempt('validating foreign keys', async () => {
      if (this.#dump) broken = await validateForeignKeys(target, this.#dump)
    })
    await attempt('writing the journal', async () => {
      await this.#journal.note({ write_pause_ms: report.writePauseMs })
      await this.#journal.markGone(targetSchema)
    })
    listener.step(`"${source.name}" is served by ${target.shards.length} shards`)
    return broken
  }

  /** A run cannot be taken up again today: nothing of it may go on holding WAL on the sources. */
  async failed(error: unknown): Promise<void> {
    const { code, message } = toEngineError(error)
    await this.#stopFollowers().catch(() => undefined)
    await this.#releaseSlots()
    const isSwitched = code === 'RESHARD_SWITCHED_HALF'
    await this.#journal.setState(isSwitched ? 'cut_over' : 'failed', message).catch(() => undefined)
    await this.#dropObjects().catch((reason: unknown) => {
      this.#options.log.warn(
        'could not drop what the run made on the sources: say reshard cleanup',
        {
          reason: toEngineError(reason).message,
        },
      )
    })
  }

  async close(): Promise<void> {
    await this.#stopFollowers().catch(() => undefined)
    await this.#releaseSlots()
    await this.#options.gate.close()
    await this.#journal.close()
  }

  #checkSignal(): void {
    if (this.#options.signal?.aborted) throw engineError('INTERRUPTED', { what: 'reshard run' })
  }

  async #schema(): Promise<void> {
    const { source, target, listener, dumpProgram } = this.#options
    const major = (version: number): number => Math.floor(version / 10_000)
    await this.#journal.setState('schema')
    if (this.#found.hasTargetTables) {
      listener.step('the tables stand on the targets already')
      return
    }
    const first = source.shards[0] as (typeof source.shards)[number]
    this.#dump = await dumpSchema(first, {
      sourceMajor: major(this.#found.sourceVersion),
      targetMajor: major(this.#found.targetVersion),
      ...(dumpProgram === undefined ? {} : { program: dumpProgram }),
    })
    listener.step(`making the tables on ${target.shards.length} shards (${this.#dump.by})`)
    await this.#journal.register(targetSchema)
    await makeTables(target, this.#dump)
  }

  async #copy(): Promise<void> {
    const { source, target, listener, clock, jobs, signal } = this.#options
    const { plan, binary, replicaRole } = this.#found
    this.#checkSignal()
    await this.#journal.setState('copying')
    await this.#journal.note({ copy_started_ms: clock.nowMs() })
    for (const table of plan.tables) await this.#noteTable(table, 'waiting')
    await makePublications(this.#journal, source, plan)
    listener.step(`taking a snapshot of ${source.shards.length} source shards`)
    this.#slots = await makeSlots(this.#journal, source, clock)
    listener.step(`copying ${plan.tables.length} tables`)
    const bytes = new Map<MoveTable, number>()
    await copyTables({
      plan,
      source,
      target,
      snapshots: this.#slots.map((slot) => slot.snapshotName),
      jobs,
      binary,
      replicaRole,
      ...(signal ? { signal } : {}),
      onBytes: (table, added) => {
        const sum = (bytes.get(table) ?? 0) + added
        bytes.set(table, sum)
        listener.copied?.(tableLabel(table), sum, table.bytes * table.sourceShards.length)
      },
      onTable: async (copied) => {
        this.#copied.push(copied)
        const parts = this.#copied.filter(({ table }) => table === copied.table)
        const isWhole = parts.length === copied.table.sourceShards.length
        await this.#noteTable(copied.table, isWhole ? 'copied' : 'copying')
        await this.#journal.note({ copy_seen_ms: clock.nowMs() })
      },
    })
    await this.#releaseSlots(true)
    this.#checkSignal()
    if (this.#dump) {
      listener.step('making keys and indexes')
      await makeIndexes(target, this.#dump)
      if (replicaRole) await makeTriggers(target, this.#dump)
    }
    await onEachShard(target, (client) => adminQuery(client, 'ANALYZE'))
  }

  async #follow(): Promise<void> {
    const { source, target, listener, clock } = this.#options
    const { plan, sourceVersion, binary, replicaRole } = this.#found
    this.#checkSignal()
    await this.#journal.setState('following')
    const { run } = this.#journal
    this.#followers = source.shards.map(
      (shard, number) =>
        new Follower({
          plan,
          run,
          shard: number,
          source: shard,
          targets: target.shards,
          slot: slotName(run, number),
          publication: publicationName(run),
          startLsn: (this.#slots[number] as SnapshotSlot).consistentLsn,
          serverVersion: sourceVersion,
          binary,
          replicaRole,
          clock,
        }),
    )
    await Promise.all(this.#followers.map((follower) => follower.start()))
    listener.step('applying what was written meanwhile')
    await this.#whileFollowing(catchUp(source, this.#followers))
    listener.step(`caught up: ${this.#changes()} changes applied`)
  }

  async #verify(): Promise<VerifyReport> {
    const { source, target, listener, clock, verifyHoldMs } = this.#options
    this.#checkSignal()
    await this.#journal.setState('verifying')
    listener.step('comparing both sides, row by row')
    const report = await this.#whileFollowing(
      verifyLive({
        source,
        target,
        clock,
        plan: this.#found.plan,
        run: this.#journal.run,
        followers: this.#followers,
        holdMs: verifyHoldMs,
      }),
    )
    const different = report.tables.filter((table) => !table.same)
    await this.#journal.note({ verified_at_lsn: report.sourceLsns })
    if (different.length > 0) {
      throw engineError(
        'RESHARD_DIFFERENT',
        { from: source.name, to: target.name, tables: different.length },
        { detail: different.map(describeDifference).join('\n') },
      )
    }
    const rows = report.tables.reduce((sum, table) => sum + table.sourceRows, 0)
    listener.step(`equal: ${rows.toLocaleString('en')} rows in ${report.tables.length} tables`)
    await this.#journal.setState('ready')
    return report
  }

  async #cutover(): Promise<CutoverReport> {
    const { source, target, gate, config, budgetMs, clock, log, listener } = this.#options
    this.#checkSignal()
    listener.step('switching over')
    // Never broken off from outside: it gives back what it took.
    const report = await cutover({
      source,
      target,
      plan: this.#found.plan,
      followers: this.#followers,
      gate,
      config,
      journal: this.#journal,
      lateSchema: this.#found.replicaRole ? undefined : this.#dump,
      budgetMs,
      clock,
      log,
    })
    listener.step(`switched; writes were paused for ${report.writePauseMs} ms`)
    return report
  }

  /** A follower that fails cuts short what would wait for it in vain. */
  async #whileFollowing<T>(work: Promise<T>): Promise<T> {
    work.catch(() => undefined)
    return Promise.race([work, ...this.#followers.map((follower) => follower.failed)])
  }

  #changes(): number {
    return this.#followers.reduce((sum, follower) => sum + follower.changes, 0)
  }

  async #noteTable(table: MoveTable, state: 'waiting' | 'copying' | 'copied'): Promise<void> {
    const parts = this.#copied.filter((copied) => copied.table === table)
    await this.#journal.setTable({
      name: tableLabel(table),
      rows: parts.reduce((sum, part) => sum + part.rows, 0),
      bytes: parts.reduce((sum, part) => sum + part.bytes, 0),
      totalBytes: table.bytes * table.sourceShards.length,
      state,
    })
  }

  async #stopFollowers(): Promise<void> {
    await Promise.all(this.#followers.map((follower) => follower.stop()))
  }

  /** Ends the connections that hold the snapshots; what the slots said is still needed. */
  async #releaseSlots(keep = false): Promise<void> {
    const slots = this.#slots
    await Promise.all(slots.map((slot) => slot.release().catch(() => undefined)))
    if (!keep) this.#slots = []
  }

  async #dropObjects(): Promise<void> {
    const { source, target, clock } = this.#options
    const record = await readJournal(source.name, target)
    await dropSourceObjects(record?.objects ?? [], source, clock, (object) =>
      this.#journal.markGone(object),
    )
  }

  #report(state: RunReport['state'], more: Partial<RunReport> = {}): RunReport {
    const tables = this.#found.plan.tables.map((table) => {
      const parts = this.#copied.filter((copied) => copied.table === table)
      return {
        name: tableLabel(table),
        rows: parts.reduce((sum, part) => sum + part.rows, 0),
        bytes: parts.reduce((sum, part) => sum + part.bytes, 0),
      }
    })
    return {
      run: this.#journal.run,
      state,
      warnings: this.#found.problems.filter((problem) => problem.severity === 'warning'),
      rowsCopied: tables.reduce((sum, table) => sum + table.rows, 0),
      bytesCopied: tables.reduce((sum, table) => sum + table.bytes, 0),
      changesApplied: this.#changes(),
      tables,
      brokenForeignKeys: [],
      elapsedMs: Math.round(this.#options.clock.monotonicMs() - this.#startedMs),
      ...more,
    }
  }
}
