/** From a configuration to the pools of each user on each database. */
import { describe, expect, it } from 'vitest'
import { definePools } from '../../../../src/proxy/databases/define-pools.js'
import { load, twoShards } from '../../config/config-files.js'

const replica = `
[[databases]]
name = "shop"
host = "10.0.0.3"
shard = 1
role = "replica"
`
const users = ['ann', 'bob']
  .map((name) => `[[users]]\nname = "${name}"\ndatabase = "shop"\npassword = "x"\n`)
  .join('')

describe('pools of a configuration', () => {
  it('D113: a database is its shards, each a primary with its replicas, and a sharding', () => {
    const config = load(`${twoShards}${replica}`, users)
    const [database] = config.databases
    expect(
      database!.shards.map(({ hosts }) => hosts.map(({ host, role }) => `${host} ${role}`)),
    ).toEqual([['10.0.0.1 primary'], ['10.0.0.2 primary', '10.0.0.3 replica']])
    expect(config.sharding.get('shop')?.shardCount).toBe(2)
  })

  it('D114: two users of one database have pools of their own', () => {
    const pools = definePools(load(`${twoShards}${replica}`, users))
    expect(pools.map(({ user, database }) => [user, database])).toEqual([
      ['ann', 'shop'],
      ['bob', 'shop'],
    ])
    expect(pools[0]).not.toBe(pools[1])
  })
})
