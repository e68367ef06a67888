/**
 * What routing costs a statement: the text map, the template map, and the question whether it may be pipelined.
 *   npm run build && node bench/plan-cache.mjs [--runs 300000]
 * Nanoseconds a statement, the best of five rounds.
 */
import { parseArgs } from 'node:util'
import { Catalog } from '../dist/src/catalog/catalog.js'
import { openQueryPlanner } from '../dist/src/routing/query-planner.js'

const { values } = parseArgs({ options: { runs: { type: 'string', default: '300000' } } })
const runs = Number(values.runs)

const accounts = {
  oid: 20_000,
  schema: 'public',
  name: 'accounts',
  kind: 'table',
  isTemporary: false,
  columns: [],
  constraints: [],
  foreignKeys: [],
  reads: [],
  hasTriggers: false,
  hasRules: false,
  rowSecurity: false,
}
const hidden = { relations: new Set(), domains: new Set(), operators: new Set(), everywhere: false }
const planner = await openQueryPlanner({
  sharding: {
    shardCount: 1,
    tables: [],
    schemas: [],
    mappings: [],
    reference: [],
    omnisharded: [],
  },
  catalog: new Catalog([accounts], [], [], [], hidden),
})
const context = { searchPath: ['public'] }
const noTypes = []

function best(work) {
  let least = Number.POSITIVE_INFINITY
  for (let round = 0; round < 5; round++) {
    const from = process.hrtime.bigint()
    for (let i = 0; i < runs; i++) work(i)
    least = Math.min(least, Number(process.hrtime.bigint() - from) / runs)
  }
  return least
}

const frames = Array.from({ length: 1000 }, (_, n) =>
  Buffer.from(`SELECT abalance FROM accounts WHERE aid = ${n * 7919};`),
)
const same = Buffer.from('SELECT abalance FROM accounts WHERE aid = $1')
const rows = {
  'the same text (text map)': (i) => planner.plan(i < 0 ? '' : same.toString('utf8')),
  'another literal (template map)': (i) => planner.plan(frames[i % 1000].toString('utf8')),
  'another literal, routed': (i) =>
    planner.plan(frames[i % 1000].toString('utf8')).statements[0].route(undefined, context),
  'another literal, may it be pipelined': (i) =>
    planner.plan(frames[i % 1000].toString('utf8')).statements[0].mayPipeline(context, noTypes),
}
for (const [what, work] of Object.entries(rows))
  console.log(`${best(work).toFixed(0).padStart(6)} ns  ${what}`)
