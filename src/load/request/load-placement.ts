/** Where the rows of a load go. */
import type { KeyPlacer } from '../../sharding/key-placer.js'

/** Where rows go: by key, to every shard, or all to one. */
export type LoadPlacement =
  | { readonly kind: 'sharded'; readonly placer: KeyPlacer }
  | { readonly kind: 'reference' }
  | { readonly kind: 'unsharded'; readonly shard: number }
