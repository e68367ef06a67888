/** What plugins are told of a database: its shards, their hosts, its sharded tables. */
import type { LoadedConfig } from '../../config/loaded-config.js'
import type { Surroundings } from '../../plugins/plugin-input.js'
import { deepFreeze } from '../../plugins/plugin-input.js'
import type { ShardingConfig } from '../../sharding/sharded-table.js'

export function pluginSurroundings(
  config: LoadedConfig,
  database: string,
  sharding: ShardingConfig,
): Surroundings {
  const topology = config.databases.find(({ name }) => name === database)
  const shards = (topology?.shards ?? []).map(({ hosts }, shard) => ({
    shard,
    hosts: hosts.map(({ host, port, role }) => ({ host, port, role })),
  }))
  const shardedTables = sharding.tables.map(({ schema, name, column, keyType }) => ({
    ...(schema === undefined ? {} : { schema }),
    ...(name === undefined ? {} : { name }),
    column,
    keyType,
  }))
  return deepFreeze({
    database,
    cluster: { shardCount: sharding.shardCount, shards, shardedTables },
  })
}
