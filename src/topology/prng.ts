/**
 * PostgreSQL's pseudo-random generator: xoroshiro128**, seeded through splitmix64, with its unbiased range draw.
 * Works on 32-bit halves, since 64-bit BigInt arithmetic costs a hundred times as much. Not for secrets.
 * Source followed: src/common/pg_prng.c.
 */

/** A source of 64-bit draws; tests hand in scripted ones. */
export interface Uint64Source {
  /** The next draw as an unsigned 64-bit integer. */
  nextUint64(): bigint
}

const mask64 = 0xffff_ffff_ffff_ffffn
const two32 = 4294967296

function splitmix64(state: bigint): { state: bigint; value: bigint } {
  const next = (state + 0x9e3779b97f4a7c15n) & mask64
  let value = ((next ^ (next >> 30n)) * 0xbf58476d1ce4e5b9n) & mask64
  value = ((value ^ (value >> 27n)) * 0x94d049bb133111ebn) & mask64
  return { state: next, value: value ^ (value >> 31n) }
}

export class Prng implements Uint64Source {
  #s0High = 0
  #s0Low = 0
  #s1High = 0
  #s1Low = 0
  /** Halves of the last draw. */
  #high = 0
  #low = 0

  /** The state itself; for known-answer tests and for continuing a stream. */
  static ofState(s0: bigint, s1: bigint): Prng {
    const prng = new Prng()
    prng.#setState(s0, s1)
    return prng
  }

  /** As pg_prng_seed. */
  static ofSeed(seed: bigint): Prng {
    const first = splitmix64(BigInt.asUintN(64, seed))
    const second = splitmix64(first.state)
    const prng = new Prng()
    prng.#setState(first.value, second.value)
    return prng
  }

  /** Another generator that goes on with the same draws. */
  clone(): Prng {
    const copy = new Prng()
    copy.#s0High = this.#s0High
    copy.#s0Low = this.#s0Low
    copy.#s1High = this.#s1High
    copy.#s1Low = this.#s1Low
    return copy
  }

  #setState(s0: bigint, s1: bigint): void {
    const [a, b] = s0 === 0n && s1 === 0n ? [0x5851f42d4c957f2dn, 0x14057b7ef767814fn] : [s0, s1]
    this.#s0High = Number(a >> 32n)
    this.#s0Low = Number(a & 0xffff_ffffn)
    this.#s1High = Number(b >> 32n)
    this.#s1Low = Number(b & 0xffff_ffffn)
  }

  /** rotl(s0 × 5, 7) × 9, then the state steps. */
  #advance(): void {
    const high = this.#s0High
    const low = this.#s0Low
    const low5 = low * 5
    const m5 = low5 >>> 0
    const h5 = (high * 5 + Math.floor(low5 / two32)) >>> 0
    const rotatedHigh = ((h5 << 7) | (m5 >>> 25)) >>> 0
    const rotatedLow = ((m5 << 7) | (h5 >>> 25)) >>> 0
    const low9 = rotatedLow * 9
    this.#low = low9 >>> 0
    this.#high = (rotatedHigh * 9 + Math.floor(low9 / two32)) >>> 0
    const xHigh = (this.#s1High ^ high) >>> 0
    const xLow = (this.#s1Low ^ low) >>> 0
    this.#s0High = (((high << 24) | (low >>> 8)) ^ xHigh ^ ((xHigh << 16) | (xLow >>> 16))) >>> 0
    this.#s0Low = (((low << 24) | (high >>> 8)) ^ xLow ^ (xLow << 16)) >>> 0
    // rotl by 37 is a swap of the halves and a rotl by 5
    this.#s1High = ((xLow << 5) | (xHigh >>> 27)) >>> 0
    this.#s1Low = ((xHigh << 5) | (xLow >>> 27)) >>> 0
  }

  nextUint64(): bigint {
    this.#advance()
    return (BigInt(this.#high) << 32n) | BigInt(this.#low)
  }

  /** The top `bits` of the next draw, at most 32. */
  nextTop(bits: number): number {
    this.#advance()
    return this.#high >>> (32 - bits)
  }

  /** Uniform in [0, 1), 52 bits, as pg_prng_double. */
  nextDouble(): number {
    this.#advance()
    return (this.#high * 1048576 + (this.#low >>> 12)) / 4503599627370496
  }
}

const bitLength = (value: bigint): number => value.toString(2).length

/** Uniform in [min, max], unbiased, as pg_prng_uint64_range; an empty range gives `min`. */
export function uint64Range(source: Uint64Source, min: bigint, max: bigint): bigint {
  if (max <= min) return min
  const range = max - min
  if (range <= 0xffff_ffffn && source instanceof Prng) return min + small(source, Number(range))
  const shift = BigInt(64 - bitLength(range))
  for (;;) {
    const value = source.nextUint64() >> shift
    if (value <= range) return min + value
  }
}

/** The same draw without 64-bit arithmetic: of a small range only the upper half counts. */
function small(prng: Prng, range: number): bigint {
  const bits = 32 - Math.clz32(range)
  for (;;) {
    const value = prng.nextTop(bits)
    if (value <= range) return BigInt(value)
  }
}

/** In place, inside-out Fisher–Yates as libpq's: j is drawn from [0, i] and may equal i. */
export function shuffleInPlace<T>(items: T[], source: Uint64Source): void {
  for (let i = 1; i < items.length; i++) {
    const j = Number(uint64Range(source, 0n, BigInt(i)))
    const held = items[j] as T
    items[j] = items[i] as T
    items[i] = held
  }
}
