/** What the configuration says to the planner of a database, beyond its sharding. */
import type { FunctionRouteConfig, LoadedConfig } from '../config/loaded-config.js'
import type { FunctionRoute } from '../routing/function-route.js'
import type { QueryPlannerOptions } from '../routing/query-planner.js'

export function plannerOptions(
  { general, functionRoutes }: LoadedConfig,
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
function functionRoute({
  function: written,
  database: _,
  ...where
}: FunctionRouteConfig): FunctionRoute {
  const dot = written.indexOf('.')
  return dot === -1
    ? { name: written, ...where }
    : { schema: written.slice(0, dot), name: written.slice(dot + 1), ...where }
}
