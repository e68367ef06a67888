/** Plugins as they should not be: every one of them leaves the statement its own route. */
import { beforeAll, describe, expect, it } from 'vitest'
import type { Log, LogFields } from '../../../src/base/log.js'
import type { Plan, QueryPlanner } from '../../../src/plan/plan.js'
import {
  definePlugin,
  PLUGIN_API_VERSION,
  type Plugin,
  type PluginInput,
} from '../../../src/plugins/plugin-api.js'
import { PluginHost, unfit } from '../../../src/plugins/plugin-host.js'
import { deepFreeze } from '../../../src/plugins/plugin-input.js'
import { makePluginPlanner } from '../../../src/plugins/plugin-planner.js'
import { textParameters } from '../../../src/routing/describe-route.js'
import { openQueryPlanner } from '../../../src/routing/query-planner.js'
import { FakeClock } from '../../support/fake-clock.js'
import { routingConfig } from '../../support/routing-config.js'

const around = deepFreeze({
  database: 'app',
  cluster: {
    shardCount: 4,
    shards: [0, 1, 2, 3].map((shard) => ({
      shard,
      hosts: [{ host: 'db', port: 5432 + shard, role: 'primary' }],
    })),
    shardedTables: [{ name: 'orders', column: 'tenant', keyType: 'bigint' }],
  },
})

function listeningLog() {
  const lines: string[] = []
  const note = (message: string, fields: LogFields = {}) =>
    void lines.push(`${message}: ${String(fields['error'] ?? fields['plugin'])}`)
  const log: Log = { debug: note, info: note, warn: note, error: note, child: () => log }
  return { log, lines }
}

let own: QueryPlanner

beforeAll(async () => {
  own = await openQueryPlanner({ sharding: routingConfig })
})

/** A planner with one plugin, its log, and the route of a statement through it. */
async function withPlugin(plugin: Plugin, timeoutMs = 10_000) {
  const { log, lines } = listeningLog()
  const host = new PluginHost({ log, clock: new FakeClock(), lifeMs: 50 })
  const entry = { name: 'p', module: undefined, config: 'p.json', timeoutMs }
  await host.add(entry, definePlugin(plugin))
  const planner = makePluginPlanner({ planner: own, host, around })
  const route = (sql: string, values: string[] = []): Plan =>
    planner.plan(sql).statements[0]!.route(textParameters(values), { searchPath: ['public'] })
  return { host, lines, route, planner }
}

const shown = (plan: Plan) => ({
  how: plan.how,
  shards: plan.target.kind === 'some' ? plan.target.shards : 'all',
  role: plan.role,
})

describe('the input', () => {
  it('D199: has the statement, its tree, the parameters and the cluster', async () => {
    let seen: PluginInput | undefined
    const { route } = await withPlugin({
      route: (input) => {
        seen = input
        return undefined
      },
    })
    route('SELECT upper(u.name) FROM users u JOIN app.ref r ON true WHERE u.name = $1', ['7'])
    expect(seen).toMatchObject({
      database: 'app',
      statement: {
        kind: 'select',
        isRead: true,
        tables: [
          { name: 'users', isTarget: false },
          { schema: 'app', name: 'ref', isTarget: false },
        ],
        functions: [{ name: 'upper' }],
      },
      session: { searchPath: ['public'] },
      cluster: { shardCount: 4 },
      route: { how: 'relay', role: 'any' },
    })
    expect(seen!.statement.ast).toHaveProperty('stmt.SelectStmt.fromClause')
    expect(seen!.parameters.map(({ text, format, isNull }) => [text, format, isNull])).toEqual([
      ['7', 'text', false],
    ])
    expect(seen!.route.shards).toHaveLength(1)
  })

  it('D203: is lent, not copied: no part of it can be changed', async () => {
    const inputs: PluginInput[] = []
    const { route } = await withPlugin({
      route: (input) => {
        inputs.push(input)
        return undefined
      },
    })
    route('SELECT * FROM orders WHERE tenant = 1')
    route('SELECT * FROM orders WHERE tenant = 2')
    const [first, second] = inputs
    expect(first!.cluster).toBe(second!.cluster)
    expect(first!.statement.tables).toBe(second!.statement.tables)
    const unfrozen = (value: unknown, path: string): string[] => {
      if (value === null || typeof value !== 'object') return []
      const below = Object.entries(value).flatMap(([key, inner]) =>
        unfrozen(inner, `${path}.${key}`),
      )
      return Object.isFrozen(value) ? below : [path, ...below]
    }
    expect(unfrozen(first, 'input')).toEqual([])
    expect(() => {
      ;(first!.statement.ast as { stmt: { SelectStmt: unknown } }).stmt.SelectStmt = 1
    }).toThrow(TypeError)
  })
})

