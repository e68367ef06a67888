/** Earliest expected finish: short statements stay together on servers that run, long ones spread over idle ones. */
import { expect, test } from 'vitest'
import { WakeUp } from '../../../../src/executor/pipeline/choose-lane.js'
import {
  mayEnter,
  noteRun,
  noteRunAlone,
  noteStall,
} from '../../../../src/executor/pipeline/class-figures.js'
import type { ClassFigures } from '../../../../src/plan/plan.js'
import { FakeClient, rig } from './rig.js'

/** Servers that are woken for `clients` statements that come at once, each of which takes `meanMs`. */
function serversFor(clients: number, meanMs: number): number {
  const { pipeline, clock, servers } = rig(20)
  for (let i = 0; i < clients; i++) {
    const client = new FakeClient(`c${i}`)
    client.figures = { runs: 10, hotRuns: 10, meanMs, typicalMs: meanMs, replyBytes: 100 }
    pipeline.run(client, clock.monotonicMs())
  }
  return servers.filter((server) => server.socket.writes.length > 0).length
}

test('keeps short statements on few servers and spreads long ones', () => {
  expect(serversFor(1, 0.02)).toBe(1)
  expect(serversFor(4, 0.02)).toBe(1)
  expect(serversFor(8, 0.02)).toBe(1)
  expect(serversFor(32, 0.02)).toBe(2)
  expect(serversFor(8, 1)).toBe(8)
})

test('spreads over all servers, then asks for more of them', () => {
  const { pipeline, clock, pool } = rig(2)
  for (let i = 0; i < 6; i++) {
    const client = new FakeClient(`c${i}`)
    client.figures = { runs: 10, hotRuns: 10, meanMs: 1, typicalMs: 1, replyBytes: 100 }
    expect(pipeline.run(client, clock.monotonicMs())).toBeDefined()
  }
  expect(pipeline.lanes).toBe(2)
  expect(pool.asksToGrow).toBe(4)
})

const seen = (typicalMs: number): ClassFigures => ({
  ...{ runs: 10, hotRuns: 10, meanMs: typicalMs, replyBytes: 100 },
  typicalMs,
})

test('learns how long an idle server takes', () => {
  const wakeUp = new WakeUp()
  for (let i = 0; i < 200; i++) wakeUp.note(0.55, seen(0.05))
  expect(wakeUp.ms).toBeCloseTo(0.5, 2)
  for (let i = 0; i < 500; i++) wakeUp.note(1000, seen(0.05))
  expect(wakeUp.ms).toBeLessThanOrEqual(2)
})

test('finds out that statements are quicker than they were taken for, although each wakes a server', () => {
  const wakeUp = new WakeUp()
  const figures = seen(3)
  for (let i = 0; i < 200; i++) wakeUp.note(0.15, figures)
  expect(figures.typicalMs + wakeUp.ms).toBeCloseTo(0.15, 2)
  const late = seen(0.4)
  for (let i = 0; i < 200; i++) wakeUp.note(0.9, late)
  // what a wake-up takes grows until queueing is tried, which tells the two apart
  expect(wakeUp.costOf(late)).toBeLessThanOrEqual(wakeUp.ms)
})

test('takes the machine being busy for no more than noise', () => {
  const figures = seen(0.05)
  for (let i = 0; i < 1000; i++) noteRun(figures, i % 3 === 0 ? 10 : 0.04 + (i % 5) / 100, 100, 20)
  expect(figures.typicalMs).toBeLessThan(0.1)
})

test('a class runs alone before it is known, leaves when it is slow or large, and comes back', () => {
  const figures = { runs: 0, hotRuns: 0, meanMs: 0, typicalMs: 0, replyBytes: 0 }
  expect(mayEnter(figures, 20)).toBe(false)
  noteRun(figures, 0.1, 100, 20)
  expect(mayEnter(figures, 20)).toBe(true)
  noteStall(figures, 20)
  expect(mayEnter(figures, 20)).toBe(true)
  for (let i = 0; i < 3; i++) noteStall(figures, 20)
  expect(mayEnter(figures, 20)).toBe(false)
  let runs = 0
  while (!mayEnter(figures, 20) && runs < 100) {
    noteRunAlone(figures, 0.1, 100, 20)
    runs++
  }
  expect(runs).toBeGreaterThan(0)
  expect(runs).toBeLessThan(40)
  for (let i = 0; i < 40; i++) noteRun(figures, 0.1, 20_000, 20)
  expect(mayEnter(figures, 20)).toBe(false)
})
