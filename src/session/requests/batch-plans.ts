/** Plans of the statements that a batch binds, and whether one shard can run all of it. */
import type { BoundParameters, Plan, PlannedStatement } from '../../plan/plan.js'
import type { SessionCore } from '../session-core.js'
import { isNeutral } from '../state/apply-effects.js'
import type { ClientStatement } from '../state/client-statements.js'
import { textParameters } from './batch.js'
import type { Step } from './batch-steps.js'
import { plansOfPortals } from './batch-units.js'
import {
  areForOneShard,
  checkEncoding,
  checkStrings,
  keepMeanings,
  refusal,
} from './request-route.js'

/** @throws the plan's refusal, SESSION_ENCODING, SESSION_STRINGS */
export function planOf(
  core: SessionCore,
  parameters: BoundParameters,
  statement: PlannedStatement,
  client: ClientStatement,
): Plan {
  const text = Buffer.from(client.shared.text, 'latin1')
  checkEncoding(core, text)
  checkStrings(core, text)
  checkEncoding(core, textParameters(parameters))
  const context = core.routeContext(client.shared.parameterTypes, statement)
  const plan = statement.route(parameters, context)
  if (plan.how === 'refuse') throw refusal(plan, core)
  return plan
}

/** It ends, shapes or sets something that concerns all servers of the client. */
export function isControl(
  { held, script, transaction }: SessionCore,
  statement: PlannedStatement,
): boolean {
  if (script && statement.effects.transaction) return true
  if (statement.effects.cursor?.name === null) return held.size > 1
  if (!statement.effects.transaction && statement.kind !== 'set' && statement.kind !== 'reset')
    return false
  return held.size !== 1 || transaction.phase === 'pending'
}

/** True when one shard can run the whole batch as it stands. */
export function fitsOneShard(core: SessionCore, steps: readonly Step[]): boolean {
  if (core.transaction.phase === 'failed') return false
  const plans: Plan[] = []
  const statements: PlannedStatement[] = []
  for (const step of steps) {
    if (step.kind !== 'bind' || !step.statement) continue
    const statement = step.statement.planned.statements[0]
    if (!statement) continue
    statements.push(statement)
    if (isControl(core, statement)) return false
    if (isNeutral(statement)) continue
    const context = core.routeContext(step.statement.shared.parameterTypes, statement)
    const plan = statement.route(step.item.parameters, context)
    if (plan.how !== 'relay') return false
    plans.push(plan)
  }
  plans.push(...plansOfPortals(steps))
  return keepMeanings(statements, isNeutral) && areForOneShard(core, statements, plans)
}
