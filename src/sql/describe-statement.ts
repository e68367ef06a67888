/** One parsed statement → its facts. Knows every kind of statement; what it does not know is 'utility' or 'ddl', never a read. */

import type { Effects, StatementKind } from '../plan/effects.js'
import {
  aggregateBuiltins,
  immutableBuiltins,
  stableBuiltins,
  volatileBuiltins,
  windowBuiltins,
} from './builtin-functions.js'
import { calledFunction, calledFunctions } from './called-functions.js'
import { tokensWithin } from './clause-tokens.js'
import { describeDdl } from './describe-ddl.js'
import { readQuery } from './describe-dml.js'
import { describeUtility } from './describe-utility.js'
import { TokenKind, tokens } from './lexer.js'
import type { Node, SelectStmt } from './parse.js'
import type { SlotFinder } from './predicate.js'
import { newLevel, type Scope } from './query-level.js'
import { readSelectFacts } from './select-facts.js'
import type { FunctionUse, Level, Statement } from './statement.js'
import { type Survey, surveyStatement } from './survey.js'
import { tagOf } from './tree.js'
import { type EffectsInMaking, noEffects, type TextSource } from './utility.js'

/** Volatile, yet harmless for a replica and for rows that come from several shards. */
export const harmlessVolatiles: ReadonlySet<string> = new Set(
  'random random_normal gen_random_uuid uuidv4 uuidv7 clock_timestamp timeofday pg_sleep pg_sleep_for pg_sleep_until array_sample array_shuffle current_query pg_relation_size pg_total_relation_size pg_table_size pg_indexes_size pg_database_size pg_is_in_recovery bernoulli system'.split(
    ' ',
  ),
)

export function isBuiltin({ schema, name }: FunctionUse): boolean {
  if (schema !== undefined && schema !== 'pg_catalog') return false
  return (
    immutableBuiltins.has(name) ||
    stableBuiltins.has(name) ||
    volatileBuiltins.has(name) ||
    aggregateBuiltins.has(name) ||
    windowBuiltins.has(name)
  )
}

/** Called stable, but they give the transaction a number, which a replica cannot. */
const numbersTransaction = /^(?:txid_current|pg_current_xact_id)$/

const mayWrite = (call: FunctionUse): boolean =>
  numbersTransaction.test(call.name) ||
  (volatileBuiltins.has(call.name) && !harmlessVolatiles.has(call.name))

const queryKinds: Record<string, StatementKind> = {
  SelectStmt: 'select',
  InsertStmt: 'insert',
  UpdateStmt: 'update',
  DeleteStmt: 'delete',
  MergeStmt: 'merge',
}

const countingUses = (slots: SlotFinder, survey: Survey): SlotFinder => ({
  slotAt: (location) => slots.slotAt(location),
  usesOf: (number) => survey.parameters.get(number) ?? 1,
})

const emptyScope = (slots: SlotFinder): Scope => ({ ctes: new Set(), slots })

/** First words of the statement in upper case: `CREATE TABLE`. */
function verbOf(source: TextSource, firstToken: number, words: number): string {
  const found: string[] = []
  for (let i = firstToken; i < tokens.count && found.length < words; i++) {
    if (tokens.kinds[i] === TokenKind.comment) continue
    if (tokens.kinds[i] !== TokenKind.word) break
    found.push(source.sql.slice(tokens.starts[i], tokens.ends[i]).toUpperCase())
  }
  return found.join(' ')
}

/** The cursor of UPDATE and DELETE … WHERE CURRENT OF. */
function currentOf(node: Node): string | undefined {
  const where =
    'UpdateStmt' in node
      ? node.UpdateStmt.whereClause
      : 'DeleteStmt' in node
        ? node.DeleteStmt.whereClause
        : undefined
  return where && 'CurrentOfExpr' in where ? where.CurrentOfExpr.cursor_name : undefined
}

function queryEffects(survey: Survey, node: Node): EffectsInMaking {
  const effects = noEffects()
  effects.pins.push(...new Set(survey.pins))
  effects.taints = survey.taints
  if (survey.unlocks) effects.unlocks = true
  if (survey.settings.length > 0) effects.settings = survey.settings
  const current = currentOf(node)
  if (current !== undefined) effects.cursor = { verb: 'current', name: current }
  if ('SelectStmt' in node && node.SelectStmt.intoClause) {
    const { rel } = node.SelectStmt.intoClause
    if (rel?.relpersistence === 't' || rel?.schemaname === 'pg_temp') {
      effects.pins.push('temporary object')
      effects.temporary = [rel.relname ?? '']
    } else effects.changesSchema = true
  }
  return effects
}

