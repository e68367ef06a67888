/** Sides that have shards in common: which shards stand for a side, and what is refused. */
import { expect, test } from 'vitest'
import { checkBuckets, checkSharedSides } from '../../../../src/reshard/buckets/bucket-checks.js'
import { bucketMoves } from '../../../../src/reshard/buckets/bucket-moves.js'
import { movableSidesOf, narrowed } from '../../../../src/reshard/buckets/bucket-sides.js'
import type { MoveConfig } from '../../../../src/reshard/configured-side.js'
import { planMove } from '../../../../src/reshard/move-table.js'
import type { SourceTable } from '../../../../src/reshard/preflight/source-table.js'
import type { ReshardSide } from '../../../../src/reshard/side.js'

const side = (
  name: string,
  places: readonly string[],
  bucketMap: readonly number[],
): ReshardSide => ({
  name,
  shards: places.map((database) => ({ host: 'h', port: 1, database, user: 'u' })),
  sharding: {
    shardCount: places.length,
    tables: [
      {
        ...{ name: 'acct', column: 'tenant', keyType: 'bigint' },
        placement: { kind: 'hash', hasher: 'postgres', buckets: bucketMap.length, bucketMap },
      },
    ],
    ...{ referenceTables: [], schemas: [], otherTables: 'reference' },
  },
})

const two = side('shop', ['a', 'b'], [0, 1, 0, 1, 0, 1])
const three = side('shop_new', ['a', 'b', 'c'], [0, 1, 0, 1, 2, 2])
const placesOf = ({ shards }: ReshardSide): string[] => shards.map(({ database }) => database)

/** A table by tenant, as the catalog tells of it. */
const acct = {
  ...{ schema: 'public', name: 'acct', kind: 'r', ancestors: [], identityColumns: ['tenant'] },
  columns: [{ name: 'tenant', isGenerated: false, isBinarySafe: true }],
  ...{ bytes: 600, rowEstimate: 300 },
} as unknown as SourceTable

test('O1: the shards that one side has alone stand for it, all other keys are placed behind them', () => {
  const { from, to } = narrowed({ from: two, to: three })
  expect(from).toBe(two)
  expect(placesOf(to)).toEqual(['c'])
  expect(to.whole).toBe(three)
  expect(to.sharding.tables[0]!.placement).toMatchObject({ bucketMap: [1, 1, 1, 1, 0, 0] })
  // After the names have changed.
  const after = narrowed({ from: three, to: two })
  expect(placesOf(after.from)).toEqual(['c'])
  expect(after.from.sharding.tables[0]!.placement).toMatchObject({ bucketMap: [1, 1, 1, 1, 0, 0] })
  expect(after.to).toEqual({ ...two, whole: two, isStaged: true })
})

test('O1: sides without shards in common, or each with some alone, stay as they are', () => {
  const apart = { from: two, to: side('x', ['c', 'd'], [0, 1]) }
  expect(narrowed(apart)).toEqual(apart)
  const crossed = { from: two, to: side('x', ['b', 'c'], [0, 1]) }
  expect(narrowed(crossed)).toEqual(crossed)
})

test('O1: shards keep their numbers: the last ones come or go', () => {
  const back = narrowed({ from: three, to: two })
  expect(checkSharedSides(back.from, back.to)).toEqual([])
  const middle = narrowed({ from: three, to: side('x', ['a', 'c'], [0, 1]) })
  expect(checkSharedSides(middle.from, middle.to)[0]).toMatchObject({
    what: expect.stringContaining('is shard 1 of "shop_new" and none of "x"'),
    mend: expect.stringContaining('the highest numbers'),
  })
  const turned = narrowed({ from: two, to: side('x', ['b', 'a', 'c'], [0, 1, 2]) })
  expect(checkSharedSides(turned.from, turned.to)[0]?.what).toContain('shard 0')
  const right = narrowed({ from: two, to: three })
  expect(checkSharedSides(right.from, right.to)).toEqual([])
})

