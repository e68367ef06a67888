/** The ways of a write whose rows go to different shards. */
import type { Plan } from '../../../plan/plan.js'
import type { SessionCore } from '../../session-core.js'
import { runMove } from './run-move.js'
import { runSelectInsert } from './run-select-insert.js'
import { runSplit } from './run-split.js'
import type { SeveralRequest } from './several-request.js'

/** Runs it; the request ends by the core, now or later. May throw before anything was sent. */
export function runSplitPlan(core: SessionCore, request: SeveralRequest, plan: Plan): void {
  if (plan.move) runMove(core, request, plan)
  else if (plan.selected) runSelectInsert(core, request, plan)
  else runSplit(core, request, plan)
}
