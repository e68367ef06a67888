/**
 * LISTEN in a transaction pool: the hub listens, and the pool's server runs a statement in its place that does nothing
 * but fail where LISTEN would fail (in an aborted transaction). The client is answered as by LISTEN.
 */
import type { Plan, PlannedQuery, PlannedStatement } from '../../plan/plan.js'
import { oneShard } from '../../sharding/shard-set.js'

/** It is a LISTEN that no server shall run. */
export interface SilentListen extends PlannedStatement {
  readonly tagInstead: 'LISTEN'
}

/** Allowed wherever LISTEN is, also on a replica; nothing to undo when the server listens to nothing. */
const NOTHING = 'UNLISTEN *'

const anywhere: Plan = {
  how: 'relay',
  target: oneShard(0),
  anyShard: true,
  role: 'any',
  reasons: ['the proxy listens for the client'],
}

export const isSilentListen = (statement: PlannedStatement): statement is SilentListen =>
  'tagInstead' in statement

/** Channels that the statements listen to; empty for all but a few. */
export function channelsOf(statements: readonly (PlannedStatement | undefined)[]): string[] {
  const channels: string[] = []
  for (const statement of statements) {
    const channel = statement?.effects.listen?.channel
    if (channel !== undefined) channels.push(channel)
  }
  return channels
}

/** The query with every LISTEN made silent. */
export function silenceListen(query: PlannedQuery): PlannedQuery {
  let text = ''
  let from = 0
  const statements = query.statements.map((statement) => {
    text += query.text.slice(from, statement.start)
    const start = text.length
    const isListen = statement.effects.listen !== undefined
    text += isListen ? NOTHING : query.text.slice(statement.start, statement.end)
    from = statement.end
    const moved = { ...statement, start, end: text.length, route: statement.route.bind(statement) }
    return isListen ? silent(moved) : moved
  })
  return { text: text + query.text.slice(from), statements }
}

const silent = (statement: PlannedStatement): SilentListen => ({
  ...statement,
  tagInstead: 'LISTEN',
  isRead: true,
  effects: { ...statement.effects, pins: [] },
  route: () => anywhere,
})
