import { describe, expect, test } from 'vitest'
import { hashFnv1a, hashMurmur2, permute, poissonDelay } from '../../../src/bench/script/random.js'
import { formatDouble, parseValue, toInt } from '../../../src/bench/script/value.js'
import { Prng } from '../../../src/topology/prng.js'

describe('values', () => {
  test.each([
    [0.1, '0.1'],
    [1e15, '1e+15'],
    [123456789012345, '123456789012345'],
    [1e-5, '1e-05'],
    [0.0001, '0.0001'],
    [1 / 3, '0.333333333333333'],
    [-0, '-0'],
    [Number.POSITIVE_INFINITY, 'Infinity'],
  ])('%d prints as %s', (value, text) => expect(formatDouble(value)).toBe(text))

  test('rounding to int goes to even', () => {
    expect([0.5, 1.5, 2.5, -0.5, -1.5].map((value) => toInt(value))).toEqual([0n, 2n, 2n, 0n, -2n])
  })

  test.each([
    ['ye', true],
    ['OF', false],
    ['null', null],
    [' 42', 42n],
    ['1e3', 1000],
  ])('text %j', (text, value) => expect(parseValue(text, 'v')).toBe(value))

  test('text that is nothing', () => {
    expect(() => parseValue('abc', 'v')).toThrow('malformed variable "v" value: "abc"')
    expect(() => parseValue('9223372036854775808', 'v')).toThrow('out of range for type bigint')
  })
})

test('a permutation is one', () => {
  for (const size of [2, 3, 7, 64, 100]) {
    const seen = new Set(
      Array.from({ length: size }, (_, i) => permute(BigInt(i), BigInt(size), 5n)),
    )
    expect(seen.size).toBe(size)
    expect([...seen].every((value) => value >= 0n && value < BigInt(size))).toBe(true)
  }
})

test('hashes stay signed 64-bit', () => {
  for (const hash of [hashFnv1a, hashMurmur2]) {
    const value = hash(-1n, 1234n)
    expect(value).toBe(BigInt.asIntN(64, value))
  }
})

test('waits of the Poisson process have the mean asked for', () => {
  const prng = Prng.ofSeed(1n)
  let sum = 0
  for (let i = 0; i < 50_000; i++) sum += poissonDelay(prng, 1000)
  expect(sum / 50_000).toBeGreaterThan(980)
  expect(sum / 50_000).toBeLessThan(1020)
})
