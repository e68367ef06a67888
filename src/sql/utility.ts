/** Kind and effects of statements that are not queries: transactions, settings, prepared statements, COPY, DDL. */

import type {
  CopyEffect,
  Effects,
  IsolationLevel,
  PinReason,
  SettingEffect,
  StatementKind,
} from '../plan/effects.js'
import type {
  A_Const,
  CopyStmt,
  DefElem,
  Node,
  RangeVar,
  TransactionStmt,
  VariableSetStmt,
} from './parse.js'
import { stringOf, stringsOf } from './tree.js'

/** A part of the text, in the characters of the whole query string. */
export interface TextSource {
  readonly sql: string
  readonly start: number
  readonly end: number
  /** Parser location → character offset. */
  at(location: number | undefined): number
}

/** Effects while they are gathered. */
export type EffectsInMaking = {
  -readonly [K in keyof Effects]: K extends 'pins' ? PinReason[] : Effects[K]
}

export interface Utility {
  kind: StatementKind
  effects: EffectsInMaking
}

export const noEffects = (): EffectsInMaking => ({ pins: [], taints: false, changesSchema: false })

const constText = (node: Node | undefined): string | undefined => {
  if (!node) return undefined
  if ('TypeCast' in node) return constText(node.TypeCast.arg)
  if ('Boolean' in node) return node.Boolean.boolval ? 'true' : 'false'
  if ('Integer' in node) return String(node.Integer.ival ?? 0)
  if ('Float' in node) return node.Float.fval ?? ''
  if ('TypeName' in node) return stringsOf(node.TypeName.names).join('.')
  return 'A_Const' in node ? ofConst(node.A_Const) : stringOf(node)
}

function ofConst({ sval, ival, fval }: A_Const): string | undefined {
  if (sval) return sval.sval ?? ''
  return ival ? String(ival.ival ?? 0) : fval?.fval
}

function beginEffect(options: readonly Node[] | undefined): Effects['transaction'] {
  const effect: { kind: 'begin'; readOnly?: boolean; isolation?: IsolationLevel } = {
    kind: 'begin',
  }
  for (const node of options ?? []) {
    if (!('DefElem' in node)) continue
    const value = constText(node.DefElem.arg)
    if (node.DefElem.defname === 'transaction_isolation') effect.isolation = value as IsolationLevel
    if (node.DefElem.defname === 'transaction_read_only') effect.readOnly = value !== '0'
  }
  return effect
}

/** BEGIN, COMMIT and their kind. */
export function readTransaction(statement: TransactionStmt): Utility {
  const effects = noEffects()
  const name = statement.savepoint_name ?? ''
  const chain = statement.chain === true
  const made = (kind: StatementKind, transaction: Effects['transaction']): Utility => ({
    kind,
    effects: { ...effects, ...(transaction ? { transaction } : {}) },
  })
  switch (statement.kind) {
    case 'TRANS_STMT_BEGIN':
    case 'TRANS_STMT_START':
      return made('begin', beginEffect(statement.options))
    case 'TRANS_STMT_COMMIT':
      return made('commit', { kind: 'commit', chain })
    case 'TRANS_STMT_ROLLBACK':
      return made('rollback', { kind: 'rollback', chain })
    case 'TRANS_STMT_SAVEPOINT':
      return made('savepoint', { kind: 'savepoint', name })
    case 'TRANS_STMT_RELEASE':
      return made('release', { kind: 'release', name })
    case 'TRANS_STMT_ROLLBACK_TO':
      return made('rollback_to', { kind: 'rollback_to', name })
    case 'TRANS_STMT_PREPARE':
      return made('two_phase', { kind: 'two_phase', verb: 'prepare' })
    case 'TRANS_STMT_COMMIT_PREPARED':
      return made('two_phase', { kind: 'two_phase', verb: 'commit_prepared' })
    default:
      return made('two_phase', { kind: 'two_phase', verb: 'rollback_prepared' })
  }
}

/** Name that SET TO takes, for the spellings that have their own syntax. */
const special: Record<string, RegExp> = {
  timezone: /\btime\s+zone\s+/iy,
  client_encoding: /\bnames\s*/iy,
  session_authorization: /\bsession\s+authorization\s+/iy,
  role: /\brole\s+/iy,
  xmloption: /\bxml\s+option\s+/iy,
  search_path: /\bschema\s+/iy,
}

/**
 * The value as it stands in the text behind `SET name =`. SET TIME ZONE, NAMES, SCHEMA, ROLE have a grammar of their own;
 * their value is written anew from the tree.
 */
