/** What the steps of one run share: its options, its journal, what is known of both sides, and the streams. */
import { engineError, toEngineError } from '../../errors/engine-error.js'
import type { HostClient } from '../../pg/host-client.js'
import type { CutoverReport } from '../cutover/cutover-options.js'
import { DdlWatch } from '../follow/ddl-watch.js'
import type { Follower } from '../follow/follower.js'
import type { TableShapes } from '../follow/table-shapes.js'
import type { Journal } from '../journal/journal.js'
import type { SchemaDump } from '../schema/dump-schema.js'
import type { VerifyReport } from '../verify/verify.js'
import type { RunFacts } from './run-facts.js'
import type { RunOptions } from './run-options.js'

export interface CopiedTable {
  readonly name: string
  readonly rows: number
  readonly bytes: number
}

export class RunContext {
  readonly options: RunOptions
  readonly journal: Journal
  readonly found: RunFacts
  readonly startedMs: number
  followers: readonly Follower[] = []
  copied: readonly CopiedTable[] = []
  verify: VerifyReport | undefined
  cutover: CutoverReport | undefined
  brokenForeignKeys: readonly string[] = []
  /** Read by the copy in this process. */
  copiedBytes = 0
  /** Aborted when the run is given up: what is under way breaks off, as by the signal of the options. */
  readonly breakOff = new AbortController()
  #dump: SchemaDump | undefined
  #ddl: DdlWatch | undefined
  #ended = 0

  constructor(options: RunOptions, journal: Journal, found: RunFacts) {
    const signals = [this.breakOff.signal, ...(options.signal ? [options.signal] : [])]
    this.options = { ...options, signal: AbortSignal.any(signals) }
    this.journal = journal
    this.found = found
    this.startedMs = options.clock.monotonicMs()
  }

  /** A place where tests end the run. Every name is in `faultPoints`. */
  async point(name: string): Promise<void> {
    await this.options.atPoint?.(name)
  }

  /** @throws INTERRUPTED */
  checkSignal(): void {
    if (this.options.signal?.aborted) throw engineError('INTERRUPTED', { what: 'reshard run' })
  }

  say(text: string): void {
    this.options.listener.step(text)
  }

  /** The schema as it was dumped; undefined when the tables stood on the targets before the run. */
  async dump(): Promise<SchemaDump | undefined> {
    if (this.#dump) return this.#dump
    const kept = await this.journal.text('schema')
    this.#dump = kept === undefined ? undefined : (JSON.parse(kept) as SchemaDump)
    return this.#dump
  }

  /** Of this process, also when its streams have ended. */
  get changesApplied(): number {
    return this.#ended + this.changes()
  }

  changes(): number {
    return this.followers.reduce((sum, follower) => sum + follower.changes, 0)
  }

  /** A follower that fails, and a lost journal, cut short what would wait in vain. */
  async watched<T>(work: Promise<T>): Promise<T> {
    work.catch(() => undefined)
    const failures = this.followers.map((follower) => follower.failed)
    if (this.#ddl) failures.push(this.#ddl.failed)
    return Promise.race([work, this.journal.lost, ...failures])
  }

  /** From now on a change of the sources' tables breaks the run off. */
  watchTables(before: readonly TableShapes[]): void {
    const { source, clock } = this.options
    this.#ddl = new DdlWatch(source, before, clock)
    this.#ddl.start()
  }

  /** @throws RESHARD_DDL when a table of a source is not what it was when the run began */
  async checkTables(open?: readonly HostClient[]): Promise<void> {
    await this.#ddl?.check(open)
  }

  async stopWatching(): Promise<void> {
    await this.#ddl?.stop()
  }

  async stopFollowers(): Promise<void> {
    const ends = await Promise.allSettled(this.followers.map((follower) => follower.stop()))
    for (const end of ends) {
      if (end.status === 'fulfilled') continue
      const reason = toEngineError(end.reason).message
      this.options.log.warn('a stream did not end as it should', { reason })
    }
    this.#ended += this.changes()
    this.followers = []
  }
}
