/** What routing knows of a database: its configuration, its catalogue, and which functions the operator vouches for. */
import type { Catalog } from '../catalog/catalog.js'
import type { QueryPlanner } from '../plan/plan.js'
import type { ShardMap } from '../sharding/shard-map.js'
import type { FunctionRoute } from './function-route.js'

export interface RoutingWorld {
  readonly map: ShardMap
  readonly catalog: Catalog | undefined
  readonly cleanFunctions: ReadonlySet<string>
  /** For statements inside others (EXPLAIN). */
  readonly planner: QueryPlanner
  /** EXPLAIN of one shard shows its route too (`expanded_explain`). */
  readonly expandsExplain: boolean
  /** Functions that the configuration gives a place. */
  readonly functionRoutes?: readonly FunctionRoute[]
  /** Absent: `cross_shard_gather` is off. */
  readonly gather?: { readonly functions: ReadonlySet<string> }
}
