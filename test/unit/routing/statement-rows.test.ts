/** What routing reads in a statement, row by row of the requirements. */
import { beforeAll, describe, expect, it } from 'vitest'
import type { QueryPlanner } from '../../../src/plan/plan.js'
import { openQueryPlanner } from '../../../src/routing/query-planner.js'
import { levelsOf } from '../../../src/routing/resolve.js'
import { makeKeyPlacer } from '../../../src/sharding/key-placer.js'
import { listShards } from '../../../src/sharding/shard-set.js'
import { QueryReader, TwoGenerations } from '../../../src/sql/read-query.js'
import { routingConfig } from '../../support/routing-config.js'

let planner: QueryPlanner
beforeAll(async () => {
  planner = await openQueryPlanner({ sharding: routingConfig })
})

const route = (sql: string) =>
  planner.plan(sql).statements[0]!.route(undefined, { searchPath: ['public'] })
const shardsOf = (sql: string) => listShards(route(sql).target, 4)

describe('reading', () => {
  it('D116: a key that the server overrides is no key', () => {
    const insert = (more: string) => route(`INSERT INTO orders (tenant, x) ${more}VALUES (1, 2)`)
    expect(insert('').how).toBe('relay')
    expect(insert('OVERRIDING SYSTEM VALUE ').how).toBe('relay')
    expect(insert('OVERRIDING USER VALUE ')).toMatchObject({
      how: 'refuse',
      error: { sqlstate: '0A000' },
    })
  })

  it('D59: what PostgreSQL rejects is rejected with its message and place', () => {
    const { syntaxError } = planner.plan('SELECT FROM WHERE 1')
    expect(syntaxError).toEqual({ message: 'syntax error at or near "WHERE"', position: 13 })
    // Read by PostgreSQL's own parser, and misread by others.
    const kept = planner.plan('DELETE FROM orders /* -- */ WHERE tenant = 1')
    expect(kept.statements[0]!.route(undefined, { searchPath: [] }).how).toBe('relay')
  })

  it.each([
    ['SELECT 1', 'select'],
    ['WITH a AS (SELECT 1) SELECT * FROM a', 'select'],
    ['VALUES (1)', 'select'],
    ['INSERT INTO orders VALUES (1)', 'insert'],
    ['UPDATE orders SET x = 1', 'update'],
    ['DELETE FROM orders', 'delete'],
    ['CREATE TABLE a (b int)', 'ddl'],
    ['ALTER TABLE orders ADD c int', 'ddl'],
    ['DROP TABLE orders', 'ddl'],
    ['COPY orders FROM STDIN', 'copy'],
    ['PREPARE p AS SELECT 1', 'prepare'],
    ['EXECUTE p', 'execute'],
    ['CLOSE c', 'close'],
  ])('D60, D65: %s is of kind %s', (sql, kind) => {
    expect(planner.plan(sql).statements.map((statement) => statement.kind)).toEqual([kind])
  })

  it.each([
    ['SELECT * FROM a', ['a']],
    [
      'SELECT * FROM s.a x JOIN b AS y ON true, "C" LEFT JOIN d USING (k)',
      ['s.a x', 'b y', 'C C', 'd d'],
    ],
    ['SELECT (SELECT 1 FROM a) FROM (SELECT * FROM b) z', ['a a', 'b b']],
    ['WITH a AS (SELECT * FROM b) SELECT * FROM a', ['b b']],
  ])('D61: the tables of %s', (sql, expected) => {
    const { statement } = new QueryReader().read(sql).statements[0]!.template
    const found = levelsOf(statement.root).flatMap(({ relations }) =>
      relations.map(({ schema, name, alias }) =>
        expected[0]!.includes(' ') ? `${schema ? `${schema}.` : ''}${name} ${alias}` : name,
      ),
    )
    expect(found.sort()).toEqual([...expected].sort())
  })

  it('D70: texts of one template are parsed once, and no more are kept than the limit', () => {
    const reader = new QueryReader({ templates: 10 })
    const template = (sql: string) => reader.read(sql).statements[0]!.template
    expect(template("SELECT * FROM t WHERE k = 1 AND v = 'a'")).toBe(
      template("SELECT * FROM t WHERE k = 22 AND v = 'b'"),
    )
    expect(template('SELECT * FROM t WHERE k = 1')).not.toBe(
      template('SELECT * FROM t WHERE j = 1'),
    )
    const kept = new TwoGenerations<number>(10)
    for (let i = 0; i < 1000; i++) {
      kept.set(`statement ${i}`, i)
      expect(kept.size).toBeLessThanOrEqual(10)
    }
    expect(kept.get('statement 999')).toBe(999)
  })

  it('D71: a statement that was planned once routes each Bind without being read again', () => {
    const sql = 'SELECT * FROM orders WHERE tenant = $1'
    const planned = planner.plan(sql)
    expect(planner.plan(sql)).toBe(planned)
  })
})

describe('shards', () => {
  it('D66, D69: one for a key, a subset for a list, all without a key', () => {
    expect(shardsOf('SELECT id FROM orders WHERE tenant = 1')).toEqual([0])
    expect(shardsOf('SELECT id FROM orders WHERE tenant IN (1, 3)')).toEqual([0, 1])
    expect(shardsOf('SELECT id FROM orders')).toEqual([0, 1, 2, 3])
  })

  it.each([
    [2, [0, 0, 0, 1, 1, 1]],
    [3, [2, 2, 0, 1, 0, 2]],
    [4, [0, 0, 2, 1, 3, 1]],
  ])('D103: bigint 0 to 5 of %i shards', (n, expected) => {
    const bucketMap = Array.from({ length: n }, (_, i) => i)
    const placement = { kind: 'hash', hasher: 'postgres', buckets: n, bucketMap } as const
    const placer = makeKeyPlacer({ column: 'k', keyType: 'bigint', placement })
    expect([0, 1, 2, 3, 4, 5].map((key) => placer.ofString(String(key)))).toEqual(expected)
  })

  it('D115: several tables, each by its own column and rule', () => {
    expect(shardsOf('SELECT * FROM orders WHERE tenant = 3')).toEqual([1])
    expect(shardsOf('SELECT * FROM logs WHERE at = 12')).toEqual([1])
    expect(shardsOf("SELECT * FROM lists WHERE k = 'a'")).toEqual([1])
    expect(shardsOf("SELECT * FROM orders WHERE name = 'a'")).toEqual([0, 1, 2, 3])
  })
})
