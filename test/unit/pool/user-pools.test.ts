import { describe, expect, it } from 'vitest'
import type { UserPools } from '../../../src/pool/user-pools.js'
import { defineHost, definePool } from './define.js'
import { portOf, start } from './fake-hosts.js'

const three = () => [
  defineHost({ port: 1 }),
  defineHost({ port: 2, role: 'replica' }),
  defineHost({ port: 3, role: 'replica' }),
]

async function portsOf(user: UserPools, role: 'primary' | 'any', count: number): Promise<number[]> {
  const ports: number[] = []
  for (let i = 0; i < count; i++) ports.push(await portOf(user, role))
  return [...new Set(ports)].sort()
}

describe('reads and writes', () => {
  it('D84, D86: writes go to the primary, reads to all', async () => {
    const { user } = start(three())
    expect(await portsOf(user, 'primary', 4)).toEqual([1])
    expect(await portsOf(user, 'any', 6)).toEqual([1, 2, 3])
  })

  it.each([
    ['exclude_primary', [2, 3]],
    ['include_primary_if_replica_banned', [2, 3]],
    ['prefer_primary', [1]],
  ] as const)('%s', async (readWriteSplit, expected) => {
    const { user } = start(three(), { readWriteSplit })
    expect(await portsOf(user, 'any', 6)).toEqual(expected)
  })

  it('the primary joins when a replica is banned, or when no replica is left', async () => {
    const one = start(three(), { readWriteSplit: 'include_primary_if_replica_banned' })
    one.fake.down.add(2)
    expect(await portsOf(one.user, 'any', 8)).toEqual([1, 3])
    const two = start(three(), { readWriteSplit: 'exclude_primary' })
    two.fake.down.add(2).add(3)
    expect(await portsOf(two.user, 'any', 4)).toEqual([1])
  })
})

describe('users and databases', () => {
  it('D114: each pair has pools of its own, which know nothing of the others', async () => {
    const { pools } = start(three())
    const pairs = [
      ['u', 'app'],
      ['v', 'app'],
      ['u', 'other'],
    ] as const
    pools.apply(pairs.map(([user, database]) => definePool([three()], { user, database })))
    const found = pairs.map(([user, database]) => pools.shardPools(user, database) as UserPools)
    expect(found.map(({ definition }) => [definition.user, definition.database])).toEqual(pairs)
    const held = await (found[0] as UserPools).checkout(0, 'primary')
    const lentOf = ([user, database]: (typeof pairs)[number]) =>
      [...pools.all({ user, database })].map(({ pool }) => pool.lent)
    expect(pairs.map(lentOf)).toEqual([
      [1, 0, 0],
      [0, 0, 0],
      [0, 0, 0],
    ])
    held.release()
    expect(pools.shardPools('v', 'other')).toBeUndefined()
  })
})

describe('hosts that fail', () => {
  it('D96, D97: bans a replica that cannot be reached; reads avoid it until it answers and the time is over', async () => {
    const { user, fake, clock, pools } = start(three())
    pools.start()
    fake.down.add(2)
    expect(await portsOf(user, 'any', 8)).toEqual([1, 3])
    expect([...pools.all()].map((pool) => pool.isBanned)).toEqual([false, true, false])
    fake.down.delete(2)
    await clock.advance(299_000)
    expect(await portsOf(user, 'any', 8)).toEqual([1, 3])
    await clock.advance(3000)
    expect(await portsOf(user, 'any', 8)).toEqual([1, 2, 3])
  })

  it('never bans the only primary', async () => {
    const { user, fake, pools } = start(three())
    fake.down.add(1)
    await expect(portOf(user, 'primary')).rejects.toMatchObject({
      code: 'POOL_CONNECT_FAILED',
      sqlstate: '08001',
    })
    expect([...pools.all()][0]?.isBanned).toBe(false)
    fake.down.delete(1)
    expect(await portOf(user, 'primary')).toBe(1)
  })

  it('D211, D214: says which hosts are down when all are, and tries them again for the next caller', async () => {
    const { user, fake } = start(three(), { readWriteSplit: 'exclude_primary' })
    fake.down.add(1).add(2).add(3)
    for (let i = 0; i < 3; i++)
      await expect(portOf(user, 'any')).rejects.toMatchObject({
        code: 'POOL_ALL_REPLICAS_DOWN',
        sqlstate: '08001',
        message: expect.stringMatching(
          /^all hosts of shard 0 of database "app" that may answer this are down: (?=.*127\.0\.0\.1:2)(?=.*127\.0\.0\.1:3)/,
        ),
      })
    fake.down.clear()
    expect([1, 2, 3]).toContain(await portOf(user, 'any'))
  })

  it('D211, D215: names the ban by hand when every host has one', async () => {
    const { user, pools } = start([
      defineHost({ port: 1, role: 'replica' }),
      defineHost({ port: 2, role: 'replica' }),
    ])
    for (const pool of pools.all()) pool.health.banByHand()
    await expect(portOf(user, 'any')).rejects.toMatchObject({
      code: 'POOL_BANNED',
      sqlstate: '57P03',
    })
    for (const pool of pools.all()) pool.health.lift()
    expect([1, 2]).toContain(await portOf(user, 'any'))
  })

  it('has no primary among replicas', async () => {
    const { user } = start([defineHost({ port: 2, role: 'replica' })])
    await expect(portOf(user, 'primary')).rejects.toMatchObject({
      code: 'POOL_NO_PRIMARY',
      sqlstate: '57P03',
    })
  })
})

