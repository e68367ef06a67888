import { availableParallelism } from 'node:os'
import { deserialize, serialize } from 'node:v8'
import { describe, expect, it } from 'vitest'
import { silentLog } from '../../../src/base/log.js'
import { poolSettings } from '../../../src/config/compile/pool-settings.js'
import { generalKeys } from '../../../src/config/keys/config-sections.js'
import { outputName } from '../../../src/config/keys/key-types.js'
import { loadConfig } from '../../../src/config/load-config.js'
import type { LoadedConfig } from '../../../src/config/loaded-config.js'
import { wantedWorkers, workerCount } from '../../../src/workers/serve-workers.js'
import { assertShareable, shareLimits, tightestLimit } from '../../../src/workers/share-limits.js'

interface Sizes {
  maxClientConn?: number
  maxDbConnections?: number
  maxUserConnections?: number
  maxUserClientConnections?: number
  defaultPoolSize?: number
  minPoolSize?: number
  reservePoolSize?: number
  workers?: number
  workersMode?: string
}

const unlimited = Number.POSITIVE_INFINITY

function configOf(general: Sizes, user = {}, host = {}): LoadedConfig {
  return {
    general: {
      maxClientConn: unlimited,
      maxDbConnections: unlimited,
      maxUserConnections: unlimited,
      maxUserClientConnections: unlimited,
      defaultPoolSize: 10,
      minPoolSize: 1,
      reservePoolSize: 0,
      workers: 2,
      workersMode: 'single',
      ...general,
    },
    databases: [
      {
        name: 'app',
        shards: [
          { number: 0, hosts: [{ host: 'h', port: 1, database: 'd', role: 'auto', ...host }] },
        ],
      },
    ],
    users: [{ name: 'u', databases: ['app'], ...user }],
    warnings: ['said once'],
  } as unknown as LoadedConfig
}

const sizesOf = (config: LoadedConfig) => {
  const host = config.databases[0]?.shards[0]?.hosts[0]
  const user = config.users[0]
  if (!host || !user) throw new Error('no host or user')
  return (['primary', 'replica'] as const).map((role) => {
    const { maxSize, minSize } = poolSettings(config.general, host, user, role)
    return [minSize, maxSize]
  })
}

describe('the share of one worker', () => {
  it('B13, B14, B15: is the floor, so that all together never pass the total', () => {
    const config = configOf({
      maxClientConn: 100,
      maxDbConnections: 10,
      defaultPoolSize: 10,
      reservePoolSize: 3,
    })
    for (const count of [2, 3, 4, 7, 10]) {
      const { general } = shareLimits(config, count)
      for (const [share, total] of [
        [general.maxClientConn, 100],
        [general.maxDbConnections, 10],
        [general.defaultPoolSize, 10],
        [general.reservePoolSize, 3],
      ] as const) {
        expect(share).toBe(Math.floor(total / count))
        expect(share * count).toBeLessThanOrEqual(total)
      }
    }
  })

  it('divides what users and hosts set, for each role', () => {
    const config = configOf(
      {},
      { poolSizePrimary: 9, minPoolSizePrimary: 6 },
      { poolSizeReplica: 5 },
    )
    expect(sizesOf(shareLimits(config, 2))).toEqual([
      [3, 4],
      [1, 2],
    ])
  })

  it('leaves unlimited unlimited, keeps a minimum of one open, and says warnings once', () => {
    const shared = shareLimits(configOf({ minPoolSize: 1 }), 4)
    expect(shared.general.maxClientConn).toBe(unlimited)
    expect(shared.general.minPoolSize).toBe(1)
    expect(shareLimits(configOf({ minPoolSize: 0 }), 4).general.minPoolSize).toBe(0)
    expect(shared.warnings).toEqual([])
  })
})

it('divides what one user may have', () => {
  const config = configOf(
    { maxUserClientConnections: 40, maxUserConnections: 9 },
    { maxUserClientConnections: 5 },
  )
  const shared = shareLimits(config, 2)
  expect(shared.general).toMatchObject({ maxUserClientConnections: 20, maxUserConnections: 4 })
  expect(shared.users[0]?.maxUserClientConnections).toBe(2)
  expect(tightestLimit(config)).toEqual({
    name: 'max_user_client_connections of user "u"',
    value: 5,
  })
})

/** What looks like a limit on connections and is none that workers share. */
const notShared = [
  'listen_backlog',
  'prepared_statements_limit',
  'query_cache_limit',
  'query_size_limit',
  'regex_parser_limit',
]

it('every key that limits connections is shared', () => {
  const before = Object.fromEntries(
    Object.entries(generalKeys)
      .filter(([, { type }]) => type === 'integer')
      .filter(([key]) => /^max_|_pool_size$|conn$|connections$|_limit$|backlog/.test(key))
      .map(([key, { unit }]) => [outputName(key, unit), 12]),
  )
  const { general } = shareLimits(configOf(before), 4)
  const kept = Object.entries(before).filter(
    ([name]) => general[name as keyof typeof general] === 12,
  )
  expect(kept.map(([name]) => name).sort()).toEqual(notShared.map((key) => outputName(key, '')))
})

it('a configuration reaches a worker as it is, secrets, bytes and Infinity too', () => {
  const loaded = loadConfig({
    databaseUrls: ['postgres://u:secret@h:1/app?shard=0', 'postgres://u:secret@h:2/app?shard=1'],
    env: { PGDOG_MIN_POOL_SIZE: '2' },
  })
  expect(deserialize(serialize(loaded))).toEqual(loaded)
  expect(loaded.general.maxClientConn).toBe(unlimited)
})

describe('how many workers', () => {
  const count = (wanted: number, config: LoadedConfig) => workerCount(wanted, config, silentLog)

  it('no more than any limit can be shared by', () => {
    expect(count(8, configOf({ defaultPoolSize: 3 }))).toBe(3)
    expect(count(8, configOf({ maxClientConn: 5 }))).toBe(5)
    expect(count(8, configOf({}, { poolSize: 1 }))).toBe(1)
    expect(count(8, configOf({}, { poolSize: 20 }, { poolSizeReplica: 2 }))).toBe(8)
    expect(count(0, configOf({}))).toBe(1)
    expect(tightestLimit(configOf({}, { poolSize: 2 }))).toEqual({
      name: 'the pool size of user "u"',
      value: 2,
    })
  })

  it('a reload that cannot be shared is refused', () => {
    expect(() => assertShareable(configOf({ maxDbConnections: 3 }), 4)).toThrow(
      'max_db_connections = 3 cannot be shared by 4 workers',
    )
    expect(() => assertShareable(configOf({ maxDbConnections: 4 }), 4)).not.toThrow()
  })

  it('B3, B28: one process unless asked; auto is one a core', () => {
    const { general } = configOf({ workers: 6 })
    expect(wantedWorkers(undefined, general)).toBe(1)
    expect(wantedWorkers('auto', general)).toBe(availableParallelism())
    expect(wantedWorkers(3, general)).toBe(3)
    expect(
      wantedWorkers(undefined, configOf({ workers: 6, workersMode: 'processes' }).general),
    ).toBe(6)
  })
})
