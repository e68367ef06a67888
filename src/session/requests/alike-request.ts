/** What was decided of a client's last request, for the next one that differs from it in its literals or parameters alone. */
import type { ClassFigures, PlannedStatement, QueryPlanner, TextMatcher } from '../../plan/plan.js'
import type { Settings } from '../../server/settings.js'
import { frameLength } from '../../wire/frame-reader.js'
import { frontend, MAX_BODY_BYTES } from '../../wire/tags.js'
import { AlikeBatch } from './alike-batch.js'
import type { PipelinedBatch } from './pipelined-batch.js'
import type { PipelinableRequest } from './pipelined-host.js'

/** What holds for every text of a template, or for all parameters, while settings and schema stay. */
export interface Decided {
  readonly figures: ClassFigures
  readonly planned: PlannedStatement
  readonly request: PipelinableRequest
  readonly generation: number | undefined
  readonly settings: Settings
}

export interface LastQuery extends Decided {
  readonly pattern: TextMatcher
  readonly batch?: undefined
}

export interface LastBatch extends Decided {
  readonly batch: AlikeBatch
}

/** All but the route has been decided for the template; undefined when it has not: with several shards the literals decide that. */
export function lastQueryOf(
  planned: PlannedStatement,
  { role, unread }: PipelinableRequest,
  planner: QueryPlanner,
  settings: Settings,
): LastQuery | undefined {
  const { pattern, figures } = planned
  const { generation, shardCount } = planner
  if (!pattern || !figures || !unread || shardCount > 1) return undefined
  const request = { shard: 0, role, alone: unread }
  return { pattern, figures, planned, request, generation, settings }
}

export function lastBatchOf(
  batch: PipelinedBatch,
  planned: PlannedStatement,
  { role, again }: PipelinableRequest,
  planner: QueryPlanner,
  settings: Settings,
): LastBatch | undefined {
  const { figures } = planned
  const { generation, shardCount } = planner
  const alike = again && shardCount === 1 ? AlikeBatch.of(batch) : undefined
  if (!alike || !again || !figures) return undefined
  const request = { shard: 0, role, alone: again }
  return { batch: alike, figures, planned, request, generation, settings }
}

/** The whole of `chunk` is one Query that differs in its literals alone. */
export function isAnotherQuery({ pattern }: LastQuery, chunk: Buffer): boolean {
  const last = chunk.length - 1
  return (
    chunk[0] === frontend.query &&
    last > 4 &&
    chunk[last] === 0 &&
    frameLength(chunk, 0, MAX_BODY_BYTES) === last &&
    pattern.matches(chunk, 5, last)
  )
}

/** The whole of `chunk` is the batch with other parameters, of a statement that means the same as in `epoch`; it counts as used. */
export function isAnotherBatch(batch: AlikeBatch, chunk: Buffer, epoch: number): boolean {
  if (!batch.matches(chunk, chunk.length)) return false
  const { statement, hasParse } = batch
  if (statement.shared.epoch !== epoch) return false
  if (hasParse) {
    statement.confirmed = false
    statement.shared.uses++
  }
  return true
}
