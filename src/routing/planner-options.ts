/** What the configuration says to the planner of a database, beyond its sharding. */
import type { FunctionRoute } from './function-route.js'
import type { QueryPlannerOptions } from './query-planner.js'

interface WrittenRoute extends Omit<FunctionRoute, 'name' | 'schema'> {
  readonly database: string
  /** With or without schema. */
  readonly function: string
}

/** The part of a loaded configuration that planners look at. */
export interface PlannerConfig {
  readonly general: {
    readonly assumeCleanFunctions: readonly string[]
    readonly expandedExplain: boolean
    readonly crossShardGather: string
    readonly gatherFunctions: readonly string[]
    readonly queryCacheLimit: number
  }
  readonly functionRoutes: readonly WrittenRoute[]
}

export function plannerOptions(
  { general, functionRoutes }: PlannerConfig,
  database: string,
): Omit<QueryPlannerOptions, 'sharding' | 'catalog'> {
  const routes = functionRoutes.filter((route) => route.database === database).map(functionRoute)
  return {
    assumeCleanFunctions: general.assumeCleanFunctions,
    expandedExplain: general.expandedExplain,
    gathers: general.crossShardGather === 'on',
    gatherFunctions: general.gatherFunctions,
    cacheSize: general.queryCacheLimit,
    ...(routes.length === 0 ? {} : { functionRoutes: routes }),
  }
}

/** A name may have its schema before it: `billing.charge`. */
function functionRoute({ function: written, database: _, ...where }: WrittenRoute): FunctionRoute {
  const dot = written.indexOf('.')
  return dot === -1
    ? { name: written, ...where }
    : { schema: written.slice(0, dot), name: written.slice(dot + 1), ...where }
}
