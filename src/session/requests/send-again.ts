/**
 * A write that the fence of a cutover has refused: nothing of it was done, so it is sent again once the proxy knows which
 * side serves. Only requests outside an explicit transaction, of which the client has heard nothing yet.
 */
import type { Clock } from '../../base/clock.js'
import { takeTurn } from '../../base/take-turns.js'
import { type EngineError, engineError } from '../../errors/engine-error.js'
import type { EpochAccess } from '../epoch-access.js'

/** Of the session, as far as this needs it. */
interface AgainCore {
  again: (() => void) | undefined
  readonly access: { readonly epoch?: EpochAccess }
  readonly environment: { readonly clock: Clock }
  readonly transaction: { readonly isExplicit: boolean }
  running: { readonly at: number; readonly awaitsSync: boolean } | undefined
  readonly output: { readonly bytesSent: number; forget(): void }
  readonly held: {
    readonly pins: ReadonlySet<unknown>
    readonly isClosed: boolean
    releaseAll(): void
  }
  readonly script: unknown
  readonly listening: unknown
  readonly cancelled: boolean
  readonly timedOut: EngineError | undefined
  fail(error: EngineError): void
}

/** Between tries, when the proxy says at once that the side serves: the fence may be going up, or down. */
const TRY_MS = 25
/** Tries end after so long. */
const GIVE_UP_MS = 10_000

export class SendAgain {
  readonly #core: AgainCore
  #sentBefore = -1
  #due: (() => void) | undefined
  /** Of the first refusal of the request at hand. */
  #sinceMs: number | undefined
  #isTrying = false

  constructor(core: AgainCore) {
    this.#core = core
  }

  /** Whether requests must be kept while they run. */
  get isOn(): boolean {
    return this.#core.access.epoch?.isMoving === true
  }

  /** Keeps how the request that was just sent is run from its beginning. */
  keep(again: () => void): void {
    this.#core.again = again
    if (!this.#isTrying) this.#sinceMs = undefined
    this.#sentBefore = this.#core.output.bytesSent
  }

  get isDue(): boolean {
    return this.#due !== undefined
  }

  /** True: the refusal and what stands before it are not for the client, the request will be run again. */
  takes(buffer: Buffer, start: number, end: number): boolean {
    const { again, access, running, transaction, held, output, script, listening } = this.#core
    const mark = access.epoch?.mark
    if (!again || !mark || buffer.subarray(start, end).indexOf(mark) < 0) return false
    if (transaction.isExplicit || script || listening || held.pins.size > 0) return false
    if (running?.at !== 0 || running.awaitsSync || output.bytesSent !== this.#sentBefore)
      return false
    const nowMs = this.#core.environment.clock.monotonicMs()
    this.#sinceMs ??= nowMs
    if (nowMs - this.#sinceMs > GIVE_UP_MS) return false
    output.forget()
    this.#due = again
    return true
  }

  /** The server is ready; the client is not told. */
  start(): 0 {
    const again = this.#due as () => void
    this.#due = undefined
    void this.#wait(again)
    return 0
  }

  async #wait(again: () => void): Promise<void> {
    // The relay is still at work with the answer.
    await Promise.resolve()
    const core = this.#core
    core.again = undefined
    core.held.releaseAll()
    await core.access.epoch?.refused()
    await core.environment.clock.sleep(TRY_MS)
    if (core.held.isClosed) return
    if (core.cancelled) return core.fail(core.timedOut ?? engineError('SESSION_CANCELLED'))
    // It has failed as far as its books say: a batch would only be answered to its end.
    core.running = undefined
    this.#isTrying = true
    again()
    this.#isTrying = false
  }
}

/**
 * A request whose shards were exchanged while it waited, run from its beginning with all that waited too: in turn, so
 * that whoever exchanged them is not answered behind all these.
 */
export function runInTurn(core: AgainCore, again: () => void): void {
  // What its client sends would overtake it: nothing but its wait for a server holds that up.
  if (core.running?.awaitsSync) return again()
  takeTurn(() => {
    if (core.held.isClosed) return
    if (core.cancelled) return core.fail(core.timedOut ?? engineError('SESSION_CANCELLED'))
    again()
  })
}

interface PlannedCore extends Pick<AgainCore, 'fail'> {
  readonly access: { readonly planner: { readonly generation?: number } }
}

/**
 * True when the shards were exchanged while a request stood in line for a server that others share: its shard was chosen by
 * the old map. It fails as one that stood in the queue of a pool does, and so is planned anew by what `again` says.
 */
export function isOutdated(core: PlannedCore, generation: number | undefined): boolean {
  if (core.access.planner.generation === generation) return false
  core.fail(engineError('POOL_LAYOUT_CHANGED', { database: 'in use' }))
  return true
}
