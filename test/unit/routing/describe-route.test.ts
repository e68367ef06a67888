import { expect, it } from 'vitest'
import { describeRoutes, textParameters } from '../../../src/routing/describe-route.js'
import { openQueryPlanner } from '../../../src/routing/query-planner.js'
import { routingConfig } from '../../support/routing-config.js'

const missing = '$2 has no value here and names no key: give it with --param'

it.each([
  ['SELECT $1, $2 FROM users WHERE id = $1', ['1'], [missing]],
  ['SELECT $1, $2 FROM users WHERE id = $1', ['1', '2'], []],
  [`SELECT '$2', "$2", a$2 /* $2 */ -- $2`, [], []],
])('%s with %j', async (sql, values, expected) => {
  const planner = await openQueryPlanner({ sharding: routingConfig })
  const [route] = describeRoutes(planner, sql, textParameters(values), { searchPath: ['public'] })
  expect(route?.reasons.filter((reason) => reason.includes('--param'))).toEqual(expected)
})
