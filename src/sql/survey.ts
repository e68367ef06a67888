/** What a walk over a whole statement finds: functions called, clocks, locks, data-changing parts, system columns. */

import type { PinReason, SettingEffect } from '../plan/effects.js'
import type { FuncCall, Node } from './parse.js'
import { readValue } from './predicate.js'
import type { FunctionUse } from './statement.js'
import { stringOf, stringsOf, walkTree } from './tree.js'

export interface Survey {
  functions: FunctionUse[]
  operators: Set<string>
  /** Types named, without those of pg_catalog. */
  typeNames: Set<string>
  /** Last names of `table.column` and `(row).field`, which may call a function of the row. */
  attributes: Set<string>
  /** How often each parameter stands, by number. */
  parameters: Map<number, number>
  usesClock: boolean
  systemColumn?: string
  locks: boolean
  /** INSERT, UPDATE, DELETE, MERGE or SELECT INTO at any depth. */
  writes: boolean
  pins: PinReason[]
  settings: SettingEffect[]
  /** Calls pg_advisory_unlock or its kin. */
  unlocks: boolean
  /** set_config or setseed whose effect cannot be read. */
  taints: boolean
}

const systemColumns = new Set(['ctid', 'xmin', 'xmax', 'cmin', 'cmax', 'tableoid'])
const clocks = new Set(['now', 'transaction_timestamp', 'statement_timestamp'])
const writingTags = new Set(['InsertStmt', 'UpdateStmt', 'DeleteStmt', 'MergeStmt', 'IntoClause'])
/** Giving a lock back takes none: pools of drivers call pg_advisory_unlock_all whenever a connection returns. */
const sessionLocks = /^pg_(?:try_)?advisory_lock(?:_shared)?$/

/** Settings whose value is a list of names: set_config takes it as one string, SET as several. */
const listSettings = new Set(['search_path', 'datestyle', 'temp_tablespaces'])

const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`

function settingText(name: string, value: string): string {
  if (!listSettings.has(name) || !value.includes(',')) return quoted(value)
  const parts = value.split(',').map((part) => part.trim())
  return parts.map((part) => (part.startsWith('"') ? part : quoted(part))).join(', ')
}

const constString = (node: Node | undefined): string | undefined =>
  node && 'A_Const' in node && node.A_Const.sval ? (node.A_Const.sval.sval ?? '') : undefined

function constBoolean(node: Node | undefined): boolean | undefined {
  if (!node || !('A_Const' in node) || !node.A_Const.boolval) return undefined
  return node.A_Const.boolval.boolval === true
}

/** set_config with literal arguments, as the SET that does the same. */
function setConfig(call: FuncCall): SettingEffect | undefined {
  const [first, second, third] = call.args ?? []
  const name = constString(first)?.toLowerCase()
  const value = constString(second)
  const local = constBoolean(third)
  if (name === undefined || value === undefined || local === undefined) return undefined
  return { kind: 'set', name, value: settingText(name, value), local }
}

function surveyCall(call: FuncCall, survey: Survey): void {
  const path = stringsOf(call.funcname)
  const name = path.at(-1) ?? ''
  const schema = path.length > 1 ? path.at(-2) : undefined
  survey.functions.push(schema === undefined ? { name } : { schema, name })
  if (schema !== undefined && schema !== 'pg_catalog') return
  if (clocks.has(name)) survey.usesClock = true
  if (sessionLocks.test(name)) survey.pins.push('advisory lock')
  if (name.startsWith('pg_advisory_unlock')) survey.unlocks = true
  if (name === 'setseed') survey.taints = true
  if (name === 'set_config') {
    const effect = setConfig(call)
    if (effect) survey.settings.push(effect)
    else survey.taints = true
  }
}

function surveyColumn(fields: readonly Node[] | undefined, survey: Survey): void {
  const name = stringOf(fields?.at(-1))
  if (name !== undefined && systemColumns.has(name)) survey.systemColumn ??= name
  if (name !== undefined && fields && fields.length > 1) survey.attributes.add(name)
}

function surveyIndirection(steps: readonly Node[] | undefined, survey: Survey): void {
  for (const step of steps ?? []) {
    const name = stringOf(step)
    if (name !== undefined) survey.attributes.add(name)
  }
}

function surveyType(names: readonly Node[] | undefined, survey: Survey): void {
  const path = stringsOf(names)
  if (path.length > 1 && path[0] === 'pg_catalog') return
  survey.typeNames.add(path.at(-1) ?? '')
}

const clockOps = /^SVFOP_(?:CURRENT_(?:DATE|TIME|TIMESTAMP)|LOCALTIME)/

function surveyOperator(names: readonly Node[] | undefined, survey: Survey): void {
  const path = stringsOf(names)
  if (path.length > 1 && path[0] === 'pg_catalog') return
  survey.operators.add(path.at(-1) ?? '')
}

function surveyParameter(number: number, survey: Survey): void {
  survey.parameters.set(number, (survey.parameters.get(number) ?? 0) + 1)
}

function surveyExpression(tag: string, body: unknown, survey: Survey): void {
  const { typeName } = body as { typeName?: { names?: Node[] } }
  if (typeName?.names) surveyType(typeName.names, survey)
  if (tag === 'A_Expr') surveyOperator((body as { name?: Node[] }).name, survey)
  else if (tag === 'A_Indirection') {
    surveyIndirection((body as { indirection?: Node[] }).indirection, survey)
  } else if (tag === 'SubLink') surveyOperator((body as { operName?: Node[] }).operName, survey)
  else if (tag === 'ParamRef') surveyParameter((body as { number?: number }).number ?? 0, survey)
}

function surveyNode(tag: string, body: unknown, survey: Survey): void {
  if (tag === 'FuncCall') surveyCall(body as FuncCall, survey)
  else if (tag === 'ColumnRef') surveyColumn((body as { fields?: Node[] }).fields, survey)
  else if (tag === 'LockingClause') survey.locks = true
  else if (tag === 'SQLValueFunction') {
    if (clockOps.test((body as { op?: string }).op ?? '')) survey.usesClock = true
  } else if (writingTags.has(tag)) survey.writes = true
  else if (tag === 'SelectStmt' && 'intoClause' in (body as object)) survey.writes = true
}

export function surveyStatement(node: Node): Survey {
  const survey: Survey = {
    functions: [],
    operators: new Set(),
    typeNames: new Set(),
    attributes: new Set(),
    parameters: new Map(),
    usesClock: false,
    locks: false,
    writes: false,
    pins: [],
    settings: [],
    taints: false,
    unlocks: false,
  }
  walkTree({ node }, (tag, body) => {
    surveyNode(tag, body, survey)
    surveyExpression(tag, body, survey)
    return true
  })
  // A setting made for each row of a table, or never, cannot be followed: only SELECT set_config(…) alone can.
  if (survey.settings.length > 0 && !isBareSelect(node)) {
    survey.settings = []
    survey.taints = true
  }
  return survey
}

/** SELECT f(…), g(…) without FROM, WHERE or anything else; every column a call. */
function isBareSelect(node: Node): boolean {
  if (!('SelectStmt' in node)) return false
  const { fromClause, whereClause, withClause, groupClause, limitCount, op, targetList } =
    node.SelectStmt
  if (fromClause || whereClause || withClause || groupClause || limitCount) return false
  if (op && op !== 'SETOP_NONE') return false
  const noSlots = { slotAt: () => -1 }
  return (targetList ?? []).every((target) => {
    const value = 'ResTarget' in target ? target.ResTarget.val : undefined
    return value !== undefined && ('FuncCall' in value || readValue(value, noSlots) !== undefined)
  })
}
