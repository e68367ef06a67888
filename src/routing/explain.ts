/** EXPLAIN: the plan of the statement in it, and what each of its shards would be asked to explain. */
import { engineError } from '../errors/engine-error.js'
import type { ExplainPart, ExplainProgram } from '../plan/explain-program.js'
import type { GatheredTable } from '../plan/gather-program.js'
import type { MergeProgram, SortKey } from '../plan/merge-program.js'
import type { Plan, QueryPlanner } from '../plan/plan.js'
import { listShards, type ShardSet, someShards } from '../sharding/shard-set.js'
import { type ExplainText, readExplain } from '../sql/explain.js'
import type { Run } from './key-value.js'
import { planOrRefuse, refuse, unsupported } from './plans.js'

const explainAdvice = 'pin it to one shard with its sharding key, or ask pgshard route'

interface Place {
  readonly planner: QueryPlanner
  /** One shard's plan is given its route too (`expanded_explain`). */
  readonly isExpanded: boolean
}

const onEach = (target: ShardSet, shardCount: number, sql: string): ExplainPart[] =>
  listShards(target, shardCount).map((shard) => ({ shard, sql }))

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`

function rowsOf(table: GatheredTable, shardCount: number): ExplainPart[] {
  const columns = table.columns.map(({ name }) => quoted(name)).join(', ')
  const from = `${table.only ? 'ONLY ' : ''}${quoted(table.schema)}.${quoted(table.name)}`
  const sql = `SELECT ${columns} FROM ${from}${table.filter ? ` WHERE ${table.filter}` : ''}`
  const what = `rows of ${table.schema}.${table.name}`
  return onEach(table.shards, shardCount, sql).map((part) => ({ ...part, what }))
}

/** The statements that the shards would run; undefined where a server has to compute something first. */
function partsOf(inner: Plan, body: string, shardCount: number): ExplainPart[] | undefined {
  switch (inner.how) {
    case 'merge':
      return onEach(inner.target, shardCount, inner.merge!.sql)
    case 'gather':
      return inner.gather!.tables.flatMap((table) => rowsOf(table, shardCount))
    case 'split':
      return splitParts(inner)
    case 'everywhere':
      return inner.everywhere?.split ? undefined : onEach(inner.target, shardCount, body)
    default:
      return onEach(inner.target, shardCount, body)
  }
}

function splitParts({ split }: Plan): ExplainPart[] | undefined {
  if (!split || split.draw) return undefined
  return split.parts.map(({ shard, sql }) => ({ shard, sql }))
}

const showKey = ({ column, descending }: SortKey): string =>
  `column ${column + 1}${descending ? ' DESC' : ''}`

function mergeLines(merge: MergeProgram): string[] {
  const lines: string[] = []
  if (merge.order.length > 0) lines.push(`Merge Key: ${merge.order.map(showKey).join(', ')}`)
  if (merge.unique)
    lines.push(`Unique: ${merge.unique.map((one) => `column ${one + 1}`).join(', ')}`)
  if (merge.combine.length > 0)
    lines.push(
      `Combine: ${merge.combine.map(({ by, column }) => `${by} column ${column + 1}`).join(', ')}`,
    )
  if (merge.sort) lines.push(`Sort Key: ${merge.sort.map(showKey).join(', ')}`)
  if (merge.limit !== null) lines.push(`Limit: ${merge.limit}${merge.withTies ? ' WITH TIES' : ''}`)
  if (merge.offset > 0n) lines.push(`Offset: ${merge.offset}`)
  return lines
}

function finishOf(inner: Plan): string[] {
  if (inner.merge) return mergeLines(inner.merge)
  if (inner.gather) return [`Finish: ${inner.gather.sql.replace(/\s+/g, ' ').trim()}`]
  return []
}

function explainedAs(inner: Plan, text: ExplainText, place: Place): Plan {
  const { shardCount } = place.planner
  if (inner.how === 'refuse') return inner
  if (inner.how === 'relay' && !place.isExpanded) return inner
  const isWrite = inner.role === 'primary' && inner.how !== 'relay'
  if (text.analyze && isWrite) return unsupported('EXPLAIN ANALYZE of a write', explainAdvice)
  if (text.format !== 'text' && text.format !== 'json') {
    if (inner.how === 'relay') return inner
    return unsupported(`EXPLAIN (FORMAT ${text.format.toUpperCase()})`, 'use FORMAT TEXT or JSON')
  }
  const parts = partsOf(inner, text.body, shardCount)
  if (!parts) return unsupported('EXPLAIN of values that a server computes first', explainAdvice)
  if (inner.how === 'relay' && parts.length !== 1) return inner
  const program: ExplainProgram = {
    parts: parts.map((part) => ({ ...part, sql: text.prefix + part.sql })),
    format: text.format,
    how: inner.how,
    reasons: inner.reasons,
    finish: finishOf(inner),
  }
  return {
    how: 'explain',
    target: someShards(parts.map(({ shard }) => shard)),
    role: text.analyze ? inner.role : 'any',
    reasons: ['each shard explains its part', ...inner.reasons],
    explain: program,
  }
}

/** Routes of an EXPLAIN, by the statement in it. */
export function compileExplain(place: Place): (run: Run) => Plan {
  return (run) =>
    planOrRefuse(() => {
      const text = readExplain(run.sql.slice(run.start, run.end), run.standard)
      const query = text && place.planner.plan(text.body)
      const inner = query?.statements.length === 1 ? query.statements[0] : undefined
      if (!text || !inner)
        return refuse(engineError('ROUTE_UNSUPPORTED', { what: 'EXPLAIN', advice: explainAdvice }))
      return explainedAs(inner.route(run.parameters, run.context), text, place)
    })
}
