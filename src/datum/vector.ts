/**
 * Vectors of pgvector in text and binary form, and which of given centres is nearest. Follows `vector_in` and `vector_recv`:
 * elements are float4, at most 16,000 of them, none of them NaN or infinite.
 */

const MAX_DIMENSIONS = 16_000

const element = /^[ \t-\r]*([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)[ \t-\r]*$/i
/** What only `strtof` knows. */
const unusual = /^[ \t-\r]*[+-]?0x/i

export type VectorStatus = 'syntax' | 'range' | 'unclear'

const scratch = new DataView(new ArrayBuffer(8))

/** A double that lies exactly between two floats: digits behind its own may decide the rounding. */
function isMidpoint(value: number): boolean {
  if (value === Math.fround(value)) return false
  scratch.setFloat64(0, value)
  return (scratch.getUint32(4) & 0x1fffffff) === 0x10000000
}

/** The float4 that the server reads; the double in between rounds twice, which shows only beside a midpoint. */
function float4(text: string): number | VectorStatus {
  const digits = element.exec(text)?.[1]
  if (digits === undefined) return unusual.test(text) ? 'unclear' : 'syntax'
  const value = Number(digits)
  const rounded = Math.fround(value)
  if (!Number.isFinite(rounded)) return 'range'
  return digits.length > 17 && isMidpoint(value) ? 'unclear' : rounded
}

export function readVectorText(text: string): Float32Array | VectorStatus {
  const body = /^[ \t-\r]*\[([\s\S]*)\][ \t-\r]*$/.exec(text)?.[1]
  if (body === undefined) return 'syntax'
  const parts = body.split(',')
  if (parts.length > MAX_DIMENSIONS) return 'range'
  const values = new Float32Array(parts.length)
  for (let i = 0; i < parts.length; i++) {
    const value = float4(parts[i]!)
    if (typeof value === 'string') return value
    values[i] = value
  }
  return values
}

/** Int16 dimensions · Int16 unused · float4… */
export function readVectorBinary(
  bytes: Buffer,
  from: number,
  to: number,
): Float32Array | undefined {
  if (to - from < 4) return undefined
  const count = bytes.readInt16BE(from)
  if (count < 1 || to - from !== 4 + 4 * count) return undefined
  const values = new Float32Array(count)
  for (let i = 0; i < count; i++) {
    const value = bytes.readFloatBE(from + 4 + 4 * i)
    if (!Number.isFinite(value)) return undefined
    values[i] = value
  }
  return values
}

/** Centres behind one another in one typed array, which the loop of `nearest` reads at the speed of memory. */
export interface Centroids {
  readonly dimensions: number
  readonly count: number
  readonly values: Float64Array
}

export function packCentroids(centroids: readonly (readonly number[])[]): Centroids {
  const dimensions = centroids[0]?.length ?? 0
  return { dimensions, count: centroids.length, values: Float64Array.from(centroids.flat()) }
}

/** Number of the centre nearest to `vector` by L2; of several the lowest. */
export function nearest(vector: Float32Array, centroids: Centroids): number {
  const { dimensions, count, values } = centroids
  let best = 0
  let least = Number.POSITIVE_INFINITY
  for (let i = 0; i < count; i++) {
    let sum = 0
    const start = i * dimensions
    for (let d = 0; d < dimensions; d++) {
      const apart = vector[d]! - values[start + d]!
      sum += apart * apart
    }
    if (sum < least) {
      least = sum
      best = i
    }
  }
  return best
}
