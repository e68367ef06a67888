/** Where each statement of a text would go, as plain data for `pgshard route`. Offline: the configuration alone decides. */
import type {
  BoundParameters,
  Plan,
  PlannedStatement,
  QueryPlanner,
  RouteContext,
} from '../plan/plan.js'
import { listShards } from '../sharding/shard-set.js'

/** The shape that docs and scripts rely on (design §14). */
export interface RouteDescription {
  /** `read`, `write`, or the kind of a statement that is neither. */
  readonly kind: string
  readonly target: 'one' | 'some' | 'all' | 'none'
  readonly shards: readonly number[]
  readonly how: 'relay' | 'merge' | 'gather' | 'split' | 'refuse'
  readonly role: 'primary' | 'any'
  /** Every shard gives this answer; `shards` has the one that would be asked first. */
  readonly any_shard?: boolean
  readonly reasons: readonly string[]
  readonly error?: {
    readonly sqlstate: string
    readonly code: string
    readonly message: string
    readonly hint?: string
  }
  readonly sql: string
  /** What the shards are sent where it is not `sql`; only when they were asked for. */
  readonly texts?: readonly ShardText[]
}

export interface ShardText {
  readonly shards: readonly number[]
  readonly sql: string
}

const writes = new Set(['insert', 'update', 'delete', 'merge'])

function kindOf(statement: PlannedStatement): string {
  if (statement.kind === 'select') return statement.isRead ? 'read' : 'write'
  return writes.has(statement.kind) ? 'write' : statement.kind
}

const hows = {
  relay: 'relay',
  concatenate: 'merge',
  merge: 'merge',
  gather: 'gather',
  split: 'split',
  everywhere: 'split',
  explain: 'merge',
  copy: 'split',
  refuse: 'refuse',
} as const

function targetOf(plan: Plan, shards: readonly number[], shardCount: number) {
  if (plan.how === 'refuse' || shards.length === 0) return 'none'
  if (shards.length === 1) return 'one'
  return shards.length === shardCount ? 'all' : 'some'
}

function textsOf(plan: Plan, shardCount: number): ShardText[] {
  const { merge, split, explain, gather } = plan
  if (merge) return [{ shards: listShards(plan.target, shardCount), sql: merge.sql }]
  const rows = (gather?.tables ?? []).map(({ shards, schema, name, columns, filter }) => {
    const list = columns.map((column) => column.name).join(', ')
    const where = filter === undefined ? '' : ` WHERE ${filter}`
    return {
      shards: listShards(shards, shardCount),
      sql: `SELECT ${list} FROM ${schema}.${name}${where}`,
    }
  })
  const parts = split?.parts ?? explain?.parts ?? []
  return [...rows, ...parts.map(({ shard, sql }) => ({ shards: [shard], sql }))]
}

/** Parameters written as text, as a driver would bind them. */
export function textParameters(values: readonly string[]): BoundParameters | undefined {
  if (values.length === 0) return undefined
  const parts = values.map((value) => Buffer.from(value))
  const ends: number[] = []
  let at = 0
  for (const part of parts) {
    at += part.length
    ends.push(at)
  }
  return {
    count: values.length,
    buffer: Buffer.concat(parts),
    isNull: () => false,
    format: () => 0,
    start: (index) => ends[index - 1] ?? 0,
    end: (index) => ends[index]!,
  }
}

/** Says which `$n` was given no value: the planner then takes its key as unknown, unlike in a run. */
function missingValues(sql: string, given: number): string[] {
  const bare = sql.replace(/'[^']*'|"[^"]*"|--[^\n]*|\/\*.*?\*\//gs, ' ')
  const numbers = [...bare.matchAll(/(?<![\w$])\$(\d+)/g)].map(([, digits]) => Number(digits))
  return [...new Set(numbers)]
    .filter((number) => number > given)
    .sort((a, b) => a - b)
    .map((number) => `$${number} has no value here and names no key: give it with --param`)
}

function describe(
  statement: PlannedStatement,
  sql: string,
  plan: Plan,
  shardCount: number,
  given: number,
  showsTexts: boolean,
): RouteDescription {
  const own = sql.slice(statement.start, statement.end)
  const shards = plan.how === 'refuse' ? [] : listShards(plan.target, shardCount)
  return {
    kind: kindOf(statement),
    target: targetOf(plan, shards, shardCount),
    shards,
    how: hows[plan.how],
    role: plan.role,
    ...(plan.anyShard ? { any_shard: true } : {}),
    reasons: [...plan.reasons, ...missingValues(own, given)],
    ...(plan.error ? { error: plan.error } : {}),
    sql: own,
    ...(showsTexts ? { texts: textsOf(plan, shardCount) } : {}),
  }
}

/** One description a statement; a text that PostgreSQL rejects gives one, with its error. */
export function describeRoutes(
  planner: QueryPlanner,
  sql: string,
  parameters: BoundParameters | undefined,
  context: RouteContext,
  showsTexts = false,
): RouteDescription[] {
  const query = planner.plan(sql)
  if (query.syntaxError) {
    const { message, position } = query.syntaxError
    const error = {
      sqlstate: '42601',
      code: 'SYNTAX',
      message: `${message} (character ${position})`,
    }
    const empty = { target: 'none', shards: [], how: 'refuse', role: 'primary' } as const
    return [
      {
        kind: 'invalid',
        ...empty,
        reasons: [`PostgreSQL rejects the text: ${error.message}`],
        error,
        sql,
      },
    ]
  }
  return query.statements.map((statement) => {
    const plan = statement.route(parameters, context)
    const given = parameters?.count ?? 0
    return describe(statement, sql, plan, planner.shardCount, given, showsTexts)
  })
}
