/** A hint never puts a row where its key is not looked for, and never writes one copy of a reference table alone. */
import { beforeAll, describe, expect, test } from 'vitest'
import type { QueryPlanner } from '../../../src/plan/plan.js'
import { openQueryPlanner } from '../../../src/routing/query-planner.js'

describe('a hint for shard 0', () => {
  let planner: QueryPlanner
  beforeAll(async () => {
    planner = await openQueryPlanner({
      sharding: {
        shardCount: 4,
        tables: [
          {
            name: 'orders',
            column: 'tenant',
            keyType: 'bigint',
            placement: { kind: 'hash', hasher: 'postgres', buckets: 4, bucketMap: [0, 1, 2, 3] },
          },
        ],
        referenceTables: [],
        schemas: [],
        otherTables: 'reference',
      },
    })
  })

  const hinted = (sql: string) => {
    const manual = { shard: 0 }
    const plan = planner
      .plan(sql)
      .statements[0]!.route(undefined, { searchPath: ['public'], manual })
    return (
      plan.error?.code ?? `${plan.how} ${plan.target.kind === 'some' ? plan.target.shards : 'all'}`
    )
  }

  test.each([
    'INSERT INTO orders (tenant) VALUES (1), (2), (3)',
    'INSERT INTO orders (tenant) SELECT id FROM other',
    'UPDATE orders SET tenant = tenant + 1',
    'UPDATE orders SET tenant = 2 WHERE tenant = 3',
    'MERGE INTO orders o USING (VALUES (1),(2),(3)) x(id) ON o.tenant = x.id WHEN NOT MATCHED THEN INSERT (tenant) VALUES (x.id)',
    'UPDATE reference SET a = 1',
    'INSERT INTO reference VALUES (1)',
    'DELETE FROM reference',
  ])('does not decide for %s', (sql) => {
    expect(hinted(sql)).toBe('ROUTE_HINT_PARTS')
  })

  test.each([
    'INSERT INTO orders (tenant) OVERRIDING USER VALUE VALUES (1)',
    'MERGE INTO orders o USING other x ON o.id = x.id WHEN NOT MATCHED THEN INSERT (tenant) VALUES (x.id)',
  ])('does not force what is refused: %s', (sql) => {
    expect(hinted(sql)).toMatch(/^ROUTE_/)
  })

  test.each([
    ['SELECT * FROM orders', 'relay 0'],
    ['UPDATE orders SET x = 1', 'relay 0'],
    ['DELETE FROM orders', 'relay 0'],
    ['CREATE TABLE one (a int)', 'relay 0'],
    ['SELECT * FROM orders FOR UPDATE', 'relay 0'],
  ])('chooses for %s', (sql, expected) => {
    expect(hinted(sql)).toBe(expected)
  })
})
