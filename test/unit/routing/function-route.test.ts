import { beforeAll, describe, expect, test } from 'vitest'
import type { QueryPlanner } from '../../../src/plan/plan.js'
import { textParameters } from '../../../src/routing/describe-route.js'
import { openQueryPlanner } from '../../../src/routing/query-planner.js'
import { makeKeyPlacer } from '../../../src/sharding/key-placer.js'

describe('functions that have a place', () => {
  let planner: QueryPlanner
  beforeAll(async () => {
    planner = await openQueryPlanner({
      sharding: {
        shardCount: 4,
        tables: [],
        referenceTables: [],
        schemas: [],
        otherTables: 'reference',
      },
      functionRoutes: [
        { name: 'get_username', shard: 2 },
        { schema: 'billing', name: 'charge', shard: 3 },
        { name: 'profile', hashArgument: 1, hashType: 'bigint' },
        { name: 'by_name', hashArgument: 2, hashType: 'text' },
      ],
    })
  })

  /** Shard of a key in a table with the same hash. */
  const tableShard = (key: number): string => {
    const placer = makeKeyPlacer({
      name: 't',
      column: 'k',
      keyType: 'bigint',
      placement: { kind: 'hash', hasher: 'postgres', buckets: 4, bucketMap: [0, 1, 2, 3] },
    })
    return String(placer.ofString(String(key)))
  }

  const planOf = (sql: string, values: string[] = []) =>
    planner.plan(sql).statements[0]!.route(textParameters(values), { searchPath: ['public'] })
  const shardOf = (sql: string, values: string[] = []) => {
    const { target, error } = planOf(sql, values)
    return error ? error.code : target.kind === 'some' ? target.shards.join() : target.kind
  }

  test.each([
    ['SELECT get_username(5)', '2'],
    ['SELECT public.get_username(5)::text AS x', '2'],
    ['SELECT * FROM get_username(5) AS u', '2'],
    ['SELECT upper(get_username(5)), now()', '2'],
    ['CALL get_username(5)', '2'],
    ["SELECT billing.charge(1, 'x')", '3'],
    ['SELECT charge(1)', '3'],
    ['SELECT billing.charge(1), get_username(2)', 'ROUTE_FUNCTIONS_APART'],
    ['SELECT get_username(1), get_username(2)', '2'],
  ])('%s: %s', (sql, expected) => {
    expect(shardOf(sql)).toBe(expected)
  })

  test('the hash of an argument is that of a sharded table', () => {
    const placed = Object.fromEntries([1, 2, 3, 11].map((key) => [key, tableShard(key)]))
    for (const key of [1, 2, 3, 11]) {
      const places = [
        shardOf(`SELECT profile(${key})`),
        shardOf('SELECT profile($1)', [String(key)]),
        shardOf(`SELECT * FROM profile(${key}::bigint, 'more')`),
      ]
      expect(new Set(places).size).toBe(1)
      expect(places[0]).toBe(placed[key])
    }
    expect(shardOf("SELECT by_name(1, 'ada')")).toMatch(/^[0-3]$/)
    expect(shardOf('SELECT profile(1), profile(2)')).toBe(
      shardOf('SELECT profile(1)') === shardOf('SELECT profile(2)')
        ? shardOf('SELECT profile(1)')
        : 'ROUTE_FUNCTIONS_APART',
    )
  })

  test('an argument that cannot be read is refused, not guessed', () => {
    expect(shardOf('SELECT profile(random()::bigint)')).toBe('ROUTE_FUNCTION_ARGUMENT')
    expect(shardOf('SELECT profile()')).toBe('ROUTE_FUNCTION_ARGUMENT')
    expect(shardOf('SELECT profile(key => 1)')).toBe('ROUTE_FUNCTION_ARGUMENT')
    expect(shardOf('SELECT profile(VARIADIC ARRAY[1])')).toBe('ROUTE_FUNCTION_ARGUMENT')
  })

  test('it runs on a primary, as it may write', () => {
    expect(planOf('SELECT get_username(5)').role).toBe('primary')
  })
})
