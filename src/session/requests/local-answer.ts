/**
 * Statements that the proxy answers itself, without a server: BEGIN before the first query (the transaction opens
 * where that goes), its COMMIT or ROLLBACK when nothing came between, routing hints, and DEALLOCATE of statements that
 * live under shared names.
 */
import { engineError } from '../../errors/engine-error.js'
import type { PlannedStatement } from '../../plan/plan.js'
import { completeFrame, textTableFrames } from '../answers.js'
import { isSilentListen } from '../listen/silent-listen.js'
import type { SessionCore } from '../session-core.js'
import { unquote } from '../sql-literal.js'

/** Frames of an answer to a simple query, or rows and a tag for the extended protocol. */
export interface LocalAnswer {
  readonly tag: string
  /** RowDescription and DataRow of an answer with a row. */
  readonly rows?: Buffer
}

/** Parameters that are ours: never sent to a server. */
const HINT = /^(?:pgshard|pgdog)\.(shard|sharding_key|role)$/

/** Does what `statement` asks when the proxy can do it alone; undefined when a server must. @throws EngineError */
export function answerLocally(
  core: SessionCore,
  statement: PlannedStatement,
  text: string,
): LocalAnswer | undefined {
  const { effects } = statement
  const { transaction } = core
  if (effects.transaction) return answerTransaction(core, statement, text)
  if (transaction.phase === 'failed') return undefined
  if (isSilentListen(statement) && core.held.size === 0 && effects.listen) {
    transaction.listen(effects.listen.channel)
    return { tag: statement.tagInstead }
  }
  if (effects.deallocate) return answerDeallocate(core, effects.deallocate.name)
  if (statement.kind === 'show') return answerShow(core, text.slice(statement.start, statement.end))
  const setting = effects.settings?.length === 1 ? effects.settings[0] : undefined
  if (setting && 'name' in setting && HINT.test(setting.name)) {
    if (setting.kind === 'set') checkHint(setting.name, setting.value)
    transaction.apply(setting, '')
    return { tag: setting.kind === 'set' ? 'SET' : 'RESET' }
  }
  return undefined
}

function answerTransaction(
  core: SessionCore,
  statement: PlannedStatement,
  text: string,
): LocalAnswer | undefined {
  const { transaction, held } = core
  const effect = statement.effects.transaction
  if (effect?.kind === 'begin') {
    if (transaction.isExplicit || held.size > 0) return undefined
    const sql = text.slice(statement.start, statement.end)
    transaction.begin(effect, sql, 'pending')
    return { tag: /^\s*start/i.test(sql) ? 'START TRANSACTION' : 'BEGIN' }
  }
  if (effect?.kind !== 'commit' && effect?.kind !== 'rollback') return undefined
  // no server has heard of it, or none is left of it: it may have failed for want of one
  const isNowhere = transaction.phase === 'pending' || transaction.phase === 'failed'
  if (!isNowhere || effect.chain || held.size > 0 || transaction.isOurs) return undefined
  const commits = effect.kind === 'commit' && transaction.phase === 'pending'
  transaction.end(commits)
  core.figures.transactions++
  return { tag: commits ? 'COMMIT' : 'ROLLBACK' }
}

function answerDeallocate(core: SessionCore, name: string | null): LocalAnswer | undefined {
  if (name === null) {
    core.statements.deallocateAll()
    return { tag: 'DEALLOCATE ALL' }
  }
  if (!core.statements.delete(name)) return undefined
  return { tag: 'DEALLOCATE' }
}

function answerShow(core: SessionCore, sql: string): LocalAnswer | undefined {
  const name = /^\s*show\s+((?:pgshard|pgdog)\.\w+)\s*$/i.exec(sql)?.[1]?.toLowerCase()
  if (name === undefined) return undefined
  if (name.endsWith('.shards')) {
    return {
      tag: 'SHOW',
      rows: textTableFrames('shards', [String(core.access.planner.shardCount)]),
    }
  }
  if (!HINT.test(name)) return undefined
  const value = core.transaction.effective.values.get(name)
  return { tag: 'SHOW', rows: textTableFrames(name, [value === undefined ? '' : unquote(value)]) }
}

function checkHint(name: string, value: string | null): void {
  if (value === null) return
  const text = unquote(value)
  const ok = name.endsWith('.shard')
    ? /^\d+$/.test(text)
    : !name.endsWith('.role') || /^(primary|replica)$/.test(text)
  if (!ok) throw engineError('SESSION_HINT_INVALID', { name, value: text })
}

/** What `answerLocally` will answer to a statement of the extended protocol, without doing it. */
export function canAnswerLocally(core: SessionCore, statement: PlannedStatement): boolean {
  const effect = statement.effects.transaction
  const { transaction, held } = core
  if (held.size > 0) return false
  if (effect?.kind === 'begin') return !transaction.isExplicit
  if (effect?.kind === 'commit' || effect?.kind === 'rollback') {
    return transaction.phase === 'pending' && !effect.chain && !transaction.isOurs
  }
  return isSilentListen(statement) && transaction.phase !== 'failed'
}

/** The answer as frames of the simple protocol. */
export function simpleFrames(answer: LocalAnswer): Buffer {
  const complete = completeFrame(answer.tag)
  return answer.rows ? Buffer.concat([answer.rows, complete]) : complete
}
