import { readFileSync } from 'node:fs'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Plan, PlannedStatement } from '../../../src/plan/plan.js'
import { textParameters } from '../../../src/routing/describe-route.js'
import { makeQueryPlanner } from '../../../src/routing/query-planner.js'
import { levelsOf } from '../../../src/routing/resolve.js'
import { makeKeyPlacer } from '../../../src/sharding/key-placer.js'
import type { ShardedTable, ShardingConfig } from '../../../src/sharding/sharded-table.js'
import { loadParser } from '../../../src/sql/parse.js'
import { QueryReader } from '../../../src/sql/read-query.js'

interface Recorded {
  id: string
  sql: string
  kind: string
  tables: string[]
  shard: {
    column: string
    extractable: boolean
    values: { param?: number; literal?: string }[]
  } | null
  primary: boolean | null
}

const recorded = readFileSync('fixtures/sql/orm.jsonl', 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as Recorded)

const buckets = 16
const placement = {
  kind: 'hash',
  hasher: 'postgres',
  buckets,
  bucketMap: Array.from({ length: buckets }, (_, i) => i),
} as const

const bare = (table: string): string => table.split('.').at(-1)!

function configFor(one: Recorded): ShardingConfig {
  const column = one.shard?.column ?? 'tenant_id'
  const tables = one.tables
    .filter((table) => !table.startsWith('pg_') && !references.has(table))
    .map((table): ShardedTable => {
      const own = column === 'id' && bare(table) === 'orders' ? 'user_id' : column
      return { name: bare(table), column: own, keyType: 'bigint', placement }
    })
  return { shardCount: buckets, tables, referenceTables: [], schemas: [], otherTables: 'reference' }
}

/** Tables that the recording knows no key of. */
const references = new Set(['customers', 'queues', 'countries'])

/** Where the recorded key is found and still no single shard can answer, with the reason. */
const notFollowed: Record<string, string> = {
  'orm-025': 'the join compares with a column of a subquery, which is not followed',
  'orm-060': 'the archive is filled from a CTE, whose column is not followed',
}

function route(one: Recorded): { statement: PlannedStatement; plan: Plan } {
  const planner = makeQueryPlanner({ sharding: configFor(one) })
  const query = planner.plan(one.sql)
  expect(query.syntaxError).toBeUndefined()
  expect(query.statements).toHaveLength(1)
  const statement = query.statements[0]!
  const value = /ANY\(\$1/i.test(one.sql) ? '{42}' : '42'
  const parameters = textParameters(Array.from({ length: 20 }, () => value))
  return { statement, plan: statement.route(parameters, { searchPath: ['public'] }) }
}

/** One shard must be found; several may be refused, or asked and no others. */
function expectShards(plan: Plan, shards: number[]): void {
  if (shards.length > 1 && plan.how === 'refuse') return
  expect(plan.error?.message).toBeUndefined()
  expect(plan.target).toEqual({ kind: 'some', shards })
}

beforeAll(loadParser)

describe('statements of ORMs', () => {
  it.each(recorded.map((one) => [one.id, one] as const))('%s: kind, tables and role', (_, one) => {
    const { statement } = route(one)
    const kinds: Record<string, string[]> = {
      read: ['select'],
      write: ['select', 'insert', 'update', 'delete', 'merge', 'truncate'],
      txn: ['begin', 'commit', 'rollback', 'savepoint', 'release', 'rollback_to', 'two_phase'],
      set: ['set', 'reset', 'discard'],
    }
    expect(kinds[one.kind] ?? [one.kind]).toContain(statement.kind)
    if (one.kind === 'read' || one.kind === 'write') {
      const readByText = !one.primary
      // set_config in a query cannot be followed: the server is tainted, and it is still a SELECT.
      expect(statement.isRead).toBe(readByText)
    }
    const read = new QueryReader().read(one.sql).statements[0]!.template.statement
    const found = levelsOf(read.root).flatMap((level) => level.relations.map((use) => use.name))
    if (read.root) expect(new Set(found)).toEqual(new Set(one.tables.map(bare)))
  })

  it.each(recorded.filter((one) => one.shard).map((one) => [one.id, one] as const))(
    '%s: the shard of its key',
    (id, one) => {
      const { plan } = route(one)
      const { extractable, values, column } = one.shard!
      const onOne = plan.how === 'relay' && plan.target.kind === 'some' && !plan.anyShard
      if (!extractable) expect(onOne).toBe(false)
      else if (id in notFollowed) {
        expect(['refuse', 'gather'].includes(plan.how) || plan.anyShard).toBe(true)
      } else {
        const placer = makeKeyPlacer({ column, keyType: 'bigint', placement })
        const shards = new Set(values.map((value) => placer.ofString(value.literal ?? '42')))
        expectShards(
          plan,
          [...shards].sort((x, y) => x - y),
        )
      }
    },
  )
})
