/**
 * The random functions and hashes of the script language. Draws are those of pgbench for the same seed.
 * Source followed: getrand, getGaussianRand, getZipfianRand, permute, getHashMurmur2 in pgbench.c.
 */
import { Prng, uint64Range } from '../../topology/prng.js'
import { scriptFailure } from './value.js'

const wrap = (value: bigint): bigint => BigInt.asUintN(64, value)
const signed = (value: bigint): bigint => BigInt.asIntN(64, value)

/** (int64) ((max - min + 1) * fraction) */
const scaled = (min: bigint, max: bigint, fraction: number): bigint =>
  min + BigInt(Math.trunc(Number(max - min + 1n) * fraction))

export const uniform = (prng: Prng, min: bigint, max: bigint): bigint =>
  min + uint64Range(prng, 0n, max - min)

export function exponential(prng: Prng, min: bigint, max: bigint, parameter: number): bigint {
  if (!(parameter > 0))
    throw scriptFailure(
      `exponential parameter must be greater than zero (not ${parameter.toFixed(6)})`,
    )
  const cut = Math.exp(-parameter)
  const draw = 1 - prng.nextDouble()
  return scaled(min, max, -Math.log(cut + (1 - cut) * draw) / parameter)
}

export function gaussian(prng: Prng, min: bigint, max: bigint, parameter: number): bigint {
  if (!(parameter >= 2))
    throw scriptFailure(
      `gaussian parameter must be at least ${(2).toFixed(6)} (not ${parameter.toFixed(6)})`,
    )
  let deviation: number
  do {
    const first = 1 - prng.nextDouble()
    const second = 1 - prng.nextDouble()
    deviation = Math.sqrt(-2 * Math.log(first)) * Math.sin(2 * Math.PI * second)
  } while (deviation < -parameter || deviation >= parameter)
  return scaled(min, max, (deviation + parameter) / (parameter * 2))
}

export function zipfian(prng: Prng, min: bigint, max: bigint, s: number): bigint {
  if (!(s >= 1.001 && s <= 1000))
    throw scriptFailure(`zipfian parameter must be in range [1.001, 1000] (not ${s.toFixed(6)})`)
  const n = max - min + 1n
  if (n <= 1n) return min
  const limit = Number(n)
  const b = 2 ** (s - 1)
  for (;;) {
    const u = prng.nextDouble()
    const v = prng.nextDouble()
    const x = Math.floor(u ** (-1 / (s - 1)))
    const t = (1 + 1 / x) ** (s - 1)
    if ((v * x * (t - 1)) / (b - 1) <= t / b && x <= limit) return min - 1n + BigInt(x)
  }
}

/** Waiting time in microseconds of a Poisson process with this mean. */
export const poissonDelay = (prng: Prng, meanUs: number): number =>
  Math.trunc(-Math.log(1 - prng.nextDouble()) * meanUs + 0.5)

export function hashFnv1a(value: bigint, seed: bigint): bigint {
  let result = wrap(0xcbf29ce484222325n ^ wrap(seed))
  let rest = wrap(value)
  for (let i = 0; i < 8; i++) {
    result = wrap((result ^ (rest & 0xffn)) * 0x100000001b3n)
    // C shifts the signed value: sign bits come in from the left, which eight octets never show
    rest >>= 8n
  }
  return signed(result)
}

export function hashMurmur2(value: bigint, seed: bigint): bigint {
  const multiplier = 0xc6a4a7935bd1e995n
  let k = wrap(wrap(value) * multiplier)
  k = wrap((k ^ (k >> 47n)) * multiplier)
  let result = wrap((wrap(seed) ^ wrap(multiplier * 8n) ^ k) * multiplier)
  result = wrap((result ^ (result >> 47n)) * multiplier)
  return signed(result ^ (result >> 47n))
}

/** A pseudorandom permutation of [0, size). */
export function permute(value: bigint, size: bigint, seed: bigint): bigint {
  if (size <= 0n) throw scriptFailure('permute size parameter must be greater than zero')
  if (size < 2n) return 0n
  const prng = Prng.ofSeed(seed)
  let v = wrap(value) % size
  const maskBits = BigInt(size.toString(2).length - 1)
  const mask = (1n << maskBits) - 1n
  const stir = (input: bigint, m: bigint, r: bigint): bigint => {
    const mixed = (wrap(input * m) ^ r) & mask
    return ((mixed << 1n) & mask) | (mixed >> (maskBits - 1n))
  }
  for (let round = 0; round < 6; round++) {
    const lowFactor = (prng.nextUint64() & mask) | 1n
    const lowXor = prng.nextUint64() & mask
    if (v <= mask) v = stir(v, lowFactor, lowXor)
    const highFactor = (prng.nextUint64() & mask) | 1n
    const highXor = prng.nextUint64() & mask
    const t = size - 1n - v
    if (t <= mask) v = size - 1n - stir(t, highFactor, highXor)
    v = (v + uint64Range(prng, 0n, size - 1n)) % size
  }
  return v
}
