/** Facts of a template → the function that routes its runs. What does not depend on a run is worked out here, once. */
import { engineError } from '../errors/engine-error.js'
import type { Plan } from '../plan/plan.js'
import type { CommentHints } from '../sql/hint.js'
import type { Statement } from '../sql/statement.js'
import { readsOnly } from './effects.js'
import type { Run } from './key-value.js'
import { RelayPlans, type Role, refuse } from './plans.js'
import type { RoutingWorld } from './world.js'

export type RouteOf = (run: Run) => Plan

/** With one shard everything goes there; only the role is chosen. */
function compileSingle(hints: CommentHints | undefined, role: Role): RouteOf {
  const any = new RelayPlans('any', ['the database has one shard']).to(0)
  const primary = new RelayPlans('primary', ['the database has one shard']).to(0)
  if (hints?.invalid) {
    const refused = refuse(engineError('ROUTE_HINT_INVALID', hints.invalid))
    return () => refused
  }
  return ({ context }) => {
    const wanted = hints?.role ?? context.manual?.role
    if (wanted === 'primary') return primary
    return wanted === 'replica' || role === 'any' ? any : primary
  }
}

export function compileStatement(
  statement: Statement,
  hints: CommentHints | undefined,
  world: RoutingWorld,
): RouteOf {
  const role: Role = readsOnly(statement, world) ? 'any' : 'primary'
  if (world.map.shardCount === 1) return compileSingle(hints, role)
  return compileSingle(hints, role)
}
