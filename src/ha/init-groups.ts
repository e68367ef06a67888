/** `pgshard ha init`: tables, functions and rights of the groups, in the state database and on every node. */
import { type Clock, systemClock } from '../base/clock.js'
import { adminQuery, closePg, inTransaction } from '../pg/admin-query.js'
import { connectPg } from '../pg/connect.js'
import { type HaPlan, nodePlace, nodesOf } from './ha-plan.js'
import { dropNodeSql, dropStateSql, type FunctionRoute, nodeSql, stateSql } from './ha-schema.js'

export interface InitOptions {
  readonly plan: HaPlan
  readonly routes: readonly FunctionRoute[]
  readonly dryRun: boolean
  readonly drop: boolean
  readonly clock?: Clock
}

export interface InitReport {
  readonly dryRun: boolean
  readonly dropped: boolean
  readonly steps: readonly { readonly where: string; readonly sql: string }[]
  readonly notes: readonly string[]
}

/** Idempotent. Each database in one transaction; the nodes first, so that a state never names a node that is not ready. */
export async function initGroups(options: InitOptions): Promise<InitReport> {
  const { plan, routes, dryRun, drop } = options
  const notes: string[] = []
  const steps: { where: string; sql: string }[] = []
  for (const { group, role, conninfo, hostId } of nodesOf(plan)) {
    const where = `host ${hostId} (${nodePlace(conninfo)}, ${role} of ${group.name})`
    if (group.promote && role === 'standby') {
      notes.push(`${where}: a streaming replica, it gets everything from its primary`)
      continue
    }
    const sql = drop ? dropNodeSql : nodeSql(plan)
    steps.push({ where, sql })
    if (!dryRun) await runOn(conninfo, sql, options.clock)
  }
  const sql = drop ? dropStateSql : stateSql(plan, routes)
  steps.push({ where: 'state database', sql })
  if (!dryRun) await runOn(plan.state, sql, options.clock)
  return { dryRun, dropped: drop && !dryRun, steps, notes }
}

async function runOn(conninfo: string, sql: string, clock: Clock = systemClock): Promise<void> {
  const client = await connectPg(conninfo, { applicationName: 'pgshard ha init' })
  try {
    await inTransaction(client, () => adminQuery(client, sql))
  } finally {
    await closePg(client, clock)
  }
}