test('O1: the buckets that move are named with both shards and their share of the rows', () => {
  const { from, to } = narrowed({ from: two, to: three })
  const plan = planMove(from, to, [acct])
  expect(plan).toMatchObject({ targetCount: 1, placeCount: 2 })
  expect(plan.tables[0]).toMatchObject({ bytes: 200, rowEstimate: 100 })
  expect(bucketMoves(plan, { from, to })).toEqual([
    { table: 'public.acct', from: 0, to: 2, buckets: [4], of: 6, estimatedRows: 100 },
    { table: 'public.acct', from: 1, to: 2, buckets: [5], of: 6, estimatedRows: 100 },
  ])
})

test('O1: shards that leave give their buckets, and rows come to tables beside those that clients see', () => {
  const { from, to } = narrowed({ from: three, to: two })
  const plan = planMove(from, to, [acct])
  expect(plan).toMatchObject({ sourceCount: 1, targetCount: 2, placeCount: 3, isStaged: true })
  const [table] = plan.tables
  expect(table).toMatchObject({ bytes: 600, rowEstimate: 300, sourceShards: [0] })
  expect(table?.targetName).toMatch(/^pgshard\.incoming_[0-9a-f]{32}$/)
  expect(table?.moving).toContain('IN (4, 5)')
  expect(bucketMoves(plan, { from, to })).toEqual([
    { table: 'public.acct', from: 2, to: 0, buckets: [4], of: 6, estimatedRows: 150 },
    { table: 'public.acct', from: 2, to: 1, buckets: [5], of: 6, estimatedRows: 150 },
  ])
})

test('O1: a bucket that would go between shards that stay refuses the removal, and so does a table that is on one shard', () => {
  const crossed = narrowed({ from: three, to: side('x', ['a', 'b'], [0, 0, 0, 1, 0, 1]) })
  const found = checkBuckets(crossed.from, crossed.to, { tables: [acct] }, [])
  expect(found.map(({ what }) => what)).toEqual([
    'bucket 1 would go from shard 1 to shard 0, and both stay',
  ])
  const right = narrowed({ from: three, to: two })
  expect(checkBuckets(right.from, right.to, { tables: [acct] }, [])).toEqual([])
  const alone = (one: ReshardSide): ReshardSide => ({
    ...one,
    sharding: { ...one.sharding, tables: [], otherTables: { shard: 0 } },
  })
  const single = narrowed({ from: alone(three), to: alone(two) })
  const refused = checkBuckets(single.from, single.to, { tables: [acct] }, [])
  expect(refused[0]?.what).toContain('is not placed by buckets')
})

test('O1: shards with standbys, and a third database with the same shards, are refused', () => {
  const database = (name: string, places: readonly string[][]) => ({
    name,
    shards: places.map((hosts) => ({
      hosts: hosts.map((one) => ({ host: 'h', port: 1, database: one, role: 'primary' })),
    })),
  })
  const config = (databases: readonly unknown[]): MoveConfig =>
    ({
      databases,
      sharding: new Map(['shop', 'more', 'old'].map((name) => [name, two.sharding])),
      users: [{ name: 'u', databases: ['shop', 'more', 'old'], passwords: [], schemaAdmin: false }],
    }) as unknown as MoveConfig
  const more = database('more', [['a'], ['b']])
  const code = (databases: readonly unknown[]): unknown => {
    try {
      return movableSidesOf(config(databases), 'shop', 'more').to.shards.length
    } catch (error) {
      return (error as { code: string }).code
    }
  }
  expect(code([database('shop', [['a']]), more])).toBe(1)
  expect(code([database('shop', [['a', 'a2']]), more])).toBe('RESHARD_BUCKET_REPLICAS')
  const old = database('old', [['a']])
  expect(code([database('shop', [['a']]), more, old])).toBe('RESHARD_SHARED_BY')
})
