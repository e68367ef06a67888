/** BEGIN, COMMIT and their kin in a request whose transaction we began because it goes to several shards. */
import { engineError } from '../../../errors/engine-error.js'
import type { PlannedStatement } from '../../../plan/plan.js'
import { completeFrame, noticeFrame } from '../../answers.js'
import type { SessionCore } from '../../session-core.js'

/** BEGIN without modes. */
export const plainBegin = /^\s*(begin|start)(?:\s+(?:work|transaction))?\s*$/i

/** What cannot stand in a transaction that PostgreSQL makes by itself, in its words. */
const ONLY_IN_BLOCK: Readonly<Record<string, string>> = {
  savepoint: 'SAVEPOINT',
  release: 'RELEASE SAVEPOINT',
  rollback_to: 'ROLLBACK TO SAVEPOINT',
}

/** A statement about transactions inside one of ours, as PostgreSQL takes it in a string of statements. False: it is answered. */
export function inOurTransaction(
  core: SessionCore,
  { effects, start, end }: PlannedStatement,
  text: string,
): boolean {
  const effect = effects.transaction
  const sql = text.slice(start, end)
  if (effect?.kind === 'begin') {
    if (!core.held.all().some((held) => held.joined)) core.transaction.begin(effect, sql, 'pending')
    else if (!plainBegin.test(sql)) {
      throw engineError('SESSION_SEVERAL_SHARDS_IN_REQUEST')
    }
    core.transaction.isOurs = false
    core.answer(completeFrame(/^\s*start/i.test(sql) ? 'START TRANSACTION' : 'BEGIN'))
    return false
  }
  if (effect?.kind === 'commit' || effect?.kind === 'rollback') {
    const verb = effect.kind.toUpperCase()
    if (effect.chain) throw engineError('SESSION_ONLY_IN_BLOCK', { what: `${verb} AND CHAIN` })
    core.output.append(noticeFrame('25P01', 'WARNING', 'there is no transaction in progress'))
    return true
  }
  const what = ONLY_IN_BLOCK[effect?.kind ?? '']
  if (what !== undefined) throw engineError('SESSION_ONLY_IN_BLOCK', { what })
  return true
}
