/**
 * What a program may import from pgshard: where the rows of a configuration live, and where a statement would go.
 * Kept small: everything else is inside, and changes without notice.
 */
export {
  BalancedConnection,
  type BalancedConnectionOptions,
  connectBalanced,
  type PickCause,
} from './client/balanced-connection.js'
export {
  type BalancedClient,
  BalancedPool,
  type BalancedPoolOptions,
  createBalancedPool,
  type PoolStatistics,
} from './client/balanced-pool.js'
export { type ExceptionChecker, standardChecker } from './client/exception-checker.js'
export type { HostStatistics } from './client/host-book.js'
export type { BalanceStrategy, StrategyName, StrategyView } from './client/strategy.js'
export { loadConfig } from './config/load-config.js'
export type { LoadedConfig, LoadOptions } from './config/loaded-config.js'
export { EngineError } from './errors/engine-error.js'
export type { BoundParameters, Plan, QueryPlanner } from './plan/plan.js'
export {
  type DefinedPlugin,
  definePlugin,
  PLUGIN_API_VERSION,
  type Plugin,
  type PluginCluster,
  type PluginContext,
  type PluginInput,
  type PluginParameter,
  type PluginRoute,
  type PluginStatement,
} from './plugins/plugin-api.js'
export { openQueryPlanner, type QueryPlannerOptions } from './routing/query-planner.js'
export { type KeyPlacer, makeKeyPlacer } from './sharding/key-placer.js'
export type { ShardedTable, ShardingConfig } from './sharding/sharded-table.js'
