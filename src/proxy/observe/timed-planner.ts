/** A planner whose slow readings are logged (`log_min_duration_parse`). */
import type { Clock } from '../../base/clock.js'
import type { Log } from '../../base/log.js'
import type { PlannedQuery, QueryPlanner } from '../../plan/plan.js'
import { redactLiterals } from '../../routing/redact.js'

export interface TimedPlannerOptions {
  readonly clock: Clock
  readonly log: Log
  readonly database: string
  readonly minMs: number
  readonly sampleLength: number
}

export function timedPlanner(planner: QueryPlanner, options: TimedPlannerOptions): QueryPlanner {
  const { clock, log, database, minMs, sampleLength } = options
  return {
    shardCount: planner.shardCount,
    kept: () => planner.kept?.() ?? [],
    plan: (sql): PlannedQuery => {
      const startedMs = clock.monotonicMs()
      const query = planner.plan(sql)
      const durationMs = clock.monotonicMs() - startedMs
      if (durationMs >= minMs) {
        const statement = redactLiterals(sql).slice(0, sampleLength)
        log.info('slow parse', { database, durationMs, statement })
      }
      return query
    },
  }
}
