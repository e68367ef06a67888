/** What a completed statement has done to the session: transaction, settings, pins, statements, taint. */
import type { Effects } from '../../plan/effects.js'
import type { PlannedStatement } from '../../plan/plan.js'
import { Settings } from '../../server/settings.js'
import { countRows } from '../../server/traffic.js'
import { completeFrame } from '../answers.js'
import type { ClientFigures, DatabaseAccess } from '../environment.js'
import { isSilentListen } from '../listen/silent-listen.js'
import type { ClientStatements } from './client-statements.js'
import type { HeldServer, HeldServers } from './held-servers.js'
import { heardStatement } from './startup-resets.js'
import { applyNames, executedEffects } from './statement-names.js'
import type { Transaction } from './transaction.js'

export interface CompletedStatement {
  readonly effects: Effects
  /** As servers hear it. */
  readonly sql: string
  readonly isRead: boolean
  /** Looks at no rows: transactions, savepoints, settings. */
  readonly isNeutral: boolean
  /** The tag that the client expects, when another statement was sent in the place of its own. */
  readonly tagInstead?: string
  /** With PREPARE: the statement in it. */
  readonly body?: string
}

/** Statements that any server may take along, because they change no rows and look at none. */
const NEUTRAL = new Set([
  'set',
  'reset',
  'show',
  'discard',
  'begin',
  'commit',
  'rollback',
  'savepoint',
  'release',
  'rollback_to',
  'unlisten',
])

export const isNeutral = (statement: PlannedStatement): boolean => NEUTRAL.has(statement.kind)

/** The statement of a request, as its completion will need it; `startup` is what RESET goes back to. */
export function completedOf(
  statement: PlannedStatement,
  text: string,
  startup: Settings,
): CompletedStatement {
  const { effects, isRead } = statement
  const heard = effects.settings && heardStatement(effects, startup)
  const completed = {
    effects,
    sql: heard?.sql ?? text.slice(statement.start, statement.end),
    isRead,
    ...(heard ? { tagInstead: heard.tag } : {}),
    ...bodyOf(effects, text),
  }
  if (!isSilentListen(statement)) return { ...completed, isNeutral: isNeutral(statement) }
  return { ...completed, isNeutral: true, tagInstead: statement.tagInstead }
}

const bodyOf = ({ prepare }: Effects, text: string): Pick<CompletedStatement, 'body'> =>
  prepare ? { body: text.slice(prepare.bodyStart, prepare.bodyEnd) } : {}

/** The parts of a session that effects reach. */
export interface EffectTarget {
  readonly transaction: Transaction
  readonly held: HeldServers
  readonly statements: ClientStatements
  readonly access: DatabaseAccess
  readonly figures: ClientFigures
  /** Absent while the client never listened. */
  readonly listening: unknown
  readonly isSharded: boolean
  readonly hooks: { waitEnded(): void }
}

/** Applies them; returns the frame to send in the place of the server's CommandComplete, if any. */
export function applyCompleted(
  target: EffectTarget,
  held: HeldServer,
  statement: CompletedStatement,
  tag: string,
): Buffer | undefined {
  const { execute } = statement.effects
  const effects =
    execute && execute.runs !== false
      ? executedEffects(statement, target.statements.get(execute.name))
      : statement.effects
  target.figures.queries++
  if (effects.transaction) applyTransaction(target, held, statement, tag)
  else if (!target.transaction.isExplicit) target.figures.transactions++
  if (!statement.isNeutral) {
    held.worked = true
    if (statement.isRead) held.server.traffic.reads++
    else {
      held.wrote = true
      held.server.traffic.writes++
      countRows(held.server.traffic, tag)
    }
  }
  for (const setting of effects.settings ?? []) {
    target.transaction.apply(setting, statement.sql)
    held.server.settings = target.transaction.settings
  }
  applyBindings(target, held, effects === statement.effects ? statement : { ...statement, effects })
  if (effects.taints) held.server.tainted = true
  if (!statement.isRead) noteLocks(target.transaction, tag, statement.sql)
  if (effects.changesSchema) noteSchema(target, tag, statement.sql)
  return statement.tagInstead === undefined ? undefined : completeFrame(statement.tagInstead)
}

/** ACCESS EXCLUSIVE on a table to the end of the transaction; ALTER and its kin are asked for elsewhere. */
function noteLocks(transaction: Transaction, tag: string, sql: string): void {
  if (!transaction.isExplicit) return
  transaction.locksTables ||=
    tag === 'LOCK TABLE'
      ? /access\s+exclusive/i.test(sql) || !/\bmode\b/i.test(sql)
      : /^(?:TRUNCATE|DROP INDEX|REINDEX|CLUSTER|REFRESH)/.test(tag)
}

/** Tags of what may change how a statement that was understood before is to be read. */
const changesMeanings =
  /^(?:ALTER|DROP (?!INDEX)|CREATE (?!INDEX|TABLE|SEQUENCE|SCHEMA|TYPE|DOMAIN|STATISTICS|ROLE))/

