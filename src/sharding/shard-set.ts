/** Which shards: the noun in which SQL, COPY and replication meet. Immutable. */

/** Number of a shard, from 0. */
export type ShardId = number

export type ShardSet =
  | { readonly kind: 'all' }
  /** Sorted and distinct; empty means that no shard can hold a matching row. */
  | { readonly kind: 'some'; readonly shards: readonly ShardId[] }

export const allShards: ShardSet = { kind: 'all' }
export const noShard: ShardSet = { kind: 'some', shards: [] }

const singles: ShardSet[] = []

export function oneShard(shard: ShardId): ShardSet {
  const known = singles[shard]
  if (known) return known
  const set: ShardSet = { kind: 'some', shards: [shard] }
  singles[shard] = set
  return set
}

export function someShards(shards: Iterable<ShardId>): ShardSet {
  return { kind: 'some', shards: [...new Set(shards)].sort((a, b) => a - b) }
}

/** What both sets hold: AND narrows. */
export function intersectShards(a: ShardSet, b: ShardSet): ShardSet {
  if (a.kind === 'all') return b
  if (b.kind === 'all') return a
  return { kind: 'some', shards: a.shards.filter((shard) => b.shards.includes(shard)) }
}

/** What either set holds: OR unites. */
export function uniteShards(a: ShardSet, b: ShardSet): ShardSet {
  if (a.kind === 'all' || b.kind === 'all') return allShards
  return someShards([...a.shards, ...b.shards])
}

/** The shard numbers of a set in a database of `shardCount` shards. */
export function listShards(set: ShardSet, shardCount: number): readonly ShardId[] {
  if (set.kind === 'some') return set.shards
  return Array.from({ length: shardCount }, (_, shard) => shard)
}
