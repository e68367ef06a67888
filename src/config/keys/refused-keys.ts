/**
 * Keys whose value, other than the default, is refused: without the effect something unsafe or wrong would happen in silence,
 * or the user could not get in at all.
 */
export const refusedKeys: ReadonlySet<string> = new Set([
  'general.cross_shard_disabled',
  'general.cutover_timeout_action',
  'general.dry_run',
  'general.load_schema',
  'general.mirror_exposure',
  'general.mirror_queue',
  'mirroring.*',
  'general.reload_schema_on_ddl',
  'multi_tenant.column',
  'rewrite.primary_key',
  'sharded_tables.lookup_query',
  'users.vault_path',
  'users.replication_mode',
  'users.replication_sharding',
  'users.cross_shard_disabled',
])

/** What else whoever writes one of them is told. */
export const refusalReasons: Readonly<Record<string, string>> = {
  'sharded_tables.lookup_query':
    'rows would be misplaced when its answer changes; use sharded_mappings',
}