/** Those of them that may give a name other columns, or the same in another order. */
const changesKeys: Readonly<Record<string, RegExp>> = {
  'ALTER TABLE': /\b(?:drop|rename)\b/i,
  'ALTER VIEW': /\brename\b/i,
  'CREATE VIEW': /\bor\s+replace\b/i,
}

function noteSchema(target: EffectTarget, tag: string, sql: string): void {
  const { transaction, access } = target
  transaction.changedSchema = transaction.isExplicit
  if (!transaction.isExplicit) return readSchema(target)
  transaction.changedMeanings ||= changesMeanings.test(tag)
  transaction.changedKeys ||= changesKeys[tag]?.test(sql) === true
  void access.schemaChanged()
}

/** What the client has changed, its next statement finds. One shard is planned for without the schema. */
function readSchema(target: EffectTarget): void {
  const reading = target.access.schemaChanged()
  if (!reading || !target.isSharded) return
  const { transaction, hooks } = target
  transaction.schemaReads++
  const read = () => {
    transaction.schemaReads--
    hooks.waitEnded()
  }
  reading.then(read, read)
}

/** What now lives on the server, or no longer does. */
function applyBindings(
  target: EffectTarget,
  held: HeldServer,
  statement: CompletedStatement,
): void {
  const { effects } = statement
  for (const pin of effects.pins) target.held.pins.add(pin)
  applyCursor(target, held, effects.cursor)
  for (const name of effects.temporary ?? []) target.held.temporary.set(name, held.shard)
  applyNotifications(target, held, statement)
  applyNames(target, held, statement)
  if (effects.discard) applyDiscard(target, held, effects.discard)
}

function applyCursor(
  { transaction }: EffectTarget,
  { shard }: HeldServer,
  cursor: Effects['cursor'],
): void {
  const name = cursor?.name
  if (cursor?.verb === 'close') transaction.cursors.closed(cursor.name)
  if (cursor?.verb !== 'declare' || typeof name !== 'string') return
  const { holds = false } = cursor
  transaction.cursors.declared(name, { shard, holds, at: transaction.logLength })
}

/** A LISTEN that stands for itself is heard on the server; one that was made silent, by the hub. */
function applyNotifications(
  target: EffectTarget,
  held: HeldServer,
  { effects, tagInstead }: CompletedStatement,
): void {
  const { transaction } = target
  const { listen, unlisten, notify } = effects
  if (listen && tagInstead !== undefined) transaction.listen(listen.channel)
  else if (listen) target.held.pins.add('listen')
  if (unlisten) transaction.unlisten(unlisten.channel)
  // inside a transaction it may still be undone
  if (unlisten?.channel === null && !transaction.isExplicit) target.held.pins.delete('listen')
  if (notify) {
    held.notified = true
    if (target.listening) transaction.notify({ processId: held.server.processId, ...notify })
  }
}

function applyTransaction(
  target: EffectTarget,
  held: HeldServer,
  statement: CompletedStatement,
  tag: string,
): void {
  const { transaction } = target
  const effect = statement.effects.transaction
  if (!effect) return
  // others see the change only now, or it is undone
  const ends = effect.kind === 'commit' || effect.kind.startsWith('rollback')
  if (ends && transaction.changedSchema) readSchema(target)
  switch (effect.kind) {
    case 'begin':
      if (!transaction.isExplicit) transaction.begin(effect, statement.sql, 'open')
      held.joined = true
      break
    case 'commit':
    case 'rollback':
      target.figures.transactions++
      if (!tag.startsWith('COMMIT')) held.server.traffic.rollbacks++
      transaction.end(tag.startsWith('COMMIT'), effect.chain)
      held.worked = false
      held.wrote = false
      held.notified = false
      held.server.settings = transaction.settings
      target.statements.portals.clear()
      break
    case 'savepoint':
      transaction.savepoint(effect.name)
      break
    case 'release':
      transaction.release(effect.name)
      target.statements.released(transaction.logLength)
      break
    case 'rollback_to':
      transaction.rollbackTo(effect.name)
      // those that were made since are no more; of the others nobody knows here
      target.statements.rolledBackTo(transaction.logLength)
      held.server.settings = transaction.settings
      break
    case 'two_phase':
      if (effect.verb === 'prepare') transaction.end(true)
      break
  }
}

function applyDiscard(
  target: EffectTarget,
  held: HeldServer,
  what: NonNullable<Effects['discard']>,
): void {
  if (what === 'temp' || what === 'all') {
    target.held.pins.delete('temporary object')
    target.held.temporary.clear()
  }
  if (what !== 'all') return
  target.held.pins.clear()
  if (target.access.poolerMode === 'session') target.held.pins.add('session mode')
  target.statements.clear()
  target.transaction.resetAll()
  const { server } = held
  server.forgetStatements()
  server.unnamed = undefined
  server.settings = Settings.none
  server.tainted = false
}
