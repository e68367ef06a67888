/**
 * The switch: traffic paused, old tables locked, the last changes applied, sequences set, configuration exchanged and
 * read again, old side fenced, traffic resumed. Whatever fails before the proxy has read the new configuration gives
 * the old side back as it was.
 */
import type { Clock } from '../../base/clock.js'
import type { Log } from '../../base/log.js'
import { engineError, isEngineError, toEngineError } from '../../errors/engine-error.js'
import type { Follower } from '../follow/follower.js'
import type { Journal } from '../journal/journal.js'
import { catchUp } from '../marker.js'
import type { MovePlan } from '../move-table.js'
import { makeTriggers } from '../schema/copy-schema.js'
import type { SchemaDump } from '../schema/dump-schema.js'
import { advanceSequences } from '../schema/sequences.js'
import type { ReshardSide } from '../side.js'
import { type LockedSource, lockSource, prepareFence } from './fence.js'
import type { ConfigSwitch } from './switch-config.js'
import type { TrafficGate } from './traffic-gate.js'

export interface CutoverOptions {
  readonly source: ReshardSide
  readonly target: ReshardSide
  readonly plan: MovePlan
  readonly followers: readonly Follower[]
  readonly gate: TrafficGate
  readonly config: ConfigSwitch
  readonly journal: Journal
  /** Foreign keys and triggers still to be made on the targets; undefined when they stand. */
  readonly lateSchema: SchemaDump | undefined
  /** From PAUSE to RESUME. */
  readonly budgetMs: number
  readonly clock: Clock
  readonly log: Log
}

export interface CutoverReport {
  readonly writePauseMs: number
  readonly steps: readonly { readonly step: string; readonly ms: number }[]
  readonly sequences: number
  readonly configBackup: string
}

/** Times the steps of a cutover, and knows which one is under way. */
class StepTimer {
  readonly steps: { step: string; ms: number }[] = []
  current = 'preparing'
  readonly #clock: Clock

  constructor(clock: Clock) {
    this.#clock = clock
  }

