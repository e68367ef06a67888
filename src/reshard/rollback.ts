/**
 * The way back after a cutover: what was written on the new side is applied to the old one, both are compared, and the
 * same cutover is done the other way round. May be called again after any death.
 */
import type { Clock } from '../base/clock.js'
import type { Log } from '../base/log.js'
import { engineError } from '../errors/engine-error.js'
import { cutover } from './cutover/cutover.js'
import type { CutoverJournal, CutoverReport } from './cutover/cutover-options.js'
import { dropWayBack } from './cutover/drop-way-back.js'
import { cutoverStanding } from './cutover/epoch-store.js'
import { abandonCutover, completeCutover } from './cutover/resume-cutover.js'
import { backMarks, backName, makeFollowersBack } from './cutover/reverse.js'
import { type ConfigSwitch, noSwitch } from './cutover/switch-config.js'
import type { TrafficGate } from './cutover/traffic-gate.js'
import type { Follower } from './follow/follower.js'
import { Journal } from './journal/journal.js'
import { type JournalRecord, readJournal } from './journal/read-journal.js'
import { catchUp } from './marker.js'
import type { MovePlan } from './move-table.js'
import { type FoundRun, findRun } from './run-status.js'
import type { ReshardSide } from './side.js'
import { describeDifference } from './verify/compare-tables.js'
import { type VerifyReport, verifyLive } from './verify/verify.js'

interface RollbackOptions {
  /** As the configuration calls them now. */
  readonly from: ReshardSide
  readonly to: ReshardSide
  readonly gate: TrafficGate
  readonly config: ConfigSwitch
  readonly clock: Clock
  readonly log: Log
  readonly listener: { step(text: string): void; followed?(changes: number): void }
  readonly budgetMs: number
  readonly verifyHoldMs: number
  readonly endPinned: boolean
  readonly signal?: AbortSignal
  /** Called at each named point; for tests that end the process there. */
  readonly atPoint?: (point: string) => Promise<void>
}

export interface RollbackReport {
  readonly run: string
  readonly changesApplied: number
  readonly verify?: VerifyReport
  /** Absent when only what a dead rollback had left was done. */
  readonly cutover?: CutoverReport
}

/** @throws RESHARD_NO_RUN, RESHARD_NO_WAY_BACK, RESHARD_DIFFERENT, and what a cutover throws */
export async function rollbackRun(options: RollbackOptions): Promise<RollbackReport> {
  const found = await findSwitched(options)
  const { record, source, target } = found
  const journal = await Journal.continue(record, target, options.clock)
  try {
    const report = await new Rollback(options, found, journal).run()
    await journal.setState('rolled_back')
    const again = await readJournal(source.name, target)
    await dropWayBack(again?.objects ?? [], found, options.clock, (object) =>
      journal.markGone(object),
    )
    return report
  } finally {
    await options.gate.close()
    await journal.close()
  }
}

/** Applies what is written on the new side to the old one, until interrupted. @throws RESHARD_NO_WAY_BACK */
export async function followBack(
  options: Pick<RollbackOptions, 'from' | 'to' | 'clock' | 'listener' | 'signal'>,
): Promise<{ run: string; changesApplied: number }> {
  const { clock, signal, listener } = options
  const { record, source, target } = await findSwitched(options)
  const journal = await Journal.continue(record, target, clock)
  const { followers } = await followersOf({ record, source, target }, clock)
  try {
    await startAll(followers)
    listener.step('following back; interrupt to stop')
    while (!signal?.aborted) {
      const failures = followers.map((follower) => follower.failed)
      await Promise.race([clock.sleep(1000, signal), journal.lost, ...failures])
      listener.followed?.(sumOf(followers))
    }
    return { run: record.run, changesApplied: sumOf(followers) }
  } finally {
    await Promise.all(followers.map((follower) => follower.stop()))
    await journal.close()
  }
}

async function findSwitched(options: Pick<RollbackOptions, 'from' | 'to'>): Promise<FoundRun> {
  const { from, to } = options
  const found = await findRun(from, to)
  if (found) return found
  throw engineError('RESHARD_NO_RUN', { from: from.name, to: to.name })
}

const sumOf = (followers: readonly Follower[]): number =>
  followers.reduce((sum, follower) => sum + follower.changes, 0)

async function startAll(followers: readonly Follower[]): Promise<void> {
  const ends = await Promise.allSettled(followers.map((follower) => follower.start()))
  for (const end of ends) if (end.status === 'rejected') throw end.reason
}

