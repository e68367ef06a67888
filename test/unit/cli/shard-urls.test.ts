import { describe, expect, it } from 'vitest'
import { shardUrls } from '../../../src/cli/shard-urls.js'
import type { LoadedConfig } from '../../../src/config/loaded-config.js'

const host = (name: string, role: 'primary' | 'replica' | 'auto', more = {}) => ({
  host: name,
  port: 5432,
  database: 'app db',
  role,
  weight: 255,
  ...more,
})
const config = {
  databases: [
    {
      name: 'app',
      shards: [
        {
          number: 0,
          hosts: [host('a', 'replica'), host('b', 'primary', { user: 'own', password: 'p/w' })],
        },
        { number: 1, hosts: [host('/run/pg', 'primary')] },
        { number: 2, hosts: [host('c', 'auto'), host('::1', 'auto')] },
      ],
    },
    { name: 'bad', shards: [{ number: 0, hosts: [host('a', 'replica')] }] },
  ],
  users: [
    { name: 'plain', databases: ['app'], passwords: ['x'], schemaAdmin: false },
    { name: 'admin', databases: ['app'], passwords: ['s:1'], schemaAdmin: true },
  ],
} as unknown as LoadedConfig

describe('shard urls', () => {
  it('reaches the primary of each shard, the credentials of the entry first', () => {
    expect(shardUrls(config, 'app')).toEqual([
      'postgresql://own:p%2Fw@b:5432/app%20db',
      'postgresql://admin:s%3A1@%2Frun%2Fpg:5432/app%20db',
      'postgresql://admin:s%3A1@c:5432,[::1]:5432/app%20db?target_session_attrs=read-write',
    ])
    expect(shardUrls(config, 'app', 'plain')[1]).toContain('plain:x@')
  })

  it('says what is missing', () => {
    expect(() => shardUrls(config, 'nope')).toThrowError('database "nope" is not configured')
    expect(() => shardUrls(config, 'bad')).toThrowError('shard 0 of "bad" has no primary')
    expect(() => shardUrls(config, 'app', 'who')).toThrowError('user "who"')
  })
})
