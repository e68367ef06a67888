/** Looks at the schema while somebody asks, and no more. */
import { expect, test } from 'vitest'
import { SchemaWatch } from '../../../../src/proxy/databases/schema-watch.js'
import { FakeClock, settled } from '../../../support/fake-clock.js'

function watching() {
  const clock = new FakeClock()
  const state = { now: 'a', looks: 0, changes: 0, fails: false }
  const watch = new SchemaWatch({
    clock,
    look: () => {
      state.looks++
      return state.fails ? Promise.reject(new Error('down')) : Promise.resolve(state.now)
    },
    changed: () => {
      state.changes++
    },
  })
  return { clock, state, watch }
}

test('is not fresh before the schema was read', () => {
  expect(watching().watch.isFresh).toBe(false)
})

test('looks again after five seconds of use, and never while nobody asks', async () => {
  const { clock, state, watch } = watching()
  watch.note('a')
  expect(watch.isFresh).toBe(true)
  await clock.advance(60_000)
  expect(state.looks).toBe(0)
  // what was seen a minute ago does not count
  expect(watch.isFresh).toBe(false)
  await settled()
  expect(watch.isFresh).toBe(true)
  await clock.advance(5001)
  expect(watch.isFresh).toBe(true)
  expect(state.looks).toBe(2)
})

test('tells of a change once it is seen', async () => {
  const { clock, state, watch } = watching()
  watch.note('a')
  state.now = 'b'
  await clock.advance(5001)
  expect(watch.isFresh).toBe(true)
  await settled()
  expect(state.changes).toBe(1)
})

test('counts nothing as known while it cannot look', async () => {
  const { clock, state, watch } = watching()
  watch.note('a')
  state.fails = true
  await clock.advance(10_001)
  expect(watch.isFresh).toBe(false)
  await settled()
  expect(watch.isFresh).toBe(false)
})
