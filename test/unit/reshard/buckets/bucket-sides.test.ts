/** Sides that have shards in common: which shards stand for a side, and what is refused. */
import { expect, test } from 'vitest'
import { checkSharedSides } from '../../../../src/reshard/buckets/bucket-checks.js'
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

test('O1: the shards that one side has alone stand for it, all other keys are placed behind them', () => {
  const { from, to } = narrowed({ from: two, to: three })
  expect(from).toBe(two)
  expect(placesOf(to)).toEqual(['c'])
  expect(to.whole).toBe(three)
  expect(to.sharding.tables[0]!.placement).toMatchObject({ bucketMap: [1, 1, 1, 1, 0, 0] })
  // After the names have changed.
  const after = narrowed({ from: three, to: two })
  expect(placesOf(after.from)).toEqual(['c'])
  expect(after.to).toBe(two)
})

test('O1: sides without shards in common, or each with some alone, stay as they are', () => {
  const apart = { from: two, to: side('x', ['c', 'd'], [0, 1]) }
  expect(narrowed(apart)).toEqual(apart)
  const crossed = { from: two, to: side('x', ['b', 'c'], [0, 1]) }
  expect(narrowed(crossed)).toEqual(crossed)
})

test('O1: shards are not taken away, and keep their numbers', () => {
  const back = narrowed({ from: three, to: two })
  expect(checkSharedSides(back.from, back.to)[0]?.what).toContain('not taken away')
  const turned = narrowed({ from: two, to: side('x', ['b', 'a', 'c'], [0, 1, 2]) })
  expect(checkSharedSides(turned.from, turned.to)[0]?.what).toContain('shard 0')
  const right = narrowed({ from: two, to: three })
  expect(checkSharedSides(right.from, right.to)).toEqual([])
})

test('O1: the buckets that move are named with both shards and their share of the rows', () => {
  const { from, to } = narrowed({ from: two, to: three })
  const table = {
    ...{ schema: 'public', name: 'acct', kind: 'r', ancestors: [], identityColumns: ['tenant'] },
    columns: [{ name: 'tenant', isGenerated: false, isBinarySafe: true }],
    ...{ bytes: 600, rowEstimate: 300 },
  } as unknown as SourceTable
  const plan = planMove(from, to, [table])
  expect(plan).toMatchObject({ targetCount: 1, placeCount: 2 })
  expect(plan.tables[0]).toMatchObject({ bytes: 200, rowEstimate: 100 })
  expect(bucketMoves(plan, to)).toEqual([
    { table: 'public.acct', from: 0, to: 2, buckets: [4], of: 6, estimatedRows: 100 },
    { table: 'public.acct', from: 1, to: 2, buckets: [5], of: 6, estimatedRows: 100 },
  ])
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
