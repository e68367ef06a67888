import { expect, it } from 'vitest'
import { mergeViews, type ViewSnapshot } from '../../../src/admin/merge-views.js'
import type { DatabaseView } from '../../../src/admin/proxy-view.js'
import { fakeClient, fakePool } from './fake-proxy.js'

const database = (rest: Partial<DatabaseView> = {}): DatabaseView => ({
  name: 'app',
  host: 'h',
  port: 5432,
  database: 'app',
  forceUser: undefined,
  shard: 0,
  role: 'primary',
  weight: 255,
  poolSize: 5,
  minPoolSize: 1,
  reservePoolSize: 3,
  poolMode: 'transaction',
  serverLifetimeMs: 1000,
  currentConnections: 2,
  isPaused: false,
  isDisabled: false,
  ...rest,
})

const snapshot = (worker: number, rest: Partial<ViewSnapshot> = {}): ViewSnapshot =>
  ({
    version: '1.2.3',
    nowMs: 1000,
    uptimeMs: 100 + worker,
    clients: [{ ...fakeClient, worker }],
    pools: [fakePool({ worker })],
    servers: [],
    databases: [database()],
    users: [{ name: 'alice', poolMode: 'transaction' }],
    usage: [],
    config: [{ name: 'port', value: '1', source: 'default' }],
    workers: [],
    listeners: [],
    ...rest,
  }) as unknown as ViewSnapshot

it('puts the rows of workers beside each other, and sums what is one host', () => {
  const view = mergeViews(
    [snapshot(0), snapshot(1, { databases: [database({ isPaused: true })] })],
    [],
  )
  expect(view.clients().map(({ worker }) => worker)).toEqual([0, 1])
  expect(view.pools().map(({ worker }) => worker)).toEqual([0, 1])
  expect(view.databases()).toEqual([
    database({
      poolSize: 10,
      minPoolSize: 2,
      reservePoolSize: 6,
      currentConnections: 4,
      isPaused: true,
    }),
  ])
  expect(view.users()).toHaveLength(1)
  expect(view.config()).toHaveLength(1)
  expect([view.version, view.uptimeMs()]).toEqual(['1.2.3', 101])
})

it('shows nothing when nobody answered', () => {
  const view = mergeViews([], [])
  expect([view.clients(), view.databases(), view.users(), view.uptimeMs()]).toEqual([[], [], [], 0])
})
