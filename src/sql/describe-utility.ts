/** Statements that are not queries: kind, effects, and the query that EXPLAIN, DECLARE, COPY hold. */

import type { Effects, StatementKind } from '../plan/effects.js'
import { TokenKind, tokens } from './lexer.js'
import type { DeclareCursorStmt, DefElem, Node } from './parse.js'
import { tagOf } from './tree.js'
import {
  type EffectsInMaking,
  noEffects,
  readCopy,
  readSet,
  readTransaction,
  type TextSource,
} from './utility.js'

export interface UtilityFacts {
  kind: StatementKind
  effects: EffectsInMaking
  /** The query inside. */
  inner?: Node
  /** The inner query is executed, not only planned. */
  runsInner: boolean
  isRead: boolean
}

const plain = (
  kind: StatementKind,
  effects: EffectsInMaking = noEffects(),
  isRead = false,
): UtilityFacts => ({
  kind,
  effects,
  runsInner: true,
  isRead,
})

const withEffects = (
  kind: StatementKind,
  effects: Partial<EffectsInMaking>,
  isRead = false,
): UtilityFacts => plain(kind, { ...noEffects(), ...effects }, isRead)

function isOn(element: DefElem): boolean {
  const arg = element.arg
  if (!arg) return true
  if ('Boolean' in arg) return arg.Boolean.boolval === true
  if ('Integer' in arg) return (arg.Integer.ival ?? 0) !== 0
  if ('String' in arg) return !/^(?:off|false|0|no)$/i.test(arg.String.sval ?? '')
  return true
}

function explain(query: Node | undefined, options: readonly Node[] | undefined): UtilityFacts {
  const analyze = (options ?? []).some(
    (node) => 'DefElem' in node && node.DefElem.defname === 'analyze' && isOn(node.DefElem),
  )
  const facts = plain('explain', noEffects(), true)
  facts.runsInner = analyze
  if (query && 'ExecuteStmt' in query) {
    facts.effects.execute = { name: query.ExecuteStmt.name ?? '', runs: analyze }
    facts.isRead = false
  } else if (query) {
    const [tag] = tagOf(query)
    if (/^(?:Select|Insert|Update|Delete|Merge)Stmt$/.test(tag)) facts.inner = query
    else facts.isRead = false
  }
  return facts
}

/** CURSOR_OPT_HOLD in src/include/nodes/parsenodes.h. */
const cursorHold = 0x20

function declare({ query, options = 0, portalname = '' }: DeclareCursorStmt): UtilityFacts {
  const holds = (options & cursorHold) !== 0
  const effects: EffectsInMaking = {
    ...noEffects(),
    cursor: { verb: 'declare', name: portalname, holds },
  }
  if (holds) effects.pins.push('cursor with hold')
  return {
    kind: 'declare',
    effects,
    runsInner: true,
    isRead: true,
    ...(query ? { inner: query } : {}),
  }
}

/** Where the body of PREPARE name (types) AS body begins. */
function prepareBody(source: TextSource, firstToken: number): number {
  let depth = 0
  for (let i = firstToken; i < tokens.count; i++) {
    const start = tokens.starts[i]!
    const text = source.sql.slice(start, tokens.ends[i])
    if (text === '(') depth++
    else if (text === ')') depth--
    else if (depth === 0 && tokens.kinds[i] === TokenKind.word && /^as$/i.test(text)) {
      return tokens.starts[i + 1] ?? source.end
    }
  }
  return source.end
}

/** The name of a temporary relation that a CREATE makes; undefined when it makes none. */
function temporaryName(body: unknown): string | undefined {
  const { relation, into, sequence, view } = (body ?? {}) as Record<string, unknown>
  const ranges = [relation, (into as { rel?: unknown } | undefined)?.rel, sequence, view]
  for (const range of ranges) {
    const { relpersistence, schemaname, relname } = (range ?? {}) as Record<string, unknown>
    if (relpersistence === 't' || schemaname === 'pg_temp') return String(relname)
  }
  return undefined
}

/** The prepared statement whose rows CREATE TABLE … AS EXECUTE takes. */
function executedBy(body: unknown): string | undefined {
  const { query } = (body ?? {}) as { query?: Node }
  return query && 'ExecuteStmt' in query ? (query.ExecuteStmt.name ?? '') : undefined
}

