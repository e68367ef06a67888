/** Both sides compared while the sources are written. */
import { engineError } from '../../errors/engine-error.js'
import { refuseStrays } from '../buckets/incoming.js'
import { catchUp } from '../marker.js'
import { describeDifference } from '../verify/compare-tables.js'
import { verifyLive } from '../verify/verify.js'
import { journalStore } from '../verify/verify-store.js'
import { startFollowers } from './follow-step.js'
import type { RunContext } from './run-context.js'

export async function verifyStep(context: RunContext): Promise<void> {
  const { options, found, journal } = context
  const { source, target, clock, verifyHoldMs } = options
  await context.checkTables()
  await startFollowers(context)
  await context.watched(catchUp(source, context.followers))
  context.say('comparing both sides, row by row')
  const report = await context.watched(
    verifyLive({
      source,
      target,
      clock,
      plan: found.plan,
      run: journal.run,
      followers: context.followers,
      holdMs: verifyHoldMs,
      store: journalStore(target, journal.run),
      onWait: (text) => context.say(text),
      onTable: async (table) => {
        options.listener.verified?.(table)
        await journal.setTableState(table.name, table.same ? 'verified' : 'different')
      },
      ...(options.signal ? { signal: options.signal } : {}),
    }),
  )
  if (target.isStaged) await refuseStrays(target, found.plan)
  const different = report.tables.filter((table) => !table.same)
  await journal.note({ verified_at_lsn: report.sourceLsns })
  if (different.length > 0) {
    throw engineError(
      'RESHARD_DIFFERENT',
      { from: source.name, to: target.name, tables: different.length },
      { detail: different.map(describeDifference).join('\n') },
    )
  }
  const rows = report.tables.reduce((sum, table) => sum + table.sourceRows, 0)
  context.say(`equal: ${rows.toLocaleString('en')} rows in ${report.tables.length} tables`)
  context.verify = report
  await journal.setState('ready')
}