describe('the answer', () => {
  it('D200: a shard and a role are followed where the statement leaves them open', async () => {
    const { route } = await withPlugin({ route: () => ({ shard: 2, role: 'primary' }) })
    expect(shown(route('SELECT * FROM orders'))).toEqual({
      how: 'relay',
      shards: [2],
      role: 'primary',
    })
    expect(shown(route('SELECT 1'))).toEqual({ how: 'relay', shards: [2], role: 'primary' })
  })

  it('a shard that the statement contradicts is an error, never a wrong answer', async () => {
    const { route } = await withPlugin({ route: () => ({ shard: 0 }) })
    const plan = own
      .plan('SELECT * FROM orders WHERE tenant = 3')
      .statements[0]!.route(undefined, { searchPath: ['public'] })
    expect(shown(plan).shards).toEqual([1])
    expect(route('SELECT * FROM orders WHERE tenant = 3').error).toMatchObject({
      code: 'PLUGIN_CONTRADICTS',
      sqlstate: '22023',
    })
    // Those of other refusals stay.
    expect(route('UPDATE orders SET tenant = 2 WHERE tenant = 1').error?.code).toBe(
      'ROUTE_HINT_PARTS',
    )
  })

  it('is not asked about what the session itself answers', async () => {
    let calls = 0
    const { planner } = await withPlugin({
      route: () => {
        calls++
        return undefined
      },
    })
    for (const sql of ['BEGIN', 'COMMIT', 'SET x.y = 1', 'LISTEN a', ''])
      planner.plan(sql).statements[0]?.route(undefined, { searchPath: [] })
    expect(calls).toBe(0)
  })
})

describe('a plugin that fails', () => {
  const all = { how: 'concatenate', shards: 'all', role: 'any' }
  const sql = 'SELECT * FROM orders'

  it.each<[string, Plugin['route'], string]>([
    [
      'throws',
      () => {
        throw new Error('ouch')
      },
      'a plugin failed: ouch',
    ],
    [
      'names a shard that is not there',
      () => ({ shard: 4 }),
      'a plugin gave a route that cannot be: there is no shard 4: shards are 0 to 3',
    ],
    [
      'names half a shard',
      () => ({ shard: 0.5 }),
      'a plugin gave a route that cannot be: there is no shard 0.5: shards are 0 to 3',
    ],
    [
      'names no role',
      () => ({ role: 'boss' }) as never,
      'a plugin gave a route that cannot be: role must be primary or replica, not boss',
    ],
    [
      'gives no object',
      () => 3 as never,
      'a plugin gave a route that cannot be: route() gave number, not an object',
    ],
    [
      'is asynchronous',
      (async () => ({ shard: 1 })) as never,
      'a plugin gave a route that cannot be: route() must not be asynchronous',
    ],
  ])('that %s is reported once, and the statement goes its own way', async (_, route, line) => {
    const with1 = await withPlugin({ route })
    for (let i = 0; i < 20; i++) expect(shown(with1.route(sql))).toEqual(all)
    expect(with1.lines).toEqual(['a plugin was loaded: p', line])
  })

  it('that never returns is stopped, and asked no more after five times', async () => {
    let calls = 0
    const { route, lines } = await withPlugin(
      {
        route: () => {
          calls++
          for (;;) calls += 0
        },
      },
      20,
    )
    for (let i = 0; i < 8; i++) expect(shown(route(sql))).toEqual(all)
    expect(calls).toBe(5)
    expect(lines).toContain('a plugin was stopped: route() took longer than 20 ms')
    expect(lines.at(-1)).toBe('a plugin is asked no more: 5 calls in a row ran out of time')
  })
})

describe('its life', () => {
  it('D201: one for another version of the interface is not loaded', () => {
    expect(unfit({ ...definePlugin({ route: () => undefined }), apiVersion: 99 })).toBe(
      `it is made for version 99 of the plugin interface, this is ${PLUGIN_API_VERSION}`,
    )
    expect(unfit({ route: () => undefined })).toContain('version undefined')
    expect(unfit(undefined)).toContain('no plugin')
    expect(unfit({ apiVersion: PLUGIN_API_VERSION })).toBe('it has no function route')
  })

  it('D202: definePlugin writes the version into it, and keeps its own fields', async () => {
    class Counter implements Plugin {
      calls = 0
      init(): void {
        this.calls = 10
      }
      route(): undefined {
        this.calls++
      }
    }
    const counter = definePlugin(new Counter()) as Counter & { apiVersion: number }
    expect(unfit(counter)).toBeUndefined()
    await counter.init()
    counter.route()
    expect([counter.calls, counter.apiVersion]).toEqual([11, PLUGIN_API_VERSION])
  })

  it('an end that throws does not keep the others from theirs', async () => {
    const ends: string[] = []
    const { host, lines } = await withPlugin({
      route: () => undefined,
      fini: () => void ends.push('first'),
    })
    const entry = { name: 'q', module: undefined, config: undefined, timeoutMs: 0 }
    const bad = { route: () => undefined, fini: () => Promise.reject(new Error('no end')) }
    await host.add(entry, definePlugin(bad))
    await host.stop()
    expect(ends).toEqual(['first'])
    expect(lines.slice(2)).toEqual(['a plugin did not end well: no end', 'a plugin was ended: p'])
  })
})
