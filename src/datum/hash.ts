/**
 * PostgreSQL's partition hash: lookup3 by Bob Jenkins as PostgreSQL runs it (`hash_bytes_extended`, `hash_bytes_uint32_extended`
 * in src/common/hashfn.c), seeded with HASH_PARTITION_SEED and combined as `compute_partition_hash_value` does for one column.
 * A 64-bit result is two 32-bit words in `partitionHash`: a result through module variables would be boxed (measured 75 ns).
 * Never uses BigInt.
 */

/** `HASH_PARTITION_SEED` in src/include/catalog/partition.h, as two words. */
const seedHigh = 0x7a5b2236
const seedLow = 0x7996dcfd
/** The constant of `hash_combine64` in src/include/common/hashfn.h, as two words. */
const combineHigh = 0x49a0f4dd
const combineLow = 0x15e5a8e3
/** 0x9e3779b9 + 3923095: what lookup3 starts from in PostgreSQL, before the length is added. */
const start = (0x9e3779b9 + 3923095) | 0

/** [high, low] of the last partition hash; overwritten by the next call of any function here. */
export const partitionHash = new Int32Array(2)

const state = new Int32Array(3)

const rotate = (x: number, by: number): number => (x << by) | (x >>> (32 - by))

/** Jenkins' mix: reversible, spreads the three words before more input is added. */
function mix(): void {
  let a = state[0]!
  let b = state[1]!
  let c = state[2]!
  a = ((a - c) | 0) ^ rotate(c, 4)
  c = (c + b) | 0
  b = ((b - a) | 0) ^ rotate(a, 6)
  a = (a + c) | 0
  c = ((c - b) | 0) ^ rotate(b, 8)
  b = (b + a) | 0
  a = ((a - c) | 0) ^ rotate(c, 16)
  c = (c + b) | 0
  b = ((b - a) | 0) ^ rotate(a, 19)
  a = (a + c) | 0
  c = ((c - b) | 0) ^ rotate(b, 4)
  b = (b + a) | 0
  state[0] = a
  state[1] = b
  state[2] = c
}

/** Jenkins' final, then hash_combine64(0, hash): an addition of the constant. */
function finish(a: number, b: number, c: number): void {
  c = ((c ^ b) - rotate(b, 14)) | 0
  a = ((a ^ c) - rotate(c, 11)) | 0
  b = ((b ^ a) - rotate(a, 25)) | 0
  c = ((c ^ b) - rotate(b, 16)) | 0
  a = ((a ^ c) - rotate(c, 4)) | 0
  b = ((b ^ a) - rotate(a, 14)) | 0
  c = ((c ^ b) - rotate(b, 24)) | 0
  combine(b, c)
}

function combine(high: number, low: number): void {
  const sum = (low >>> 0) + combineLow
  partitionHash[1] = sum
  partitionHash[0] = high + combineHigh + (sum > 0xffffffff ? 1 : 0)
}

/** The state after seed and first mix for an input of `length` bytes. */
function seeded(length: number): void {
  const first = (start + length) | 0
  state[0] = first + seedHigh
  state[1] = first + seedLow
  state[2] = first
  mix()
}

seeded(4)
const wordA = state[0]!
const wordB = state[1]!
const wordC = state[2]!
/** For who hashes integers elsewhere: the state to which one is added, and the constant of the combination (high, low). */
export const keyWords = [wordA, wordB, wordC] as const
export const combineWords = [combineHigh, combineLow] as const

/** integer, smallint, date, boolean: `hash_uint32_extended`. */
export function hashInt32(value: number): void {
  finish((wordA + value) | 0, wordB, wordC)
}

/** bigint, timestamp, timestamptz: `hashint8extended`, which agrees with the smaller integers where they overlap. */
export function hashInt64(high: number, low: number): void {
  finish((wordA + (low ^ (high < 0 ? ~high : high))) | 0, wordB, wordC)
}

const tail = (bytes: Uint8Array, at: number, count: number): number => {
  let word = 0
  for (let i = 0; i < count; i++) word |= bytes[at + i]! << (8 * i)
  return word
}

/** text, varchar, uuid, bpchar without its blanks: `hash_bytes_extended` of bytes[from, to). */
export function hashBytes(bytes: Uint8Array, from: number, to: number): void {
  absorb(bytes, from, to)
  finish(state[0]!, state[1]!, state[2]!)
}

function absorb(bytes: Uint8Array, from: number, to: number): void {
  seeded(to - from)
  let at = from
  for (; to - at >= 12; at += 12) {
    state[0] = state[0]! + tail(bytes, at, 4)
    state[1] = state[1]! + tail(bytes, at + 4, 4)
    state[2] = state[2]! + tail(bytes, at + 8, 4)
    mix()
  }
  const left = to - at
  state[0] = state[0]! + tail(bytes, at, Math.min(left, 4))
  if (left > 4) state[1] = state[1]! + tail(bytes, at + 4, Math.min(left - 4, 4))
  // The lowest byte of the third word is reserved for the length in lookup3.
  if (left > 8) state[2] = state[2]! + (tail(bytes, at + 8, left - 8) << 8)
}

/**
 * numeric: `hash_numeric_extended`. `digits` are base 10,000 without leading and trailing zeros, the first with `weight`.
 * No digits is zero; the sign is not part of the hash.
 */
export function hashNumeric(digits: ArrayLike<number>, weight: number): void {
  if (digits.length === 0) {
    combine(seedHigh, seedLow - 1)
    return
  }
  const bytes = new Uint8Array(digits.length * 2)
  for (let i = 0; i < digits.length; i++) {
    bytes[i * 2] = digits[i]! & 0xff
    bytes[i * 2 + 1] = digits[i]! >> 8
  }
  hashBytes(bytes, 0, bytes.length)
  // Take the combine constant off again: the weight is folded in before it.
  const low = ((partitionHash[1]! >>> 0) - combineLow) | 0
  const borrow = partitionHash[1]! >>> 0 < combineLow ? 1 : 0
  const high = (partitionHash[0]! - combineHigh - borrow) | 0
  combine(high ^ (weight < 0 ? -1 : 0), low ^ weight)
}

/** numeric NaN and the infinities: the seed itself. */
export function hashSpecialNumeric(): void {
  combine(seedHigh, seedLow)
}

/** The unsigned 64-bit value of `partitionHash` modulo `modulus`, which must be below 2^21. */
export function hashModulo(modulus: number): number {
  if ((modulus & (modulus - 1)) === 0) return partitionHash[1]! & (modulus - 1)
  if (modulus < 0x8000) return smallModulo(modulus)
  const high = (partitionHash[0]! >>> 0) % modulus
  return (high * 4294967296 + (partitionHash[1]! >>> 0)) % modulus
}

/** Below 2^15 all products are 32-bit integers, whose remainder costs a fifth of a double's. */
function smallModulo(modulus: number): number {
  const wrap = ((0xffffffff % modulus) + 1) % modulus
  const high = (partitionHash[0]! >>> 0) % modulus
  const low = (partitionHash[1]! >>> 0) % modulus
  return (high * wrap + low) % modulus
}
