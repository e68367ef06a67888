import { describe, expect, test } from 'vitest'
import { Prng, shuffleInPlace, uint64Range } from '../../../src/topology/prng.js'

const mask = 0xffff_ffff_ffff_ffffn
const rotl = (x: bigint, n: bigint) => ((x << n) | (x >> (64n - n))) & mask

/** xoroshiro128** straight from its definition. */
function* reference(s0: bigint, s1: bigint): Generator<bigint> {
  for (;;) {
    yield (rotl((s0 * 5n) & mask, 7n) * 9n) & mask
    const x = s1 ^ s0
    s0 = (rotl(s0, 24n) ^ x ^ ((x << 16n) & mask)) & mask
    s1 = rotl(x, 37n)
  }
}

const scripted = (...draws: bigint[]) => ({
  count: 0,
  nextUint64() {
    return draws[this.count++] as bigint
  },
})

describe('xoroshiro128**', () => {
  test('L21: known answers of the reference state 1, 2', () => {
    const prng = Prng.ofState(1n, 2n)
    expect([prng.nextUint64(), prng.nextUint64()]).toEqual([5760n, 97769243520n])
  })

  test('10,000 draws equal the 64-bit definition', () => {
    const prng = Prng.ofState(0x9e3779b97f4a7c15n, 0xdeadbeefcafef00dn)
    const wanted = reference(0x9e3779b97f4a7c15n, 0xdeadbeefcafef00dn)
    for (let i = 0; i < 10_000; i++) expect(prng.nextUint64()).toBe(wanted.next().value)
  })
})

describe('range draws', () => {
  test('L19: an empty range gives its minimum without a draw', () => {
    const source = scripted()
    expect(uint64Range(source, 5n, 5n)).toBe(5n)
    expect(uint64Range(source, 5n, 3n)).toBe(5n)
    expect(source.count).toBe(0)
  })

  test('L18: a value past the range is drawn again', () => {
    const source = scripted(3n << 62n, 2n << 62n)
    expect(uint64Range(source, 10n, 12n)).toBe(12n)
    expect(source.count).toBe(2)
  })

  test('L20: at most two draws on average for ranges 1 to 64', () => {
    const prng = Prng.ofSeed(7n)
    let draws = 0
    const counted = {
      nextUint64: () => {
        draws++
        return prng.nextUint64()
      },
    }
    for (let i = 0; i < 20_000; i++) uint64Range(counted, 0n, BigInt(1 + (i % 64)))
    expect(draws / 20_000).toBeLessThanOrEqual(2)
  })
})

describe('shuffle', () => {
  test('L13: scripted draws give the exact permutation', () => {
    // i=1: j=1 (stays); i=2: j=0 (swap a and c)
    const items = ['a', 'b', 'c']
    shuffleInPlace(items, scripted(1n << 63n, 0n))
    expect(items).toEqual(['c', 'b', 'a'])
  })

  test('L14: 60,000 shuffles of three reach all six permutations evenly', () => {
    const prng = Prng.ofSeed(42n)
    const counts = new Map<string, number>()
    for (let i = 0; i < 60_000; i++) {
      const items = ['a', 'b', 'c']
      shuffleInPlace(items, prng)
      const key = items.join('')
      counts.set(key, (counts.get(key) ?? 0) + 1)
    }
    const chi = [...counts.values()].reduce((sum, n) => sum + (n - 10_000) ** 2 / 10_000, 0)
    expect(counts.size).toBe(6)
    expect(chi).toBeLessThan(20.5)
  })
})
