/** The distribution that H1 to H3 are judged by, without servers: over 200 seeds the p-values of runs are uniform, so that ten fixed ones are no choice of lucky ones. */
import { expect, test } from 'vitest'
import { chiSquare } from '../../../src/bench/report/chi-square.js'
import { dealSeeds } from '../../../src/bench/run-bench.js'
import type { RunPlan } from '../../../src/bench/run-plan.js'
import type { Conninfo } from '../../../src/topology/conninfo.js'
import { hostOrder } from '../../../src/topology/host-candidates.js'
import { Prng } from '../../../src/topology/prng.js'

const SEEDS = 200

/** p of one run: `connections` walks over hosts with these numbers, one after the other. */
function pOf(seed: number, connections: number, list: readonly number[]): number {
  const plan = { seed: String(seed), clients: 2, threads: 1, variables: {} } as unknown as RunPlan
  const random = Prng.ofSeed(dealSeeds(plan)[0]!.hosts)
  const hosts = list.map((port) => ({ host: 'h', port }))
  const conninfo = { hosts, loadBalanceHosts: 'random' } as unknown as Conninfo
  const counts = [0, 0, 0]
  for (let i = 0; i < connections; i++) counts[hostOrder(conninfo, () => random)[0]!.host.port]!++
  const shares = counts.map((_, i) => list.filter((one) => one === i).length / list.length)
  return chiSquare(counts, shares)!.p
}

test.each([
  ['H1', 1000, [0, 1, 2]],
  ['H2', 2000, [0, 1, 2]],
  ['H3', 2000, [0, 1, 2, 1]],
] as const)('%s: p-values over many seeds are uniform', (_, connections, list) => {
  const sorted = Array.from({ length: SEEDS }, (_, i) => pOf(101 + i, connections, list)).sort(
    (a, b) => a - b,
  )
  // Kolmogorov and Smirnov: 1.63 / sqrt(n) is passed once in a hundred samples of uniform numbers
  const farthest = Math.max(
    ...sorted.map((p, i) => Math.max(Math.abs(p - i / SEEDS), Math.abs((i + 1) / SEEDS - p))),
  )
  expect(farthest).toBeLessThan(1.63 / Math.sqrt(SEEDS))
})