async function followersOf(
  sides: { record: JournalRecord; source: ReshardSide; target: ReshardSide },
  clock: Clock,
): Promise<{ followers: Follower[]; plan: MovePlan }> {
  const { record, source, target } = sides
  const names = { from: source.name, to: target.name }
  if ((await cutoverStanding(source, target)) !== 'switched') {
    throw engineError('RESHARD_NO_WAY_BACK', { ...names, reason: 'the move was not switched' })
  }
  const marks = backMarks(record.facts)
  const isArmed = record.objects.some(({ kind, side }) => kind === 'slot' && side === 'target')
  if (!marks || !isArmed) {
    const reason = marks ? 'it was cleaned up' : 'the cutover was told --no-reverse'
    throw engineError('RESHARD_NO_WAY_BACK', { ...names, reason })
  }
  return makeFollowersBack(source, target, record.run, marks, clock)
}

class Rollback {
  readonly #options: RollbackOptions
  readonly #found: FoundRun
  readonly #journal: Journal

  constructor(options: RollbackOptions, found: FoundRun, journal: Journal) {
    this.#options = options
    this.#found = found
    this.#journal = journal
  }

  async run(): Promise<RollbackReport> {
    const options = this.#options
    const sides = this.#sides()
    const { run } = this.#journal
    const standing = await cutoverStanding(sides.left, sides.taken)
    if (standing === 'switched') {
      options.listener.step('the old side has taken over again: doing what is left')
      const config = this.#found.isSwitched ? options.config : noSwitch
      await completeCutover({ ...options, config, source: sides.left, target: sides.taken })
      return { run, changesApplied: 0 }
    }
    if (standing === 'fenced') {
      await abandonCutover({ source: sides.left, gate: options.gate, log: options.log })
    }
    const { followers, plan } = await followersOf(this.#found, options.clock)
    try {
      await startAll(followers)
      options.listener.step('applying to the old side what was written on the new one')
      await this.#watched(followers, catchUp(sides.left, followers))
      options.listener.step(`caught up: ${sumOf(followers)} changes applied`)
      const verify = await this.#verify(followers, plan)
      options.listener.step('switching back')
      const report = await this.#switch(followers, plan)
      options.listener.step(`switched back; writes were paused for ${report.writePauseMs} ms`)
      return { run, changesApplied: sumOf(followers), verify, cutover: report }
    } finally {
      await Promise.all(followers.map((follower) => follower.stop()))
    }
  }

  /** The side that is left, under the name that clients say, and the one that takes over. */
  #sides(): { left: ReshardSide; taken: ReshardSide } {
    const { source, target } = this.#found
    return { left: { ...target, name: source.name }, taken: { ...source, name: target.name } }
  }

  async #verify(followers: readonly Follower[], plan: MovePlan): Promise<VerifyReport> {
    const { clock, verifyHoldMs, listener } = this.#options
    const { left, taken } = this.#sides()
    listener.step('comparing both sides, row by row')
    const report = await this.#watched(
      followers,
      verifyLive({
        ...{ source: left, target: taken, clock, plan, followers },
        run: backName(this.#journal.run),
        holdMs: verifyHoldMs,
      }),
    )
    const different = report.tables.filter((table) => !table.same)
    if (different.length === 0) return report
    throw engineError(
      'RESHARD_DIFFERENT',
      { from: left.name, to: taken.name, tables: different.length },
      { detail: different.map(describeDifference).join('\n') },
    )
  }

  async #switch(followers: readonly Follower[], plan: MovePlan): Promise<CutoverReport> {
    const { gate, config, clock, log, budgetMs, endPinned, atPoint } = this.#options
    const { left, taken } = this.#sides()
    await config.prepare()
    return cutover({
      ...{ source: left, target: taken, plan, followers, gate, config, clock, log },
      journal: journalBack(this.#journal),
      fenceSide: 'target',
      lateSchema: undefined,
      budgetMs,
      endPinned,
      ...(atPoint ? { point: (name: string) => atPoint(`rollback:${name}`) } : {}),
    })
  }

  async #watched<T>(followers: readonly Follower[], work: Promise<T>): Promise<T> {
    work.catch(() => undefined)
    const failures = followers.map((follower) => follower.failed)
    return Promise.race([work, this.#journal.lost, ...failures])
  }
}

/** The state of the run stays that of a move that is done until the old side has taken over. */
const journalBack = (journal: Journal): CutoverJournal => ({
  run: journal.run,
  setState: () => journal.note({ rolling_back: true }),
  note: (facts) => journal.note(facts),
  register: (object) => journal.register(object),
})
