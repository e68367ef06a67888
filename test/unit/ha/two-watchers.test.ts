/** Two watchers, clocks that differ, and failures at random: every change of a route is one that the rules allow, and only one of them makes it. */
import { describe, expect, test } from 'vitest'
import type { Clock } from '../../../src/base/clock.js'
import { randomOf } from '../../support/random-of.js'
import { group, World } from './world.js'

const BOUND_MS = 20_000

/** The same course of time under another time of day. */
const skewed = (clock: Clock, byMs: number): Clock => ({
  nowMs: () => clock.nowMs() + byMs,
  monotonicMs: () => clock.monotonicMs(),
  after: (delayMs, run) => clock.after(delayMs, run),
  sleep: (delayMs, signal) => clock.sleep(delayMs, signal),
})

async function withTwo(world: World, work: () => Promise<void>): Promise<void> {
  const watchers = [world.watch(), world.watch(skewed(world.clock, -3_600_000))]
  await world.seconds(25)
  await work()
  world.stop.abort()
  await world.seconds(1)
  await Promise.all(watchers)
  expect(world.open).toBe(0)
}

/** A node fails, cannot be written or is back; now and then the state database. Then some seconds pass. */
async function somethingHappens(world: World, random: (below: number) => number): Promise<void> {
  const node = ['p1', 's1', 'p2', 's2'][random(4)]!
  const set = random(2) === 0 ? world.down : world.readOnly
  if (set.has(node)) set.delete(node)
  else if (random(10) < 7) set.add(node)
  world.stateDown = !world.stateDown && random(12) === 0
  await world.seconds(1 + random(15))
}

describe('two watchers', () => {
  test('X36, X38, X39, X43: whatever fails, each switch is one of the rules, and done once', async () => {
    let flips = 0
    for (const seed of [1, 2, 3, 4, 5, 6]) {
      const random = randomOf(seed)
      const world = new World([group(1), group(2)])
      await withTwo(world, async () => {
        for (let step = 0; step < 60; step++) await somethingHappens(world, random)
      })
      flips += world.flips.length
      for (const { fromAgeMs, toAgeMs } of world.flips) {
        expect(fromAgeMs).toBeGreaterThan(BOUND_MS)
        expect(toAgeMs).toBeLessThan(BOUND_MS)
      }
      const done = world.lines.filter((line) => line.includes(': route is on the '))
      expect(done).toHaveLength(world.flips.length)
    }
    expect(flips).toBeGreaterThan(20)
  })

  test('a node that flaps is not left while it comes back in time', async () => {
    const world = new World()
    await withTwo(world, async () => {
      for (let i = 0; i < 30; i++) {
        world.broken.add('p1')
        await world.seconds(25)
      }
    })
    expect(world.flips).toEqual([])
  })

  test('X37: both stale: neither of the two does anything, for as long as it lasts', async () => {
    const world = new World()
    await withTwo(world, async () => {
      world.down.add('p1')
      world.down.add('s1')
      await world.seconds(600)
    })
    expect(world.flips).toEqual([])
    expect(world.lines.filter((line) => line.includes('both failed')).length).toBeGreaterThan(50)
  })
})
