/** ON CONFLICT over several shards: its arbiter must hold the sharding key, or a conflicting row may stand on another shard. */
import { engineError } from '../../errors/engine-error.js'
import type { Plan } from '../../plan/plan.js'
import type { ShardedTable } from '../../sharding/sharded-table.js'
import type { Level } from '../../sql/statement.js'
import { refuse } from '../plans.js'
import type { Resolved } from '../resolve.js'

/** Undefined when every conflict is seen by the shard of the row. */
export function conflictRefusal(
  level: Level,
  target: Resolved,
  table: ShardedTable,
): Plan | undefined {
  const { columns, constraint } = level.insert?.conflict ?? {}
  const accepted = new Set(table.localConstraints ?? [])
  const known = target.relation?.constraints ?? []
  const refused = (arbiter: string): Plan =>
    refuse(engineError('ROUTE_CONFLICT', { arbiter, table: target.use.name }))
  if (constraint !== undefined) {
    const named = known.find((one) => one.name === constraint)
    const holds = !named || named.columns.includes(table.column) || accepted.has(constraint)
    return holds ? undefined : refused(constraint)
  }
  if (!columns || columns.includes(table.column)) return undefined
  const same = known.find(
    (one) =>
      one.columns.length === columns.length && one.columns.every((name) => columns.includes(name)),
  )
  if (same && accepted.has(same.name)) return undefined
  return refused(columns.map((name) => name ?? '(expression)').join(', '))
}
