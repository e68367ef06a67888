/** Keys that are read and checked but do nothing yet; whoever writes one is told. A line goes when its effect comes. */
export const laterKeys: ReadonlySet<string> = new Set([
  'general.mirror_queue',
  'general.mirror_exposure',
  'mirroring.*',
  'otel.*',
  'ha_groups.*',
])

/** The same, but the configuration is refused: without the effect something unsafe or wrong would happen in silence. */
export const refusedKeys: ReadonlySet<string> = new Set([
  'general.hba',
  'multi_tenant.column',
  'vault.*',
  'function_routes.*',
  'users.auth_query',
  'users.vault_path',
  'users.replication_sharding',
])
