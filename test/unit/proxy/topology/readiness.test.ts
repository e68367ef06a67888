/** What takes over soon is made ready once, kept while the cutover is announced, and given back when it does not come. */
import { expect, test } from 'vitest'
import { silentLog } from '../../../../src/base/log.js'
import type { LoadedConfig } from '../../../../src/config/loaded-config.js'
import { Readiness } from '../../../../src/proxy/topology/readiness.js'
import { heirOf, type TopologyRow } from '../../../../src/topology/epoch.js'

const named = (...names: string[]) =>
  ({
    databases: names.map((name) => ({ name, shards: [] })),
    databaseOptions: new Map(),
    sharding: new Map(),
    mirroring: [],
  }) as unknown as LoadedConfig
const config = named('shop', 'shop_new')

const row = (more: Partial<TopologyRow> = {}): TopologyRow => ({
  ...{ side: 'old', epoch: 0, active: true, fenced: false, isPreparing: false, isShared: false },
  ...{ truthSide: undefined, truth: undefined, move: 'r', servedAs: 'shop' },
  ...more,
})
const announced = row({ isPreparing: true })
const waiting = row({ side: 'new', active: false })
const rows = (first: TopologyRow, second = waiting) =>
  new Map([
    ['shop', first],
    ['shop_new', second],
  ])

test('the heir is the side of the same move that waits under the name that clients say', () => {
  expect(heirOf('shop', announced, rows(announced))).toBe('shop_new')
  expect(heirOf('shop', row(), rows(row()))).toBeUndefined()
  expect(heirOf('shop', { ...announced, active: false }, rows(announced))).toBeUndefined()
  expect(heirOf('shop', announced, rows(announced, row({ side: 'new' })))).toBeUndefined()
  const other = row({ side: 'new', active: false, move: 'another' })
  expect(heirOf('shop', announced, rows(announced, other))).toBeUndefined()
  expect(heirOf('shop_new', announced, rows(announced))).toBeUndefined()
})

function rig() {
  const made: {
    config: LoadedConfig
    isClosed: boolean
    isComplete: boolean
    refreshed: number
  }[] = []
  const failing = { next: false }
  const readiness = new Readiness({
    log: silentLog,
    make: async (_name: string, next: LoadedConfig) => {
      if (failing.next) throw new Error('cannot be reached')
      const one = {
        config: next,
        isClosed: false,
        isComplete: true,
        refreshed: 0,
        refresh: async () => {
          one.refreshed++
        },
        close: () => {
          one.isClosed = true
        },
      }
      made.push(one)
      return one
    },
  })
  const look = (of: TopologyRow, base = config) =>
    readiness.look('shop', of, base, async () => rows(of))
  return { readiness, made, failing, look }
}

test('made once, looked over at each beat, and handed to the exchange alone', async () => {
  const { readiness, made, look } = rig()
  await look(row())
  expect(made).toEqual([])
  await look(announced)
  await look(announced)
  expect(made.length).toBe(1)
  expect(made[0]).toMatchObject({ refreshed: 1, isClosed: false })
  expect(made[0]?.config.databases.map(({ name }) => name)).toEqual(['shop_new', 'shop'])
  expect(readiness.isReady('shop')).toBe(true)
  // Left by now: what is ready stays until the exchange.
  await look(row({ active: false, fenced: true, truthSide: 'new' }))
  expect(readiness.take('shop', config, 'another')).toBeUndefined()
  expect(readiness.take('shop', named('shop', 'shop_new'), 'shop_new')).toBeUndefined()
  expect(readiness.take('shop', config, 'shop_new')).toBe(made[0])
  expect(readiness.isReady('shop')).toBe(false)
  readiness.close()
  expect(made[0]?.isClosed).toBe(false)
})

test('given back when the cutover does not come, and made anew for another configuration', async () => {
  const { readiness, made, failing, look } = rig()
  await look(announced)
  await look(announced, named('shop', 'shop_new', 'more'))
  expect(made.map(({ isClosed }) => isClosed)).toEqual([true, false])
  await look(row())
  expect(made.map(({ isClosed }) => isClosed)).toEqual([true, true])
  failing.next = true
  await look(announced)
  expect(readiness.isReady('shop')).toBe(false)
  failing.next = false
  await look(announced)
  expect(readiness.isReady('shop')).toBe(true)
})
