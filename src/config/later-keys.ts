/** Keys that are read and checked but do nothing yet; whoever writes one is told. A line goes when its effect comes. */
export const laterKeys: ReadonlySet<string> = new Set([
  'general.system_catalogs',
  'general.canonicalize_type_information',
  'general.sharding_lookup_cache_size',
  'general.sharding_lookup_timeout',
  'general.unique_id_min',
  'general.unique_id_function',
  'general.resharding_copy_format',
  'general.resharding_parallel_copies',
  'general.resharding_copy_retry_max_attempts',
  'general.resharding_copy_retry_min_delay',
  'general.resharding_replication_retry_max_attempts',
  'general.resharding_replication_retry_min_delay',
  'general.cutover_traffic_stop_threshold',
  'general.cutover_replication_lag_threshold',
  'general.cutover_timeout',
  'general.cutover_timeout_action',
  'general.cutover_save_config',
  'general.prepared_statements',
  'general.dry_run',
  'replication.*',
])

/**
 * The same, but a value other than the default is refused: without the effect something unsafe or wrong would happen in silence,
 * or the user could not get in at all.
 */
export const refusedKeys: ReadonlySet<string> = new Set([
  'general.cross_shard_disabled',
  'general.load_schema',
  'general.mirror_exposure',
  'general.mirror_queue',
  'mirroring.*',
  'general.reload_schema_on_ddl',
  'multi_tenant.column',
  'rewrite.primary_key',
  'users.vault_path',
  'users.replication_mode',
  'users.replication_sharding',
  'users.cross_shard_disabled',
])
