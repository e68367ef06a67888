/**
 * Requests that one server would run in a transaction of its own making, and that go to several shards: a write of
 * several shards, a Query of several statements, messages up to a Sync. Each shard hears BEGIN with the first statement
 * that needs it; an error rolls back everywhere and ends the request; the commit comes before ReadyForQuery
 * (hard-parts §3.1). Also runs the statements of such a request one after the other inside the client's own BEGIN.
 */
import { type EngineError, engineError, toEngineError } from '../../errors/engine-error.js'
import { errorFrame } from '../answers.js'
import type { RequestScript } from '../running-request.js'
import type { SessionCore } from '../session-core.js'
import { commitOverShards, rollBackAll } from './over-shards/commit-over-shards.js'

/** Starts one statement, which ends itself by `answer`, `complete` or `fail` of the core, now or later. May throw instead. */
export type ScriptStep = () => void

export interface ScriptOptions {
  /** Runs the whole request once more: the shards were exchanged before any of it had run. */
  readonly again?: () => void
}

/**
 * Runs one statement in a transaction, over however many servers it takes: the client's, when it has one open, else one
 * of ours that is committed by `cross_shard_writes` before the client hears ReadyForQuery.
 */
export function runInTransaction(core: SessionCore, statement: ScriptStep): void {
  if (core.transaction.isExplicit) return statement()
  runScript(core, [statement])
}

/** Runs statements in order, each when the one before it was answered; the first error ends the request. */
export function runScript(
  core: SessionCore,
  steps: readonly ScriptStep[],
  options: ScriptOptions = {},
): void {
  const script = new Script(core, steps, options)
  core.script = script
  script.start()
}

class Script implements RequestScript {
  readonly #core: SessionCore
  readonly #steps: readonly ScriptStep[]
  readonly #options: ScriptOptions
  #at = 0
  /** CommandComplete of the last statement of a Query, which comes after the commit. */
  #tail: Buffer | undefined
  #lost: EngineError | undefined

  constructor(core: SessionCore, steps: readonly ScriptStep[], options: ScriptOptions) {
    this.#core = core
    this.#steps = steps
    this.#options = options
  }

  start(): void {
    this.#next()
    const { again } = this.#options
    if (again) this.repeatBy(again)
  }

  repeatBy(again: () => void): void {
    const core = this.#core
    if (this.#at !== 1 || !core.held.isWaiting) return
    core.again = () => {
      core.script = undefined
      if (core.transaction.isOurs) core.transaction.end(false)
      again()
    }
  }

  // not at once: the server whose reply this is has not been told yet that it is free
  statementEnded(): void {
    queueMicrotask(() => this.#ended())
  }

  holdsBack(frame: Buffer): boolean {
    const { running, transaction } = this.#core
    const isLast = this.#at === this.#steps.length
    if (!isLast || running?.protocol !== 'simple' || !transaction.isOurs) return false
    this.#tail = this.#tail ? Buffer.concat([this.#tail, frame]) : frame
    return true
  }

  lost(error: EngineError): void {
    this.#lost = error
  }

  #next(): void {
    const core = this.#core
    const step = this.#steps[this.#at++]
    if (!step) return void this.#finish()
    if (!core.transaction.isExplicit) core.transaction.beginOurs()
    try {
      if (core.cancelled) throw core.timedOut ?? engineError('SESSION_CANCELLED')
      step()
    } catch (error) {
      core.fail(toEngineError(error))
    }
  }

  #ended(): void {
    const core = this.#core
    core.again = undefined
    core.fanOut = undefined
    if (core.held.isClosed) return
    const { running, transaction } = core
    if (running?.failed || transaction.phase === 'failed') {
      void this.#undo()
      return
    }
    // the client's own COMMIT or ROLLBACK
    if (!transaction.isExplicit) {
      core.statements.portals.clear()
      core.held.releaseAll()
    }
    this.#next()
  }

  /** Rolls back what is ours and ends the request, whose error has gone out. */
  async #undo(): Promise<void> {
    const core = this.#core
    if (this.#lost && !core.running?.failed) {
      core.figures.errors++
      core.output.append(errorFrame(this.#lost, 'ERROR'))
    }
    if (core.transaction.isOurs) {
      await rollBackAll(core, this.#joined())
      core.transaction.end(false)
    }
    this.#over()
    core.complete()
  }

  async #finish(): Promise<void> {
    const core = this.#core
    const { transaction } = core
    let failure: EngineError | undefined
    if (transaction.isOurs) {
      try {
        await commitOverShards(core, this.#joined())
      } catch (error) {
        failure = toEngineError(error)
      }
      transaction.end(failure === undefined)
      core.figures.transactions++
    }
    this.#over()
    if (failure) return core.fail(failure)
    if (this.#tail) core.output.append(this.#tail)
    core.complete()
  }

  #joined() {
    return this.#core.held.all().filter((held) => held.joined)
  }

  #over(): void {
    if (this.#core.script === this) this.#core.script = undefined
  }
}
