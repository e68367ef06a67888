import { describe, expect, it } from 'vitest'
import { makeShardMap, type TableKind } from '../../../src/sharding/shard-map.js'
import type { ShardedTable } from '../../../src/sharding/sharded-table.js'

const table = (column: string, where: { schema?: string; name?: string } = {}): ShardedTable => ({
  ...where,
  column,
  keyType: 'bigint',
  placement: { kind: 'hash', hasher: 'postgres', buckets: 2, bucketMap: [0, 1] },
})

const config = {
  shardCount: 2,
  tables: [
    table('id', { name: 'account' }),
    table('owner', { schema: 'shop', name: 'item' }),
    table('tenant'),
    table('place', { schema: 'geo' }),
  ],
  referenceTables: [{ name: 'country' }, { schema: 'shop', name: 'rate' }],
  schemas: [{ name: 'logs', shard: 1 }],
  otherTables: { shard: 0 },
} as const

describe('D62: what the configuration says of a table', () => {
  const map = makeShardMap(config)
  const wordOf = (kind: TableKind) =>
    kind.kind === 'sharded'
      ? `by ${kind.table.column}`
      : kind.kind === 'unsharded'
        ? `shard ${kind.shard}`
        : kind.kind

  it.each([
    ['any', 'account', ['id', 'tenant'], 'by id'],
    [undefined, 'account', [], 'by id'],
    ['shop', 'item', ['owner'], 'by owner'],
    ['other', 'item', ['owner'], 'shard 0'],
    ['other', 'item', ['owner', 'tenant'], 'by tenant'],
    ['any', 'unnamed', ['a', 'tenant'], 'by tenant'],
    ['geo', 'unnamed', ['place'], 'by place'],
    ['any', 'unnamed', ['place'], 'shard 0'],
    ['any', 'country', ['tenant'], 'reference'],
    ['shop', 'rate', [], 'reference'],
    ['other', 'rate', [], 'shard 0'],
    ['logs', 'line', ['tenant'], 'shard 1'],
    ['logs', 'account', [], 'by id'],
    ['any', 'unnamed', ['a'], 'shard 0'],
  ])('%s.%s with %j: %s', (schema, name, columns, expected) => {
    const kind = map.tableOf(schema, name, (column) => columns.some((one) => one === column))
    expect(wordOf(kind)).toBe(expected)
  })

  it('others are on every shard where it says so', () => {
    const everywhere = makeShardMap({ ...config, otherTables: 'reference' })
    expect(wordOf(everywhere.tableOf('any', 'unnamed', () => false))).toBe('reference')
  })
})
