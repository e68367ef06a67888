/**
 * A bucket map for more shards that moves as few buckets as it can.
 * Buckets multiply without moving a row: new map[b] = old map[b mod old count]; then the new shards take from those that have too many.
 */
import type { HashPlacement } from '../sharding/sharded-table.js'

export interface BucketProposal {
  readonly buckets: number
  readonly bucketMap: readonly number[]
  /** Buckets whose shard changes, of `buckets`. */
  readonly moved: number
  /** Buckets a shard has, before and after, in units of the new buckets. */
  readonly perShard: readonly {
    readonly shard: number
    readonly before: number
    readonly after: number
  }[]
  /** A map other than bucket modulo shards is one that PgDog cannot follow. */
  readonly pgdogCompatible: boolean
}

/** Recommended for each shard, so that shares differ by about one in sixty-four at most. */
const bucketsPerShard = 64
/** Largest modulus that the configuration takes. */
const maxBuckets = 65_536

/** The least multiple of the old count that gives every shard enough. */
function bucketCount(old: number, shards: number): number {
  if (old >= shards * bucketsPerShard) return old
  const wanted = old * Math.ceil((shards * bucketsPerShard) / old)
  return wanted <= maxBuckets ? wanted : old
}

function countBy(map: readonly number[], shards: number): number[] {
  const counts = new Array<number>(shards).fill(0)
  for (const shard of map) counts[shard] = (counts[shard] ?? 0) + 1
  return counts
}

/** How many buckets each shard should have: equal, some one more; those that have more keep it before others get it. */
function targets(counts: readonly number[], buckets: number): number[] {
  const least = Math.floor(buckets / counts.length)
  const byCount = counts.map((_, shard) => shard).sort((a, b) => counts[b]! - counts[a]! || a - b)
  const luckier = new Set(byCount.slice(0, buckets % counts.length))
  return counts.map((_, shard) => least + (luckier.has(shard) ? 1 : 0))
}

/** Buckets of the shards that leave, each to the one of the others that has the fewest by then. */
function withoutLast(map: readonly number[], shards: number): number[] {
  const counts = countBy(map, shards)
  return map.map((shard) => {
    if (shard < shards) return shard
    let taker = 0
    for (let other = 1; other < shards; other++) {
      if ((counts[other] as number) < (counts[taker] as number)) taker = other
    }
    counts[taker] = (counts[taker] as number) + 1
    return taker
  })
}

/** Proposes a map over `shards` shards, numbered as before with the new ones behind, or the last ones gone. */
export function proposeBuckets(
  placement: Pick<HashPlacement, 'buckets' | 'bucketMap'>,
  shards: number,
): BucketProposal {
  const now = Math.max(...placement.bucketMap) + 1
  if (shards < now) {
    const before = placement.bucketMap
    return summary(before, withoutLast(before, shards), now)
  }
  const buckets = bucketCount(placement.buckets, shards)
  const before = Array.from(
    { length: buckets },
    (_, bucket) => placement.bucketMap[bucket % placement.buckets] as number,
  )
  const counts = countBy(before, shards)
  const wanted = targets(counts, buckets)
  const left = counts.map((count, shard) => count - (wanted[shard] as number))
  let taker = 0
  const after = before.map((shard) => {
    if ((left[shard] as number) <= 0) return shard
    while (taker < shards && (left[taker] as number) >= 0) taker++
    if (taker === shards) return shard
    left[shard] = (left[shard] as number) - 1
    left[taker] = (left[taker] as number) + 1
    return taker
  })
  return summary(before, after, shards)
}

function summary(
  before: readonly number[],
  after: readonly number[],
  shards: number,
): BucketProposal {
  const [counts, final] = [countBy(before, shards), countBy(after, shards)]
  const buckets = after.length
  return {
    buckets,
    bucketMap: after,
    moved: after.filter((shard, bucket) => shard !== before[bucket]).length,
    perShard: final.map((count, shard) => ({
      shard,
      before: counts[shard] as number,
      after: count,
    })),
    pgdogCompatible: after.every((shard, bucket) => shard === bucket),
  }
}
