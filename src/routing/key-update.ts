/** UPDATE of the sharding key: rows whose new key belongs elsewhere would have to leave their shard, which is refused. */

import { engineError } from '../errors/engine-error.js'
import type { ShardedTable } from '../sharding/sharded-table.js'
import type { Level } from '../sql/statement.js'
import { refuse } from './plans.js'
import type { Resolved } from './resolve.js'
import type { WriteRoute } from './write-text-for-all.js'

type Sharded = Resolved & { place: { kind: 'sharded'; table: ShardedTable } }

/** Undefined: the key stays what it is. */
export function keyUpdate(root: Level, target: Sharded): WriteRoute | undefined {
  const { column } = target.place.table
  if (root.kind !== 'update' || !assignsKey(root, column)) return undefined
  const plan = refuse(engineError('ROUTE_KEY_UPDATE', { column, table: target.use.name }))
  return () => plan
}

/** Whether an assignment may give the key another value. */
const assignsKey = (level: Level, key: string): boolean =>
  (level.assigned ?? []).some((one) => one.column === key && !isItself(level, one.from, key))

/** `SET key = key`, or in ON CONFLICT `SET key = excluded.key`, which the arbiter has found equal. */
export function isItself(
  level: Level,
  from: { readonly column: string; readonly table?: string } | undefined,
  key: string,
): boolean {
  if (from?.column !== key) return false
  const own = level.relations[0]!.alias
  if (level.kind === 'insert') return from.table === 'excluded' || from.table === own
  return (
    from.table === own ||
    (from.table === undefined && level.relations.length === 1 && !level.hasDerived)
  )
}
