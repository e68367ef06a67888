import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { SCRAM_ITERATIONS, scramKeysSync } from '../../../src/auth/scram-verifier.js'

test('the keys of a password are derived once, so that a crowd of logins does not hold the others up', () => {
  const salt = randomBytes(16)
  const timed = () => {
    const from = performance.now()
    const keys = scramKeysSync('a password', salt, SCRAM_ITERATIONS)
    return { keys, ms: performance.now() - from }
  }
  const first = timed()
  const again = Array.from({ length: 20 }, timed)
  expect(again.every(({ keys }) => keys === first.keys)).toBe(true)
  expect(Math.min(...again.map(({ ms }) => ms))).toBeLessThan(first.ms / 4)
  expect(scramKeysSync('another', salt, SCRAM_ITERATIONS)).not.toEqual(first.keys)
  expect(scramKeysSync('a password', randomBytes(16), SCRAM_ITERATIONS)).not.toEqual(first.keys)
})
