/** A batch whose one statement is for several servers: each way to answer it, by the plan. */
import type { Plan, PlannedStatement } from '../../plan/plan.js'
import { noteSeveral } from '../request-books.js'
import type { SessionCore } from '../session-core.js'
import type { HeldServer } from '../state/held-servers.js'
import { openingFrame, scatterBatch } from './batch-answers.js'
import type { Step } from './batch-steps.js'
import { runInTransaction } from './implicit-transaction.js'
import { runEverywhere } from './over-shards/run-everywhere.js'
import { runExplain } from './over-shards/run-explain.js'
import { runGather } from './over-shards/run-gather.js'
import { runMerge } from './over-shards/run-merge.js'
import { runSplitPlan } from './over-shards/run-split-plan.js'
import { hopelessBind, SeveralRequest } from './over-shards/several-request.js'
import type { ShardedRequests } from './over-shards/sharded-requests.js'
import { wayMissing } from './request-route.js'

/** Anything but relay and refuse; `onOne` sends steps to one server. May throw before anything was sent to the client. */
export function runSpecialBatch(
  core: SessionCore,
  sharded: ShardedRequests,
  steps: readonly Step[],
  plan: Plan,
  statement: PlannedStatement,
  onOne: (held: HeldServer, steps: Step[]) => void,
): void {
  const hopeless = plan.how === 'copy' ? undefined : hopelessBind(steps)
  if (hopeless) {
    const shard = core.held.first?.shard ?? core.nextShard()
    return core.withShard(shard, 'primary', (held) => onOne(held, hopeless))
  }
  for (const step of steps) {
    const portal = step.kind === 'bind' && core.statements.portals.get(step.item.portal)
    if (portal) portal.isSeveral = true
  }
  noteSeveral(core.running, plan, statement)
  switch (plan.how) {
    case 'copy':
      return copyBatch(core, sharded, steps, plan, statement)
    case 'concatenate': {
      const isPortion = steps.some((step) => step.kind === 'execute' && step.item.maxRows > 0)
      if (isPortion && statement.kind === 'select') return runPortion(core, steps, plan)
      const scatter = () => scatterSteps(sharded, steps, plan, statement)
      return statement.isRead ? scatter() : runInTransaction(core, scatter)
    }
    case 'gather':
      return runGather(core, SeveralRequest.ofBatch(steps), plan)
    case 'merge':
      return runMerge(core, SeveralRequest.ofBatch(steps), plan)
    case 'explain':
      return runExplain(core, SeveralRequest.ofBatch(steps), plan)
    case 'split':
      return runSplitPlan(core, SeveralRequest.ofBatch(steps), plan)
    case 'everywhere':
      return runEverywhere(core, SeveralRequest.ofBatch(steps), plan)
    case 'relay':
    case 'refuse':
      throw wayMissing(plan)
  }
}

/** The first rows of several shards, whichever come first. */
function runPortion(core: SessionCore, steps: readonly Step[], plan: Plan): void {
  const request = SeveralRequest.ofBatch(steps)
  const merge = {
    sql: request.sql,
    visible: -1,
    order: [],
    combine: [],
    limit: null,
    offset: 0n,
    withTies: false,
  }
  runMerge(core, request, { ...plan, merge })
}

function copyBatch(
  core: SessionCore,
  sharded: ShardedRequests,
  steps: readonly Step[],
  plan: Plan,
  statement: PlannedStatement,
): void {
  for (const step of steps) {
    const frame = openingFrame(step)
    if (frame) core.output.append(frame)
  }
  const bind = steps.find((step) => step.kind === 'bind')
  const text = bind?.kind === 'bind' ? (bind.statement?.planned.text ?? '') : ''
  sharded.copyIn(statement, plan, text)
}

/** The same unnamed statement on every shard. */
function scatterSteps(
  sharded: ShardedRequests,
  steps: readonly Step[],
  plan: Plan,
  statement: PlannedStatement,
): void {
  const { client, bytesFor, parsed } = scatterBatch(steps)
  sharded.scatter(statement, plan, client.planned.text, { bytesFor, hidesParse: !parsed })
}
