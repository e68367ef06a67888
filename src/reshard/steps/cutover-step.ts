/** The switch, and what is cleared up after it. */
import { engineError, toEngineError } from '../../errors/engine-error.js'
import { NO_WAY_BACK } from '../buckets/bucket-checks.js'
import { dropIncoming, incomingTables } from '../buckets/incoming.js'
import { cutover } from '../cutover/cutover.js'
import { cutoverStanding } from '../cutover/epoch-store.js'
import { abandonCutover, completeCutover } from '../cutover/resume-cutover.js'
import { makeWayBack } from '../cutover/reverse.js'
import { readJournal } from '../journal/read-journal.js'
import { dropSourceObjects } from '../journal/run-objects.js'
import { catchUp } from '../marker.js'
import { validateForeignKeys } from '../schema/copy-schema.js'
import { startFollowers } from './follow-step.js'
import type { RunContext } from './run-context.js'
import { targetSchema } from './schema-step.js'

export async function cutoverStep(context: RunContext): Promise<void> {
  const { options, found, journal } = context
  const { source, target, gate, config, budgetMs, clock, log } = options
  const standing = await cutoverStanding(source, target)
  if (standing === 'switched') return goForward(context)
  if (standing === 'fenced') await abandonCutover({ source, gate, log })
  if (target.whole && options.wayBack !== false) {
    const names = { from: source.name, to: target.name }
    throw engineError('RESHARD_NO_WAY_BACK', {
      ...names,
      reason: `${NO_WAY_BACK}; say --no-reverse`,
    })
  }
  await config.prepare()
  await context.checkTables()
  await startFollowers(context)
  await context.watched(catchUp(source, context.followers))
  context.say('switching over')
  // Never broken off from outside: it gives back what it took.
  const report = await cutover({
    source,
    target,
    plan: found.plan,
    followers: context.followers,
    gate,
    config,
    journal,
    lateSchema: found.replicaRole ? undefined : await context.dump(),
    budgetMs,
    endPinned: options.endPinned ?? false,
    wayBack: options.wayBack === false ? undefined : makeWayBack(source, target, journal, clock),
    clock,
    log,
    point: (name) => context.point(`cutover:${name}`),
    checkSource: (sources) => context.checkTables(sources),
  })
  context.cutover = report
  await journal.note({ write_pause_ms: report.writePauseMs, cutover_steps: report.steps })
  context.say(`switched; writes were paused for ${report.writePauseMs} ms`)
}

/** A cutover died behind its point of no return: what was left is done. */
async function goForward(context: RunContext): Promise<void> {
  const { options } = context
  context.say('the new side has taken over: doing what is left')
  await completeCutover({
    ...options,
    plan: context.found.plan,
    run: context.journal.run,
    point: (name) => context.point(`cutover:${name}`),
  })
}

/** The move is done: what fails here is told and left to cleanup. */
export async function finishStep(context: RunContext): Promise<void> {
  const { options, journal } = context
  const { source, target, log, clock } = options
  context.say('clearing up: slots and publications')
  const attempt = async (what: string, work: () => Promise<void>): Promise<void> => {
    await work().catch((error: unknown) => {
      log.warn(`the move is done, but ${what} failed`, { reason: toEngineError(error).message })
    })
  }
  await attempt('ending the streams', () => context.stopFollowers())
  await attempt('dropping slots and publications (say reshard cleanup)', async () => {
    const record = await readJournal(source.name, target)
    await dropSourceObjects(record?.objects ?? [], source, clock, (object) =>
      journal.markGone(object),
    )
  })
  await attempt('validating foreign keys', async () => {
    const dump = await context.dump()
    if (dump) context.brokenForeignKeys = await validateForeignKeys(target, dump)
  })
  if (target.isStaged) {
    await attempt('dropping the tables that rows came to (say reshard cleanup)', async () => {
      await dropIncoming(target)
      await journal.markGone(incomingTables)
    })
  }
  await attempt('writing the journal', () => journal.markGone(targetSchema))
  context.say(`"${source.name}" is served by ${(target.whole ?? target).shards.length} shards`)
}
