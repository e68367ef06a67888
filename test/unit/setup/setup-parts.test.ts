import { describe, expect, it } from 'vitest'
import { guardChange, guardCondition } from '../../../src/setup/guards.js'
import { CURRENT_VERSION, schemaVersions } from '../../../src/setup/schema-text.js'
import { isDisjoint, nextValue, sequenceChanges } from '../../../src/setup/sequences.js'
import { findSetupTarget } from '../../../src/setup/setup-target.js'
import { assignIdentity, type ShardState } from '../../../src/setup/shard-identity.js'
import type { ShardedTable } from '../../../src/sharding/sharded-table.js'

const state = (place: string, shardId?: number, clusterId = 'aaaaaaaa'): ShardState => ({
  version: 1,
  place,
  serverVersion: 150_000,
  maxPrepared: 10,
  ...(shardId === undefined ? {} : { shardId, clusterId }),
})

describe('identity', () => {
  it('keeps ids, never gives one twice, and begins a cluster only when there is none', () => {
    const fresh = assignIdentity('d', [state('a'), state('b')], 'bbbbbbbb')
    expect(fresh).toEqual({ clusterId: 'bbbbbbbb', shardIds: [1, 2] })
    const grown = assignIdentity('d', [state('c'), state('b', 7), state('a', 2)], 'bbbbbbbb')
    expect(grown).toEqual({ clusterId: 'aaaaaaaa', shardIds: [8, 7, 2] })
    const clash = [state('a', 1), state('b', 1)]
    expect(() => assignIdentity('d', clash, 'x')).toThrow('both have id 1')
    const foreign = [state('a', 1), state('b', 2, 'cccccccc')]
    expect(() => assignIdentity('d', foreign, 'x')).toThrow('aaaaaaaa, cccccccc')
  })
})

describe('sequences', () => {
  it('go on above the highest value, each shard in its own residue', () => {
    for (const count of [2, 3, 5, 64]) {
      for (const highest of [0n, 1n, 41n, 1000n]) {
        const values = Array.from({ length: count }, (_, shard) => nextValue(highest, shard, count))
        expect(values.every((value) => value > highest && value <= highest + BigInt(count))).toBe(
          true,
        )
        expect(new Set(values).size).toBe(count)
      }
    }
    expect(nextValue(0n, 0, 4)).toBe(1n)
  })

  it('are left alone when disjoint, one alone, or counting down', () => {
    const one = (next: bigint, increment: bigint) => ({
      schema: 's',
      name: 'q',
      increment,
      maximum: 100n,
      next,
      drawn: next - 1n,
    })
    expect(isDisjoint([one(1n, 2n), one(4n, 2n)])).toBe(true)
    expect(isDisjoint([one(1n, 2n), one(3n, 2n)])).toBe(false)
    expect(isDisjoint([one(1n, 1n), one(2n, 1n)])).toBe(false)
    expect(sequenceChanges([one(1n, 1n)])).toEqual([])
    expect(sequenceChanges([one(1n, -1n), one(1n, 1n)])).toBeUndefined()
    expect(sequenceChanges([one(9n, 1n), one(1n, 1n)])?.map((change) => change.sql)).toEqual([
      'ALTER SEQUENCE "s"."q" INCREMENT BY 2 RESTART WITH 9;\n',
      'ALTER SEQUENCE "s"."q" INCREMENT BY 2 RESTART WITH 10;\n',
    ])
  })
})

describe('guards', () => {
  const table = (hasher: 'postgres' | 'sha1', bucketMap: number[]): ShardedTable => ({
    column: 'weird "name"',
    keyType: 'bigint',
    placement: { kind: 'hash', hasher, buckets: bucketMap.length, bucketMap },
  })

  it('name the buckets of the shard; a shard without any takes nothing; sha1 cannot be said', () => {
    expect(guardCondition(table('postgres', [0, 1, 0]), 0)).toContain('3) IN (0, 2)')
    expect(guardCondition(table('postgres', [0, 1, 0]), 0)).toContain('"weird ""name"""::bigint')
    expect(guardCondition(table('postgres', [0, 0]), 1)).toBe('false')
    expect(guardCondition(table('sha1', [0, 1]), 0)).toBeUndefined()
  })

  it('are left alone when they stand, and exchanged when the map is another', () => {
    const relation = { schema: 's', name: 't', column: 'c', table: table('postgres', [0, 1]) }
    const comment = `pgshard guard of shard 0: ${guardCondition(relation.table, 0)}`
    expect(guardChange({ ...relation, guard: comment }, 0)?.sql).toBe('')
    expect(guardChange({ ...relation, guard: 'old' }, 0)?.sql).toMatch(/^ALTER TABLE "s"."t" DROP/)
    expect(guardChange(relation, 0)?.sql).toMatch(/^ALTER TABLE "s"."t" ADD CONSTRAINT/)
  })
})

describe('the target', () => {
  const host = { host: 'h', port: 5432, database: "d'b", role: 'primary', weight: 1 } as const
  const database = { name: 'shop', shards: [{ number: 0, hosts: [host] }] }
  const user = { name: 'a', databases: ['shop'], passwords: ["p'w\\"], schemaAdmin: false }

  it('prefers the account given, then the host’s, then the schema admin', () => {
    const admin = { ...user, name: 'admin', schemaAdmin: true }
    const conninfo = (users: (typeof user)[], account?: { user: string }) =>
      findSetupTarget([database], users, undefined, account).shards[0]?.conninfo
    expect(conninfo([user, admin])).toContain("user='admin'")
    expect(conninfo([user])).toContain(String.raw`password='p\'w\\'`)
    expect(conninfo([user])).toContain(String.raw`dbname='d\'b'`)
    expect(conninfo([user], { user: 'boss' })).toContain("user='boss'")
    const own = { ...database, shards: [{ number: 0, hosts: [{ ...host, user: 'own' }] }] }
    expect(findSetupTarget([own], [user], 'shop')).toMatchObject({ roles: ['a', 'own'] })
    expect(findSetupTarget([own], [admin], 'shop').shards[0]?.conninfo).toContain("user='own'")
  })

  it('needs a primary', () => {
    const replica = { ...host, role: 'replica' as const }
    const headless = { name: 'shop', shards: [{ number: 0, hosts: [replica] }] }
    expect(() => findSetupTarget([headless], [user], 'shop')).toThrow('has no primary')
    const auto = {
      name: 'shop',
      shards: [{ number: 0, hosts: [replica, { ...host, role: 'auto' as const, host: 'x' }] }],
    }
    expect(findSetupTarget([auto], [user], 'shop').shards[0]?.conninfo).toContain("host='x'")
  })
})

describe('schema versions', () => {
  it('count up by one', () => {
    expect(schemaVersions.map((one) => one.version)).toEqual(
      Array.from({ length: CURRENT_VERSION }, (_, i) => i + 1),
    )
  })
})
