/** Makes the clients of one thread, connects them and runs them to their end. Source followed: threadRun in pgbench.c. */

import type { RunPlan } from '../run-plan.js'
import { BenchClient } from './bench-client.js'
import { ClientGroup, type GroupSeeds, type GroupTools } from './client-group.js'
import type { GroupStats, TransactionStats } from './stats.js'

/** A group that runs here or in a worker thread. */
export interface RunningGroup {
  /** Opens the connections that clients keep; rejects when one cannot be opened. */
  connect(): Promise<void>
  /** Runs to the end. */
  run(): Promise<GroupStats>
  /** Totals so far, for progress lines. */
  totals(): TransactionStats
  /** Clients finish their transaction and end. */
  stop(): void
  /** Frees what is left. */
  close(): Promise<void>
}

const connectAtOnce = 8

function makeClient(
  group: ClientGroup,
  id: number,
  seed: bigint,
  defaultSeed: bigint,
): BenchClient {
  const client = new BenchClient(id, group, seed)
  const { plan } = group
  for (const [name, text] of Object.entries(plan.variables))
    client.variables.setText(name, text, 'option')
  const startup = {
    scale: BigInt(plan.scale),
    client_id: BigInt(id),
    default_seed: BigInt.asIntN(64, defaultSeed),
    random_seed: BigInt.asIntN(64, BigInt(plan.seed)),
  }
  for (const [name, value] of Object.entries(startup)) {
    if (!client.variables.has(name)) client.variables.setValue(name, value, 'startup')
  }
  return client
}

/** A group in this thread. */
export function openGroup(plan: RunPlan, seeds: GroupSeeds, tools: GroupTools): RunningGroup {
  const group = new ClientGroup(plan, seeds, tools)
  const clients = seeds.clients.map(({ id, seed }) =>
    makeClient(group, id, seed, seeds.defaultSeed),
  )
  return {
    connect: async () => {
      if (plan.reconnect) return
      const waiting = [...clients]
      const work = async () => {
        try {
          for (let client = waiting.shift(); client !== undefined; client = waiting.shift())
            await client.connect()
        } catch (error) {
          waiting.length = 0
          throw error
        }
      }
      // All have ended before the first failure is told, so that none connects behind our back.
      const ends = await Promise.allSettled(Array.from({ length: connectAtOnce }, work))
      const failed = ends.find((end) => end.status === 'rejected')
      if (failed !== undefined) throw failed.reason
    },
    run: async () => {
      const timer = group.begin()
      const endings = await Promise.all(clients.map((client) => client.run()))
      timer?.cancel()
      group.end()
      group.stats.abortedClients = endings.filter((isGood) => !isGood).length
      return group.stats
    },
    totals: () => group.stats.total,
    stop: () => group.stop(),
    close: async () => {
      for (const client of clients) client.close()
    },
  }
}
