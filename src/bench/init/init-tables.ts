/**
 * `bench init`: the standard tables on every node of a connection string, each generated on its own, as pgbench -i.
 * Source followed: runInitSteps in pgbench.c.
 */
import type pg from 'pg'
import { systemClock } from '../../base/clock.js'
import { closePg } from '../../pg/admin-query.js'
import { connectPg, eachHost } from '../../pg/connect.js'
import type { Conninfo } from '../../topology/conninfo.js'
import { nodesOf } from '../run-plan.js'
import {
  accountsPerBranch,
  type InitOptions,
  type InitTools,
  runStep,
  stepNames,
} from './init-steps.js'

export interface InitReport {
  readonly node: string
  readonly accounts: number
  readonly total_s: number
  /** In the order in which they were run. */
  readonly steps: readonly { readonly step: string; readonly seconds: number }[]
}

async function initNode(
  node: string,
  client: pg.Client,
  options: InitOptions,
  tools: InitTools,
): Promise<InitReport> {
  const clock = tools.clock ?? systemClock
  const startMs = clock.monotonicMs()
  const steps: { step: string; seconds: number }[] = []
  for (const step of options.steps) {
    const stepMs = clock.monotonicMs()
    await runStep(step, client, options, tools)
    steps.push({ step: stepNames[step], seconds: (clock.monotonicMs() - stepMs) / 1000 })
  }
  const total_s = (clock.monotonicMs() - startMs) / 1000
  return { node, accounts: accountsPerBranch * options.scale, total_s, steps }
}

/** pgbench's last line, with the node before it. */
export function initLine({ node, total_s, steps }: InitReport): string {
  const times = steps.map(({ step, seconds }) => `${step} ${seconds.toFixed(2)} s`)
  return `${node}: done in ${total_s.toFixed(2)} s (${times.join(', ')}).`
}

/** One node after the other; the first that fails ends it. */
export async function initTables(options: InitOptions, tools: InitTools): Promise<InitReport[]> {
  const { nodes, indexOf } = nodesOf(options.conninfo)
  const hosts = eachHost({ ...options.conninfo, targetSessionAttrs: 'any' })
  const reports: InitReport[] = []
  for (const [i, node] of nodes.entries()) {
    const own = hosts[indexOf.indexOf(i)] as Conninfo
    if (nodes.length > 1) tools.say(`${node.name}:`)
    const client = await connectPg(own, { applicationName: 'pgshard bench init' })
    try {
      const report = await initNode(node.name, client, options, tools)
      reports.push(report)
      tools.say(initLine(report))
    } finally {
      await closePg(client)
    }
  }
  return reports
}
