import { readdirSync, readFileSync } from 'node:fs'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Plan, QueryPlanner } from '../../../src/plan/plan.js'
import { openQueryPlanner } from '../../../src/routing/query-planner.js'
import { routingConfig } from '../../support/routing-config.js'

const folder = 'fixtures/sql/routing'

interface RouteCase {
  sql: string
  expect: { how: string; shards?: unknown; code?: string }
}

function summary(plan: Plan): RouteCase['expect'] {
  if (plan.how === 'refuse') return { how: plan.how, code: plan.error!.code }
  if (plan.anyShard) return { how: plan.how, shards: 'any' }
  return { how: plan.how, shards: plan.target.kind === 'all' ? 'all' : plan.target.shards }
}

let planner: QueryPlanner
beforeAll(async () => {
  planner = await openQueryPlanner({ sharding: routingConfig })
})

describe('recorded routes', () => {
  const files = readdirSync(folder).filter((name) => name.endsWith('.json'))
  it('has cases', () => expect(files.length).toBeGreaterThan(150))
  it.each(files)('%s', (file) => {
    const recorded = JSON.parse(readFileSync(`${folder}/${file}`, 'utf8')) as RouteCase
    const query = planner.plan(recorded.sql)
    expect(query.syntaxError).toBeUndefined()
    expect(query.statements).toHaveLength(1)
    const context = { searchPath: ['public'] }
    expect(summary(query.statements[0]!.route(undefined, context))).toEqual(recorded.expect)
    // Once more, from the template: literals may not have stuck to it.
    const other = planner.plan(recorded.sql.replaceAll(/\b2\b/g, '77'))
    for (const statement of other.statements) statement.route(undefined, context)
    const again = planner.plan(recorded.sql).statements[0]!.route(undefined, context)
    expect(summary(again)).toEqual(recorded.expect)
  })
})
