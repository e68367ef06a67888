import { expect, test } from 'vitest'
import type { LoadedConfig } from '../../../../src/config/loaded-config.js'
import { followEpochs } from '../../../../src/proxy/topology/exchange-databases.js'
import { readTopologyRow, type TopologyRow } from '../../../../src/topology/epoch.js'

const host = (port: number) => ({ host: 'h', port, database: 'd', role: 'primary', weight: 1 })
const config = {
  databases: [
    { name: 'shop', shards: [{ number: 0, hosts: [host(1)] }] },
    { name: 'shop_new', shards: [{ number: 0, hosts: [host(2)] }] },
    { name: 'other', shards: [{ number: 0, hosts: [host(3)] }] },
  ],
  databaseOptions: new Map([['shop', { stickyTables: ['old'] }]]),
  sharding: new Map([
    ['shop', { shardCount: 1 }],
    ['shop_new', { shardCount: 2 }],
  ]),
  users: [{ name: 'u', databases: ['shop'] }],
} as unknown as LoadedConfig

const row = (more: Partial<TopologyRow>): TopologyRow => ({
  ...{ side: 'old', epoch: 0, active: true, fenced: false, isPreparing: false, isShared: false },
  ...{ truthSide: undefined, truth: undefined, move: 'r', servedAs: 'shop' },
  ...more,
})
const left = row({ active: false, fenced: true, truthSide: 'new' })
const taken = row({ side: 'new', epoch: 1 })
const portOf = (of: LoadedConfig, name: string) =>
  of.databases.find((one) => one.name === name)?.shards[0]?.hosts[0]?.port

test('O3: the name that clients say follows the truth, whatever the file says', () => {
  const rows = new Map([
    ['shop', left],
    ['shop_new', taken],
  ])
  const { config: followed } = followEpochs(config, rows)
  expect([portOf(followed, 'shop'), portOf(followed, 'shop_new')]).toEqual([2, 1])
  expect(followed.sharding.get('shop')).toEqual({ shardCount: 2 })
  expect(followed.databaseOptions.has('shop_new')).toBe(true)
  expect(followed.users).toBe(config.users)
})

test('O3: a file that was exchanged already is not exchanged back', () => {
  const rows = new Map([
    ['shop', taken],
    ['shop_new', left],
  ])
  expect(followEpochs(config, rows).config).toBe(config)
})

test.each([
  ['while nobody has taken over', left, row({ side: 'new', active: false })],
  ['for a side of another move', left, row({ side: 'third', epoch: 9 })],
  ['for an older epoch', row({ ...left, epoch: 3 }), row({ side: 'new', epoch: 2 })],
  ['while the old side serves', row({}), taken],
])('O3: nothing is exchanged %s', (_, shop, shopNew) => {
  const rows = new Map([
    ['shop', shop],
    ['shop_new', shopNew],
  ])
  expect(followEpochs(config, rows).config).toBe(config)
})

test('O3: a row of an older setup, without the columns of moves, serves', () => {
  const old = readTopologyRow(
    '{"only_row":true,"epoch":4,"active":true,"fenced":false,"truth":null}',
  )
  expect(old).toMatchObject({ epoch: 4, active: true, side: '' })
  expect(followEpochs(config, new Map([['shop', old]])).config).toBe(config)
})
