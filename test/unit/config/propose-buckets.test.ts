/** Bucket maps for more shards: nothing moves that need not, and every shard gets its share. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { proposeBuckets } from '../../../src/config/propose-buckets.js'

const identity = (buckets: number, shards: number) => ({
  buckets,
  bucketMap: Array.from({ length: buckets }, (_, bucket) => bucket % shards),
})

describe('proposeBuckets', () => {
  test('2 to 3 shards moves a third', () => {
    const proposal = proposeBuckets(identity(2, 2), 3)
    expect(proposal.buckets).toBe(192)
    expect(proposal.moved).toBe(64)
    expect(proposal.perShard).toEqual([
      { shard: 0, before: 96, after: 64 },
      { shard: 1, before: 96, after: 64 },
      { shard: 2, before: 0, after: 64 },
    ])
    expect(proposal.pgdogCompatible).toBe(false)
  })

  test('holds for any map', () => {
    const maps = fc
      .tuple(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 12 }))
      .chain(([shards, more]) =>
        fc.record({
          shards: fc.constant(shards),
          wanted: fc.constant(shards + more),
          bucketMap: fc.array(fc.integer({ min: 0, max: shards - 1 }), {
            minLength: shards,
            maxLength: 300,
          }),
        }),
      )
    fc.assert(
      fc.property(maps, ({ wanted, bucketMap }) => {
        const old = { buckets: bucketMap.length, bucketMap }
        const proposal = proposeBuckets(old, wanted)
        expect(proposal.buckets % old.buckets).toBe(0)
        expect(proposal.bucketMap).toHaveLength(proposal.buckets)
        const counts = proposal.perShard.map(({ after }) => after)
        expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1)
        // No map with equal shares moves fewer: what a shard has too much of must go, nothing else.
        const surplus = proposal.perShard.map(({ before, after }) => Math.max(0, before - after))
        expect(proposal.moved).toBe(surplus.reduce((sum, one) => sum + one, 0))
        proposal.bucketMap.forEach((shard, bucket) => {
          const before = bucketMap[bucket % old.buckets]
          if (shard !== before)
            expect(proposal.perShard[shard]?.before).toBeLessThan(counts[shard] as number)
        })
      }),
      { seed: 7 },
    )
  })
})
