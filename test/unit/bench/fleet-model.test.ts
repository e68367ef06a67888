/** The model behind docs/fleet.md: limits that must hold whatever the costs are. */
import { expect, test } from 'vitest'
// biome-ignore lint/correctness/useImportExtensions: a script, not TypeScript
import { busyCores, closedNetwork, oneMachine, threeMachines } from '../../../bench/fleet/model.mjs'

const costs = { poolerUs: 12, serverUs: 30, generatorUs: 14 }
const machines = { poolerCores: 16, serverCores: 32, generatorCores: 32, delayUs: 200 }

test('one client waits for everything in turn, many are held by the slowest station', () => {
  const stations = [
    { demandUs: 100, servers: 1 },
    { demandUs: 50, servers: 1 },
  ]
  expect(closedNetwork(stations, 50, 1)).toBeCloseTo(1e6 / 200)
  expect(closedNetwork(stations, 50, 1000)).toBeGreaterThan(9900)
  expect(closedNetwork(stations, 50, 1000)).toBeLessThan(10_000.01)
})

test('two stations alike: exact value for two clients', () => {
  // MVA by hand: R1 = 10 + 10, X1 = 1/20; queues 1/2; R2 = 15 + 15, X2 = 2/30
  const alike = { demandUs: 10, servers: 1 }
  expect(closedNetwork([alike, alike], 0, 2)).toBeCloseTo((2 / 30) * 1e6)
})

test('H8, H10, H12, H14: a process is held by one core, a fleet is not; at few clients they are alike', () => {
  const at = (workers: number, clients: number) =>
    threeMachines(costs, machines, { workers, clients })
  expect(at(1, 256)).toBeLessThan(1e6 / costs.poolerUs + 0.01)
  expect(at(1, 256)).toBeGreaterThan(0.95 * (1e6 / costs.poolerUs))
  expect(at(16, 8) / at(1, 8)).toBeLessThan(1.2)
  const ratios = [8, 32, 64, 128, 256].map((clients) => at(16, clients) / at(1, clients))
  expect(ratios).toEqual([...ratios].sort((a, b) => a - b))
  expect(ratios.at(-1)).toBeGreaterThan(3)
})

test('H16: the fleet is not busy when the servers behind it are', () => {
  const small = { ...machines, serverCores: 8 }
  const tps = threeMachines(costs, small, { workers: 16, clients: 1024 })
  expect(tps).toBeCloseTo((8 / costs.serverUs) * 1e6, -4)
  expect(busyCores(costs.poolerUs, tps)).toBeLessThan(4)
})

test('on one machine all share its cores', () => {
  const two = { cores: 2, workers: 2, clients: 512 }
  expect(oneMachine(costs, two)).toBeLessThanOrEqual((2 / 56) * 1e6)
  expect(oneMachine({ ...costs, poolerUs: 500 }, { ...two, workers: 1 })).toBeLessThanOrEqual(2000)
})
