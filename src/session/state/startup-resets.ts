/**
 * RESET, RESET ALL and SET … TO DEFAULT go back to what a client came with. Servers of a pool know only defaults of their
 * own, so they hear statements that bring the client's values instead. DISCARD ALL, which must stand alone, is followed by them.
 */
import type { Effects, SettingEffect } from '../../plan/effects.js'
import type { PlannedQuery } from '../../plan/plan.js'
import {
  quoteLiteral,
  rawSettingText,
  Settings,
  settingName,
  settingsDifference,
} from '../../server/settings.js'
import { decodeErrorFields, errorResponseFrame } from '../../wire/error-response.js'

/** A statement as servers hear it. */
interface HeardStatement {
  readonly sql: string
  /** The tag that the client expects. */
  readonly tag: 'SET' | 'RESET'
}

/** Undefined: it is heard as the client wrote it. */
export function heardStatement(effects: Effects, startup: Settings): HeardStatement | undefined {
  const setting = effects.settings?.length === 1 ? effects.settings[0] : undefined
  if (!setting || startup.values.size === 0) return undefined
  if (setting.kind === 'reset_all') return resetAll(startup)
  return resetOne(setting, startup)
}

function resetOne(setting: SettingEffect, startup: Settings): HeardStatement | undefined {
  if (setting.kind === 'reset') {
    const sql = startupSql(setting.name, startup, '')
    return sql === undefined ? undefined : { sql, tag: 'RESET' }
  }
  if (setting.kind !== 'set' || setting.value !== null) return undefined
  const sql = startupSql(setting.name, startup, setting.local ? 'LOCAL ' : '')
  return sql === undefined ? undefined : { sql, tag: 'SET' }
}

/** One statement, as the extended protocol has it; who the session is stays as it is. */
function resetAll(startup: Settings): HeardStatement | undefined {
  const names = [...startup.withIdentityOf(Settings.none).values.keys()]
  const sets = names.flatMap((name) => startupAssignment(name, startup, '') ?? [])
  if (sets.length === 0) return undefined
  return { sql: block(['RESET ALL', ...sets]), tag: 'RESET' }
}

const block = (statements: readonly string[]): string =>
  `DO ${quoteLiteral(`BEGIN ${statements.join('; ')}; END`)}`

/** Routing hints mean nothing to a server. */
const isHint = (name: string): boolean => /^(?:pgshard|pgdog)\./.test(name)

function startupSql(name: string, startup: Settings, scope: '' | 'LOCAL '): string | undefined {
  const assignment = startupAssignment(name, startup, scope)
  return assignment?.startsWith('SET ') === false ? block([assignment]) : assignment
}

/** A statement of a block. A list of names is put on letter for letter: SET would write it in a way of its own. */
function startupAssignment(
  name: string,
  startup: Settings,
  scope: '' | 'LOCAL ',
): string | undefined {
  const initial = startup.values.get(name.toLowerCase())
  if (initial === undefined || isHint(name)) return undefined
  const raw = rawSettingText(initial)
  if (raw === undefined) return `SET ${scope}${settingName(name)} TO ${initial}`
  const isLocal = scope === 'LOCAL '
  return `PERFORM pg_catalog.set_config(${quoteLiteral(name)}, ${quoteLiteral(raw)}, ${isLocal})`
}

/** What must follow DISCARD ALL; empty when the client came with nothing. */
export const afterDiscardAll = (startup: Settings): string =>
  settingsDifference(Settings.none, startup)

interface Edit {
  /** Characters of the client's text before it. */
  readonly at: number
  readonly removed: number
  readonly added: number
}

/** A query string as servers hear it. */
interface HeardQuery {
  readonly text: string
  readonly edits: readonly Edit[]
}

/** Undefined: as the client wrote it. */
export function heardQuery(query: PlannedQuery, startup: Settings): HeardQuery | undefined {
  if (startup.values.size === 0) return undefined
  let text = ''
  let from = 0
  const edits: Edit[] = []
  for (const statement of query.statements) {
    const heard = statement.effects.settings && heardStatement(statement.effects, startup)
    if (!heard) continue
    const own = query.text.slice(statement.start, statement.end)
    text += query.text.slice(from, statement.start) + heard.sql
    from = statement.end
    edits.push({
      at: countOf(query.text.slice(0, statement.start)),
      removed: countOf(own),
      added: countOf(heard.sql),
    })
  }
  return edits.length === 0 ? undefined : { text: text + query.text.slice(from), edits }
}

/** Positions in errors count characters, not units of UTF-16. */
const countOf = (text: string): number => [...text].length

/** An ErrorResponse whose position is one of the client's own text again. */
export function errorOfOwnText(frame: Buffer, edits: readonly Edit[]): Buffer {
  const fields = { ...decodeErrorFields(frame.subarray(5)) }
  const position = Number(fields['P'])
  if (!Number.isFinite(position)) return frame
  let own = position
  for (const { at, removed, added } of edits) {
    if (own > at + added) own += removed - added
    else if (own > at + removed) own = at + 1
  }
  return errorResponseFrame({ ...fields, P: String(own) })
}
