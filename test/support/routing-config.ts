/** The database of `fixtures/sql/routing`: four shards. */
import type { ShardingConfig } from '../../src/sharding/sharded-table.js'

export const hashOfFour = {
  kind: 'hash',
  hasher: 'postgres',
  buckets: 4,
  bucketMap: [0, 1, 2, 3],
} as const

export const routingConfig: ShardingConfig = {
  shardCount: 4,
  tables: [
    { name: 'orders', column: 'tenant', keyType: 'bigint', placement: hashOfFour },
    { name: 'items', column: 'tenant', keyType: 'bigint', placement: hashOfFour },
    { name: 'users', column: 'name', keyType: 'text', placement: hashOfFour },
    {
      name: 'logs',
      column: 'at',
      keyType: 'bigint',
      placement: {
        kind: 'range',
        entries: [
          { end: '10', shard: 0 },
          { start: '10', end: '20', shard: 1 },
          { start: '20', shard: 2 },
        ],
      },
    },
    {
      name: 'lists',
      column: 'k',
      keyType: 'text',
      placement: { kind: 'list', entries: [{ values: ['a'], shard: 1 }] },
    },
  ],
  referenceTables: [{ name: 'ref' }],
  schemas: [],
  otherTables: { shard: 3 },
}
