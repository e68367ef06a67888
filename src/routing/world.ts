/** What routing knows of a database: its configuration, its catalogue, and which functions the operator vouches for. */
import type { Catalog } from '../catalog/catalog.js'
import type { ShardMap } from '../sharding/shard-map.js'

export interface RoutingWorld {
  readonly map: ShardMap
  readonly catalog: Catalog | undefined
  readonly cleanFunctions: ReadonlySet<string>
  /** Absent: `cross_shard_gather` is off. */
  readonly gather?: { readonly functions: ReadonlySet<string> }
}
