/** What the configuration says of where rows live. Plain frozen values; `shard-map.ts` makes them work. */
import type { KeyType } from '../datum/key-type.js'
import type { ShardId } from './shard-set.js'

export interface HashPlacement {
  readonly kind: 'hash'
  /** `postgres` is PARTITION BY HASH's own function; `sha1` is PgDog's. */
  readonly hasher: 'postgres' | 'sha1'
  /** Modulus of the hash; the shard count unless configured. */
  readonly buckets: number
  /** Bucket number → shard; its length is `buckets`. */
  readonly bucketMap: readonly ShardId[]
}

export interface ListPlacement {
  readonly kind: 'list'
  /** Values in the text form of the key type; null stands for NULL. */
  readonly entries: readonly {
    readonly values: readonly (string | null)[]
    readonly shard: ShardId
  }[]
  /** For values that are not listed. */
  readonly ranges?: RangePlacement['entries']
  readonly fallback?: ShardId
}

export interface RangePlacement {
  readonly kind: 'range'
  /** Start inclusive, end exclusive, both in text form; absent is open. */
  readonly entries: readonly {
    readonly start?: string
    readonly end?: string
    readonly shard: ShardId
  }[]
  readonly fallback?: ShardId
}

/** Of vectors: the shard of the nearest centre by L2, of several the first. */
export interface CentroidPlacement {
  readonly kind: 'centroids'
  /** All of one length. */
  readonly centroids: readonly (readonly number[])[]
  /** Shard of each. */
  readonly shards: readonly ShardId[]
}

export type Placement = HashPlacement | ListPlacement | RangePlacement | CentroidPlacement

export interface ShardedTable {
  /** Absent: in any schema. */
  readonly schema?: string
  /** Absent: every table that has the column (PgDog's rule). */
  readonly name?: string
  readonly column: string
  readonly keyType: KeyType
  readonly placement: Placement
  /** Constraints that the operator accepts as holding per shard only. */
  readonly localConstraints?: readonly string[]
}

/** The sharding of one database. */
export interface ShardingConfig {
  readonly shardCount: number
  readonly tables: readonly ShardedTable[]
  /** Reference tables: whole on every shard. */
  readonly referenceTables: readonly { readonly schema?: string; readonly name: string }[]
  /** Schema name → shard. */
  readonly schemas: readonly { readonly name: string; readonly shard: ShardId }[]
  /** Where a table lives that is neither sharded nor reference: `reference` is PgDog's rule (every other table is omnisharded). */
  readonly otherTables: 'reference' | { readonly shard: ShardId }
}