interface Assembled {
  kind: StatementKind
  effects: Effects
  root?: Level | undefined
  isRead: boolean
  dependsOnLiterals: boolean
}

function assemble(parts: Assembled, survey: Survey, verb: string): Statement {
  const { root, ...rest } = parts
  return {
    ...rest,
    ...(root ? { root } : {}),
    functions: survey.functions,
    operators: [...survey.operators],
    typeNames: [...survey.typeNames],
    attributes: [...survey.attributes],
    usesClock: survey.usesClock,
    ...(survey.systemColumn === undefined ? {} : { systemColumn: survey.systemColumn }),
    locks: survey.locks,
    repeatsParameters: [...survey.parameters.values()].some((uses) => uses > 1),
    verb,
  }
}

/** Kinds that name relations without being queries. */
const described = new Set<StatementKind>(['ddl', 'truncate', 'lock', 'utility'])

const readsOnly = (survey: Survey): boolean =>
  !survey.locks && !survey.writes && !survey.functions.some(mayWrite)

function describeQuery(
  node: Node,
  kind: StatementKind,
  source: TextSource,
  slots: SlotFinder,
  verb: string,
): Statement {
  const survey = surveyStatement(node)
  const parts = {
    kind,
    effects: queryEffects(survey, node),
    root: readQuery(node, undefined, emptyScope(countingUses(slots, survey))),
    isRead: kind === 'select' && readsOnly(survey),
    dependsOnLiterals: survey.settings.length > 0,
  }
  const select = 'SelectStmt' in node ? selectFacts(node.SelectStmt, source, slots) : undefined
  const hasTables = parts.root?.relations.length !== 0 || parts.root.children.length !== 0
  const calls = kind === 'select' && !hasTables ? calledFunctions(node, slots) : []
  return {
    ...assemble(parts, survey, verb),
    ...(select ? { select } : {}),
    ...(calls.length === 0 ? {} : { calls }),
  }
}

/** The tokens of the last scan are the statement's. */
const selectFacts = (select: SelectStmt, { sql, start, end }: TextSource, slots: SlotFinder) =>
  readSelectFacts(select, sql, tokensWithin(start, end), slots)

/** The level of COPY table TO STDOUT: SELECT columns FROM ONLY table. */
function copiedTable(effects: Effects): Level | undefined {
  const table = effects.copy?.table
  if (!table) return undefined
  const level = newLevel('select', undefined)
  level.relations.push({
    ...table,
    alias: table.name,
    nullable: false,
    isTarget: effects.copy?.direction === 'in',
    renamesColumns: false,
  })
  return level
}

/** What a utility statement names besides query levels. */
function utilityFacts(node: Node, kind: StatementKind, slots: SlotFinder) {
  if ('CallStmt' in node && node.CallStmt.funccall)
    return { calls: [calledFunction(node.CallStmt.funccall, slots)] }
  return described.has(kind) ? { ddl: describeDdl(node) } : {}
}

/** `firstToken` numbers the statement's first token in the last scan; `slots` belongs to its template. */
export function describeStatement(
  node: Node,
  source: TextSource,
  slots: SlotFinder,
  firstToken: number,
): Statement {
  const [tag] = tagOf(node)
  const queryKind = queryKinds[tag]
  if (queryKind) return describeQuery(node, queryKind, source, slots, verbOf(source, firstToken, 1))
  const utility = describeUtility(node, source, firstToken)
  const survey = surveyStatement(utility.inner ?? node)
  const inner = utility.inner
    ? readQuery(utility.inner, undefined, emptyScope(countingUses(slots, survey)))
    : undefined
  const innerReads = utility.inner === undefined || readsOnly(survey)
  const effects = utility.effects
  effects.taints ||= survey.taints || survey.settings.length > 0
  for (const pin of survey.pins) if (!effects.pins.includes(pin)) effects.pins.push(pin)
  const parts = {
    kind: utility.kind,
    effects,
    root: inner ?? copiedTable(effects),
    isRead: utility.isRead && (innerReads || !utility.runsInner),
    // Utility statements are few and their literals matter: they are not kept by template.
    dependsOnLiterals: utility.kind !== 'explain' && utility.kind !== 'declare',
  }
  const words = utility.kind === 'ddl' || utility.kind === 'explain' ? 2 : 1
  const assembled = assemble(parts, survey, verbOf(source, firstToken, words))
  return { ...assembled, ...utilityFacts(node, utility.kind, slots) }
}
