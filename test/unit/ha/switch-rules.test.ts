import { describe, expect, test } from 'vitest'
import { decide, type GroupState } from '../../../src/ha/switch-rules.js'

const rules = { switchAfterMs: 20_000, promote: false }
const state = (current: 'primary' | 'standby', primary?: number, standby?: number): GroupState => ({
  current,
  primaryAgeMs: primary === undefined ? undefined : primary * 1000,
  standbyAgeMs: standby === undefined ? undefined : standby * 1000,
})

describe('on the primary', () => {
  test.each([
    [19.9, 1, 'stay'],
    [20, 1, 'stay'],
    [20.1, 1, 'fail_over'],
    [20.1, 19.9, 'fail_over'],
    [20.1, 20, 'both_failed'],
    [20.1, 20.1, 'both_failed'],
    [500, 500, 'both_failed'],
  ])('X36, X37, X39: ages %d and %d: %s', (primary, standby, decision) => {
    expect(decide(state('primary', primary, standby), rules)).toBe(decision)
  })

  test('X41: a stale standby causes nothing', () => {
    expect(decide(state('primary', 1, 900), rules)).toBe('stay')
  })

  test('a node without any heartbeat is as a stale one', () => {
    expect(decide(state('primary', undefined, 1), rules)).toBe('fail_over')
    expect(decide(state('primary', undefined, undefined), rules)).toBe('both_failed')
  })
})

describe('on the standby', () => {
  test.each([
    [1, 20.1, 'fail_back'],
    [1, 20, 'stay'],
    [20, 20.1, 'both_failed'],
    [30, 30, 'both_failed'],
  ])('X38, X39: ages %d and %d: %s', (primary, standby, decision) => {
    expect(decide(state('standby', primary, standby), rules)).toBe(decision)
  })

  test('X40: a primary that returns takes nothing from a healthy standby', () => {
    expect(decide(state('standby', 0.1, 5), rules)).toBe('stay')
  })

  test('a promoted standby is never left for a primary that misses its writes', () => {
    expect(decide(state('standby', 1, 30), { ...rules, promote: true })).toBe('no_fail_back')
  })
})
