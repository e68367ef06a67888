/** The guard of a run: started with it, its failure breaks the step at hand off. */
import { Pace } from '../copy/pace.js'
import { Guard } from '../guards/guard.js'
import { DEFAULT_LIMITS } from '../guards/guard-limits.js'
import { openSampleStore, type SampleStore } from '../guards/sample-store.js'
import type { RunContext } from './run-context.js'

/** How long ending waits in all for targets that may not answer any more. */
const PATIENCE_MS = 5_000

export class RunGuard {
  readonly #context: RunContext
  readonly #guard: Guard
  readonly #store: SampleStore
  /** On the monotonic clock; set by the first wait. */
  #patientUntilMs: number | undefined

  constructor(context: RunContext) {
    const {
      source,
      target,
      clock,
      signal,
      limits = DEFAULT_LIMITS,
      guardPeriodMs,
    } = context.options
    const pace = context.options.pace ?? new Pace(clock, 0)
    const { run } = context.journal
    this.#context = context
    this.#store = openSampleStore(target, run)
    this.#guard = new Guard({
      source,
      run,
      clock,
      pace,
      limits: { ...limits, maxRate: limits.maxRate || pace.bytesPerSec },
      store: this.#store,
      progress: () => ({ copiedBytes: context.copiedBytes, changes: context.changesApplied }),
      say: (text) => context.say(text),
      onStop: () => {
        context.say('asked to stop: ending after what is under way')
        context.breakOff.abort()
      },
      onGiveUp: () => context.breakOff.abort(),
      signal,
      ...(guardPeriodMs === undefined ? {} : { periodMs: guardPeriodMs }),
    })
    this.#guard.start()
  }

  /** The work, unless the run must be given up before it is done. */
  over<T>(work: Promise<T>): Promise<T> {
    // What ends while the sources are freed ends because of that.
    const ended = work.then(
      (value) => (this.#guard.isGivingUp ? this.#guard.failed : value),
      (error: unknown) => {
        if (this.#guard.isGivingUp) return this.#guard.failed
        throw error
      },
    )
    ended.catch(() => undefined)
    return Promise.race([ended, this.#guard.failed])
  }

  /** Waits for `work` on targets that may have stalled, but not for ever once the run was given up. */
  async patiently(work: Promise<unknown>): Promise<void> {
    const { clock } = this.#context.options
    if (!this.#guard.isGivingUp) return void (await work)
    this.#patientUntilMs ??= clock.monotonicMs() + PATIENCE_MS
    const leftMs = Math.max(0, this.#patientUntilMs - clock.monotonicMs())
    await Promise.race([work.catch(() => undefined), clock.sleep(leftMs)])
  }

  async stop(): Promise<void> {
    await this.#guard.stop()
    await this.patiently(this.#store.close())
  }
}
