/**
 * A whole move, N shards to M, while the source serves: the list of steps walked from where the journal stands.
 * Nothing is dropped when a run ends before its time: it is taken up again, or cleaned up.
 */
import { engineError, toEngineError } from '../errors/engine-error.js'
import { cutoverStanding, prepareEpochs, REGISTRY_FOUND_MS } from './cutover/epoch-store.js'
import { noSwitch } from './cutover/switch-config.js'
import type { TableShapes } from './follow/table-shapes.js'
import { Journal } from './journal/journal.js'
import { preflight, refuseProblems } from './preflight/preflight.js'
import { ended, findRun } from './run-status.js'
import { RunContext } from './steps/run-context.js'
import { factsToKeep, readFacts } from './steps/run-facts.js'
import { RunGuard } from './steps/run-guard.js'
import type { RunOptions, RunReport } from './steps/run-options.js'
import { type Step, steps } from './steps/steps.js'

export type { RunListener, RunOptions, RunReport } from './steps/run-options.js'

/** A move from its beginning. @throws RESHARD_*; before the cutover's point of no return the source is unharmed */
export async function runReshard(options: RunOptions): Promise<RunReport> {
  const { source, target } = options
  const found = await findRun(source, target)
  const earlier = found?.record
  if (earlier && !ended.includes(earlier.state)) {
    throw engineError('RESHARD_RUN_OPEN', {
      run: earlier.run,
      state: earlier.state,
      from: source.name,
      to: target.name,
    })
  }
  options.listener.step('looking at both sides')
  const needsWayBack = options.stopAfter === undefined && options.wayBack !== false
  const facts = await preflight(source, target, { needsWayBack })
  refuseProblems(facts, source.name, target.name)
  if (!options.stopAfter) {
    await options.config.prepare()
    await options.gate.open()
  }
  const journal = await Journal.begin(source, target, options.clock)
  return walk(new RunContext(options, journal, facts), steps, async () => {
    const kept = await factsToKeep(facts, source, target)
    await journal.note({ ...kept })
    // From now on nobody is served from the new side, whose shards hold rows twice.
    if (target.whole && (await prepareEpochs(source, target, journal.run))) {
      await options.clock.sleep(REGISTRY_FOUND_MS)
    }
    return kept.begin.shapes
  })
}

/** A move that ended before its time, from where it stands. @throws RESHARD_NO_RUN, RESHARD_BUSY, RESHARD_* */
export async function resumeReshard(options: RunOptions): Promise<RunReport> {
  const found = await findRun(options.source, options.target)
  if (!found || found.record.state === 'cleaned') {
    throw engineError('RESHARD_NO_RUN', { from: options.source.name, to: options.target.name })
  }
  const { record, source, target } = found
  const journal = await Journal.continue(record, target, options.clock)
  // A file that was exchanged before the death must not be exchanged back.
  const now = found.isSwitched ? { config: noSwitch } : {}
  let context: RunContext
  try {
    const facts = await readFacts(record, source, target)
    context = new RunContext({ ...options, ...now, source, target }, journal, facts)
  } catch (error) {
    await journal.close()
    await options.gate.close()
    throw error
  }
  context.say(`going on with run ${record.run} at ${record.step ?? 'its beginning'}`)
  // Behind the decision the streams must not run again: what has moved is deleted from the old shards.
  const isDecided = target.whole && (await cutoverStanding(source, target)) === 'switched'
  return walk(context, stepsFrom(record.step, isDecided ? undefined : options.stopAfter))
}

/** Takes up the run that is open, or begins one: for the commands of single steps. */
export async function continueReshard(options: RunOptions): Promise<RunReport> {
  const found = await findRun(options.source, options.target)
  const isOpen = found && !ended.includes(found.record.state)
  return isOpen ? resumeReshard(options) : runReshard(options)
}

/** What is left to do; a step that is asked for by name is done again when the run is past it. */
function stepsFrom(name: string | null, stopAfter: RunOptions['stopAfter']): readonly Step[] {
  const first = Math.max(
    steps.findIndex((step) => step.name === name),
    0,
  )
  const last = steps.findIndex((step) => step.name === stopAfter)
  return steps.slice(last < 0 ? first : Math.min(first, last))
}

async function walk(
  context: RunContext,
  todo: readonly Step[],
  begin?: () => Promise<readonly TableShapes[]>,
): Promise<RunReport> {
  const { journal, options } = context
  const guard = new RunGuard(context)
  try {
    context.watchTables((await begin?.()) ?? context.found.shapes ?? [])
    for (const [i, step] of todo.entries()) {
      context.checkSignal()
      await journal.enter(step.name, step.state)
      await context.point(`${step.name}:before`)
      await guard.over(step.run(context))
      await context.point(`${step.name}:after`)
      const next = todo[i + 1]
      if (next) await journal.advance(next.name)
      if (options.stopAfter === step.name) return report(context, stateAfter(step))
    }
    return report(context, 'cut_over')
  } catch (error) {
    await guard.patiently(end(context, error))
    throw error
  } finally {
    await guard.patiently(context.stopFollowers())
    await guard.patiently(context.stopWatching())
    await guard.stop()
    await options.gate.close()
    await guard.patiently(journal.close())
  }
}

const stateAfter = (step: Step): RunReport['state'] =>
  step.name === 'verify' ? 'ready' : step.state

/** Failures after which someone must act before the run can go on. */
const pausing = ['INTERRUPTED', 'RESHARD_DDL']

async function end(context: RunContext, error: unknown): Promise<void> {
  const { code, message } = toEngineError(error)
  let state: RunReport['state'] = pausing.includes(code) ? 'paused' : 'failed'
  if (code === 'RESHARD_SWITCHED_HALF') state = 'cut_over'
  await context.journal.setState(state, message).catch(() => undefined)
  // After the journal: a target that has stalled may keep them from ending.
  await context.stopFollowers()
}

function report(context: RunContext, state: RunReport['state']): RunReport {
  const { copied, verify, cutover, brokenForeignKeys, journal, found, options } = context
  return {
    run: journal.run,
    state,
    warnings: found.problems.filter((problem) => problem.severity === 'warning'),
    rowsCopied: copied.reduce((sum, table) => sum + table.rows, 0),
    bytesCopied: copied.reduce((sum, table) => sum + table.bytes, 0),
    changesApplied: context.changesApplied,
    tables: copied,
    ...(verify ? { verify } : {}),
    ...(cutover ? { cutover } : {}),
    brokenForeignKeys,
    elapsedMs: Math.round(options.clock.monotonicMs() - context.startedMs),
  }
}