function dataDefinition(tag: string, body: unknown): UtilityFacts {
  const effects = noEffects()
  if (/^Create/.test(tag) || tag === 'ViewStmt') {
    const name = temporaryName(body)
    if (name === undefined) effects.changesSchema = true
    else {
      effects.pins.push('temporary object')
      effects.temporary = [name]
    }
  } else effects.changesSchema = true
  const executed = executedBy(body)
  if (executed !== undefined) effects.execute = { name: executed }
  return plain('ddl', effects)
}

const utilities = new Set([
  'VacuumStmt',
  'ClusterStmt',
  'CheckPointStmt',
  'ReindexStmt',
  'RefreshMatViewStmt',
  'LoadStmt',
  'AlterSystemStmt',
])

function describeSession(node: Node, source: TextSource, first: number): UtilityFacts | undefined {
  if ('TransactionStmt' in node)
    return { ...plain('begin'), ...readTransaction(node.TransactionStmt) }
  if ('VariableSetStmt' in node)
    return { ...plain('set'), ...readSet(node.VariableSetStmt, source) }
  if ('VariableShowStmt' in node) return plain('show', noEffects(), true)
  if ('ConstraintsSetStmt' in node) {
    return withEffects('set', { settings: [{ kind: 'transaction' }] })
  }
  if ('DiscardStmt' in node) {
    const target = (node.DiscardStmt.target ?? 'DISCARD_ALL').slice(8).toLowerCase()
    return withEffects('discard', { discard: target as NonNullable<Effects['discard']> })
  }
  if ('PrepareStmt' in node) {
    const bodyStart = prepareBody(source, first)
    const name = node.PrepareStmt.name ?? ''
    const facts = withEffects('prepare', { prepare: { name, bodyStart, bodyEnd: source.end } })
    // Its parts count for where it may run; they run at EXECUTE.
    return { ...facts, ...(node.PrepareStmt.query ? { inner: node.PrepareStmt.query } : {}) }
  }
  if ('ExecuteStmt' in node) {
    return withEffects('execute', { execute: { name: node.ExecuteStmt.name ?? '' } })
  }
  if ('DeallocateStmt' in node) {
    return withEffects('deallocate', { deallocate: { name: node.DeallocateStmt.name ?? null } })
  }
  return undefined
}

function describeNotification(node: Node): UtilityFacts | undefined {
  if ('ListenStmt' in node) {
    const channel = node.ListenStmt.conditionname ?? ''
    return withEffects('listen', { listen: { channel }, pins: ['listen'] })
  }
  if ('UnlistenStmt' in node) {
    return withEffects('unlisten', {
      unlisten: { channel: node.UnlistenStmt.conditionname ?? null },
    })
  }
  if ('NotifyStmt' in node) {
    const { conditionname, payload } = node.NotifyStmt
    return withEffects('notify', {
      notify: { channel: conditionname ?? '', payload: payload ?? '' },
    })
  }
  return undefined
}

function describeQueryHolder(node: Node): UtilityFacts | undefined {
  if ('ExplainStmt' in node) return explain(node.ExplainStmt.query, node.ExplainStmt.options)
  if ('DeclareCursorStmt' in node) {
    return declare(node.DeclareCursorStmt)
  }
  if ('CopyStmt' in node) {
    const { query, is_from, filename, is_program } = node.CopyStmt
    const isRead = !is_from && !filename && !is_program
    return {
      ...plain('copy', noEffects(), isRead),
      ...readCopy(node.CopyStmt),
      ...(query ? { inner: query } : {}),
    }
  }
  if ('FetchStmt' in node) {
    const name = node.FetchStmt.portalname ?? ''
    return withEffects('fetch', { cursor: { verb: 'fetch', name } }, true)
  }
  if ('ClosePortalStmt' in node) {
    const name = node.ClosePortalStmt.portalname ?? null
    return withEffects('close', { cursor: { verb: 'close', name } }, true)
  }
  if ('CallStmt' in node) return withEffects('call', { taints: true })
  if ('DoStmt' in node) return withEffects('do', { taints: true })
  if ('TruncateStmt' in node) return plain('truncate')
  return 'LockStmt' in node ? plain('lock') : undefined
}

export function describeUtility(node: Node, source: TextSource, firstToken: number): UtilityFacts {
  const known =
    describeSession(node, source, firstToken) ??
    describeNotification(node) ??
    describeQueryHolder(node)
  if (known) return known
  const [tag, body] = tagOf(node)
  return utilities.has(tag) ? plain('utility') : dataDefinition(tag, body)
}