describe('role = auto', () => {
  const autos = () => [defineHost({ port: 1, role: 'auto' }), defineHost({ port: 2, role: 'auto' })]

  it('D99: asks each host, and writes follow a promotion', async () => {
    const { user, fake, clock, pools } = start(autos())
    fake.recovering.add(2)
    pools.start()
    await clock.advance(0)
    expect(await portOf(user, 'primary')).toBe(1)
    fake.down.add(1)
    fake.recovering.delete(2)
    await clock.advance(1000)
    expect(await portOf(user, 'primary')).toBe(2)
  })

  it('of two that say primary takes the one with more WAL', async () => {
    const { user, fake, clock, pools } = start(autos())
    fake.lsn.set(1, 10).set(2, 20)
    pools.start()
    await clock.advance(0)
    expect(await portOf(user, 'primary')).toBe(2)
  })

  it('a write waits for a primary, and fails when none comes in time', async () => {
    const { user, fake, clock, pools } = start(autos())
    fake.recovering.add(1).add(2)
    pools.start()
    await clock.advance(0)
    const waiting = portOf(user, 'primary')
    await clock.advance(2000)
    fake.recovering.delete(2)
    await clock.advance(1000)
    expect(await waiting).toBe(2)
    fake.recovering.add(2)
    await clock.advance(1000)
    const failing = portOf(user, 'primary').catch((error: unknown) => error)
    await clock.advance(6000)
    expect(await failing).toMatchObject({ code: 'POOL_NO_PRIMARY' })
  })
})

describe('a reload that changes the shards', () => {
  it('does not serve who waits with a shard number of before', async () => {
    const small = { limits: { maxSize: 1 } }
    const { user, pools } = start([defineHost({ port: 1, ...small })])
    const held = await user.checkout(0, 'primary')
    const waiting = Promise.resolve(user.checkout(0, 'primary')).catch((error: unknown) => error)
    const host = defineHost({ port: 1, ...small })
    pools.apply([definePool([[host], [defineHost({ port: 2 })]])])
    expect(await waiting).toMatchObject({
      code: 'POOL_LAYOUT_CHANGED',
      sqlstate: '40001',
      retry: 'safe',
    })
    held.release()
    expect(user.shardCount).toBe(2)
    expect(await portOf(user, 'primary')).toBe(1)
  })

  it('has no shard beyond the last', () => {
    const { user } = start([defineHost({ port: 1 })])
    expect(() => user.checkout(1, 'any')).toThrow(/has no shard 1/)
  })
})

describe('D174: the name of a host leads elsewhere', () => {
  it('its idle servers go at once, lent ones when they come back, other hosts keep theirs', async () => {
    const named = (name: string, port: number, role: 'primary' | 'replica') =>
      defineHost({ role, target: { host: name, port, user: 'postgres', database: 'app' } })
    const { user, pools } = start([named('db', 1, 'primary'), named('other', 2, 'replica')])
    const lent = await user.checkout(0, 'primary')
    const idle = await user.checkout(0, 'primary')
    idle.release()
    const reads = [await user.checkout(0, 'any'), await user.checkout(0, 'any')]
    for (const one of reads) one.release()
    const elsewhere = reads.find(({ resource }) => resource.target.port === 2)!.resource
    pools.hostMoved('db')
    expect(idle.resource.closed).toBe(true)
    expect(lent.resource.closed).toBe(false)
    lent.release()
    expect(lent.resource.closed).toBe(true)
    expect(elsewhere.closed).toBe(false)
    expect((await user.checkout(0, 'primary')).resource).not.toBe(lent.resource)
  })
})
