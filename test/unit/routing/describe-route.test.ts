import { expect, it } from 'vitest'
import { describeRoutes, textParameters } from '../../../src/routing/describe-route.js'
import { openQueryPlanner } from '../../../src/routing/query-planner.js'
import { routingConfig } from '../../support/routing-config.js'

const missing = '$2 has no value here and names no key: give it with --param'

it('shows what shards are sent, when asked to', async () => {
  const planner = await openQueryPlanner({ sharding: routingConfig })
  const context = { searchPath: ['public'] }
  const told = (sql: string, shows: boolean) =>
    describeRoutes(planner, sql, undefined, context, shows)[0]?.texts
  const sql = 'SELECT id, name FROM users ORDER BY id LIMIT 3 OFFSET 2'
  const [merged] = told(sql, true) ?? []
  expect(merged?.sql).toBe('SELECT id, name FROM users ORDER BY id LIMIT 5')
  expect(merged?.shards.length).toBe(planner.shardCount)
  expect(told('SELECT id FROM users WHERE id = 1', true)).toEqual([])
  expect(told(sql, false)).toBeUndefined()
})

it.each([
  ['SELECT $1, $2 FROM users WHERE id = $1', ['1'], [missing]],
  ['SELECT $1, $2 FROM users WHERE id = $1', ['1', '2'], []],
  [`SELECT '$2', "$2", a$2 /* $2 */ -- $2`, [], []],
])('%s with %j', async (sql, values, expected) => {
  const planner = await openQueryPlanner({ sharding: routingConfig })
  const [route] = describeRoutes(planner, sql, textParameters(values), { searchPath: ['public'] })
  expect(route?.reasons.filter((reason) => reason.includes('--param'))).toEqual(expected)
})