  async run<T>(step: string, work: () => Promise<T>): Promise<T> {
    this.current = step
    const startedMs = this.#clock.monotonicMs()
    try {
      return await work()
    } finally {
      this.steps.push({ step, ms: Math.round((this.#clock.monotonicMs() - startedMs) * 10) / 10 })
    }
  }
}

/** @throws RESHARD_PAUSE, RESHARD_LOCK, RESHARD_CATCH_UP, RESHARD_CUTOVER: nothing is switched. RESHARD_SWITCHED_HALF: it is. */
export async function cutover(options: CutoverOptions): Promise<CutoverReport> {
  const { gate, config, source, followers, clock } = options
  await config.prepare()
  await gate.open()
  await prepareFence(source)
  for (const shard of source.shards.keys()) {
    await options.journal.register({ kind: 'fence', side: 'source', shard, name: 'pgshard_fence' })
  }
  // Most of what is left is applied before anyone has to wait.
  await catchUp(source, followers)
  const timer = new StepTimer(clock)
  const startedMs = clock.monotonicMs()
  const deadlineMs = startedMs + options.budgetMs
  const locked: LockedSource[] = []
  let switched: { backup: string; sequences: number }
  try {
    switched = await switchOver(options, timer, deadlineMs, locked)
  } catch (error) {
    await giveBack(options, locked)
    throw asCutoverFailure(error, timer.current)
  }
  const resumedMs = await finish(options, timer, locked)
  return {
    writePauseMs: Math.round((resumedMs - startedMs) * 10) / 10,
    steps: timer.steps,
    sequences: switched.sequences,
    configBackup: switched.backup,
  }
}

async function switchOver(
  options: CutoverOptions,
  timer: StepTimer,
  deadlineMs: number,
  locked: LockedSource[],
): Promise<{ backup: string; sequences: number }> {
  const { gate, config, source, target, plan, followers, clock, budgetMs } = options
  const left = (): number => Math.max(1, deadlineMs - clock.monotonicMs())
  await timer.run('pausing the proxy', () => gate.pause(source.name, left()))
  await timer.run('locking the old tables', async () => {
    // In the order of shards, as everyone who locks several does.
    for (const shard of source.shards.keys()) {
      locked.push(await lockSource(source, shard, { plan, clock, deadlineMs, budgetMs }))
    }
  })
  await timer.run('applying the last changes', () =>
    within(catchUp(source, followers), left(), options),
  )
  if (options.lateSchema) {
    const { lateSchema } = options
    await timer.run('making triggers', () => makeTriggers(target, lateSchema))
  }
  const sequences = await timer.run('setting sequences', () =>
    advanceSequences(source, target, plan),
  )
  if (clock.monotonicMs() > deadlineMs) throw engineError('RESHARD_CATCH_UP', { budgetMs })
  await options.journal.setState('cutting_over')
  const backup = await timer.run('switching the configuration', () => config.commit())
  try {
    await timer.run('reloading the proxy', () => gate.reload())
  } catch (error) {
    await config.undo()
    // A proxy that had read the new file before it failed to say so reads the old one again.
    await gate.reload().catch(() => undefined)
    throw error
  }
  return { backup, sequences }
}

async function within(work: Promise<void>, ms: number, options: CutoverOptions): Promise<void> {
  const over = new AbortController()
  const late = options.clock.sleep(ms, over.signal).then(() => {
    if (!over.signal.aborted) throw engineError('RESHARD_CATCH_UP', { budgetMs: options.budgetMs })
  })
  work.catch(() => undefined)
  try {
    await Promise.race([work, late])
  } finally {
    over.abort()
  }
}

/** Unlocks and resumes; what fails here is logged, because the reason to give up is what counts. */
async function giveBack(options: CutoverOptions, locked: readonly LockedSource[]): Promise<void> {
  const { gate, source, log } = options
  for (const lock of locked) {
    await lock.unlock().catch((error: unknown) => {
      log.warn('could not unlock a source: its session ends with this process', {
        reason: toEngineError(error).message,
      })
    })
  }
  await gate.resume(source.name).catch((error: unknown) => {
    log.error('could not resume the proxy: say RELOAD and then RESUME at its console', {
      reason: toEngineError(error).message,
    })
  })
}

function asCutoverFailure(error: unknown, step: string): Error {
  if (isEngineError(error) && error.code.startsWith('RESHARD_')) return error
  return engineError(
    'RESHARD_CUTOVER',
    { step, reason: toEngineError(error).message },
    { cause: error },
  )
}

/** After the proxy has read the new configuration there is only forward: all is tried, the first failure told. The time of RESUME. */
async function finish(
  options: CutoverOptions,
  timer: StepTimer,
  locked: readonly LockedSource[],
): Promise<number> {
  const failures: { step: string; error: unknown; todo: string }[] = []
  const attempt = async (step: string, todo: string, work: () => Promise<unknown>) => {
    try {
      await timer.run(step, work)
    } catch (error) {
      failures.push({ step, error, todo })
    }
  }
  await attempt('fencing the old side', 'stop direct writers of the old servers', async () => {
    for (const end of await Promise.allSettled(locked.map((lock) => lock.fence()))) {
      if (end.status === 'rejected') throw end.reason
    }
  })
  const { name } = options.source
  await attempt('resuming the proxy', `say RESUME "${name}" at its console`, () =>
    options.gate.resume(name),
  )
  const resumedMs = options.clock.monotonicMs()
  await attempt('writing the journal', 'nothing; the journal says cutting_over', () =>
    options.journal.setState('cut_over'),
  )
  const [first] = failures
  if (!first) return resumedMs
  const { step, todo } = first
  const reason = toEngineError(first.error).message
  throw engineError('RESHARD_SWITCHED_HALF', { step, reason, todo }, { cause: first.error })
}