function settingValue(statement: VariableSetStmt, source: TextSource): string {
  const written = /^\s*set\s+(?:(?:session|local)\s+)?[\w."]+\s*(?:=|\bto\b)\s*/i.exec(
    source.sql
      .slice(source.start, source.end)
      .replace(/^(?:\s|--[^\n\r]*|\/\*[\s\S]*?\*\/)+/, (c) => ' '.repeat(c.length)),
  )
  const spelled = special[statement.name ?? '']
  if (written && !(spelled && hasOwnGrammar(source, spelled))) {
    return source.sql.slice(source.start + written[0].length, source.end).trim()
  }
  return (statement.args ?? []).map(quoteConst).join(', ')
}

function hasOwnGrammar(source: TextSource, form: RegExp): boolean {
  const text = source.sql.slice(source.start, source.end)
  const start =
    /^\s*set\s+(?:(?:session|local)\s+(?!authorization\b))?/i.exec(text)?.[0].length ?? 0
  form.lastIndex = start
  return form.test(text) && !/^\s*(?:=|to\b)/i.test(text.slice(form.lastIndex))
}

function quoteConst(node: Node): string {
  if ('TypeCast' in node) {
    const type = stringsOf(node.TypeCast.typeName?.names).at(-1) ?? 'text'
    return `${type} ${quoteConst(node.TypeCast.arg as Node)}`
  }
  const text = constText(node) ?? ''
  const isString = 'A_Const' in node && node.A_Const.sval !== undefined
  return isString ? `'${text.replaceAll("'", "''")}'` : text
}

function setEffect(statement: VariableSetStmt, source: TextSource): SettingEffect {
  const name = (statement.name ?? '').toLowerCase()
  switch (statement.kind) {
    case 'VAR_RESET_ALL':
      return { kind: 'reset_all' }
    case 'VAR_RESET':
      return { kind: 'reset', name }
    case 'VAR_SET_MULTI':
      return name === 'session characteristics'
        ? characteristics(statement)
        : transactionSetting(statement)
    case 'VAR_SET_DEFAULT':
      return { kind: 'set', name, value: null, local: statement.is_local === true }
    default: {
      const value = settingValue(statement, source)
      return { kind: 'set', name, value, local: statement.is_local === true }
    }
  }
}

/** SET TRANSACTION. */
function transactionSetting(statement: VariableSetStmt): SettingEffect {
  const { isolation } = beginEffect(statement.args) as { isolation?: IsolationLevel }
  return { kind: 'transaction', ...(isolation === undefined ? {} : { isolation }) }
}

/** SET SESSION CHARACTERISTICS sets default_transaction_*; several options give one effect each through `readSet`. */
function characteristics(statement: VariableSetStmt): SettingEffect {
  return characteristicsOf(statement)[0] ?? { kind: 'transaction' }
}

function characteristicsOf(statement: VariableSetStmt): SettingEffect[] {
  return (statement.args ?? []).flatMap((node): SettingEffect[] => {
    if (!('DefElem' in node)) return []
    const { defname, arg } = node.DefElem
    const value = constText(arg) ?? ''
    const flag = defname === 'transaction_isolation' ? `'${value}'` : value === '0' ? 'off' : 'on'
    return [{ kind: 'set', name: `default_${defname}`, value: flag, local: false }]
  })
}

export function readSet(statement: VariableSetStmt, source: TextSource): Utility {
  // SET TIME ZONE INTERVAL … has no form that SET name TO takes: the server is cleaned instead.
  if ((statement.args ?? []).some((node) => 'TypeCast' in node)) {
    return { kind: 'set', effects: { ...noEffects(), taints: true } }
  }
  const reset = statement.kind === 'VAR_RESET' || statement.kind === 'VAR_RESET_ALL'
  const many = statement.name === 'SESSION CHARACTERISTICS'
  const settings = many ? characteristicsOf(statement) : [setEffect(statement, source)]
  return { kind: reset ? 'reset' : 'set', effects: { ...noEffects(), settings } }
}

function copyOption(element: DefElem): CopyEffect['options'][number] {
  const name = (element.defname ?? '').toLowerCase()
  const arg = element.arg
  if (!arg) return { name }
  if ('A_Star' in arg) return { name, value: '*' }
  if ('List' in arg) return { name, list: stringsOf(arg.List.items) }
  const value = constText(arg)
  return value === undefined ? { name } : { name, value }
}

const tableNameOf = ({ relname, schemaname }: RangeVar): { schema?: string; name: string } => ({
  ...(schemaname ? { schema: schemaname } : {}),
  name: relname ?? '',
})

export function readCopy(statement: CopyStmt): Utility {
  const { relation, attlist } = statement
  const copy: CopyEffect = {
    direction: statement.is_from ? 'in' : 'out',
    stdio: !statement.filename && !statement.is_program,
    options: (statement.options ?? []).flatMap((node) =>
      'DefElem' in node ? [copyOption(node.DefElem)] : [],
    ),
    where: statement.whereClause !== undefined,
    ...(relation ? { table: tableNameOf(relation) } : {}),
    ...(attlist ? { columns: stringsOf(attlist) } : {}),
  }
  return { kind: 'copy', effects: { ...noEffects(), copy } }
}
