import { describe, expect, it } from 'vitest'
import { joinedTo, wasReadable } from '../../../src/gather/part-sql.js'
import { analyzeSql, planLoad, type Situation } from '../../../src/gather/plan-load.js'
import { roundsOf } from '../../../src/gather/take-rounds.js'
import type { GatheredTable } from '../../../src/plan/gather-program.js'
import { rawSetting, Settings } from '../../../src/server/settings.js'

const INT4 = 23
const USER_TYPE = 20_000
const BPCHAR = 1042

const table = (
  name: string,
  types: number[],
  more: Partial<GatheredTable> = {},
): GatheredTable => ({
  schema: 'public',
  name,
  columns: types.map((type, i) => ({ name: `c${i}`, type })),
  only: false,
  shards: { kind: 'all' },
  ...more,
})

const outside: Situation = { shardCount: 3, ownShard: 1, snapshot: 'none', settings: Settings.none }
const inside: Situation = { shardCount: 2, snapshot: 'statement', settings: Settings.none }

describe('joined tables', () => {
  const joined = { column: 'c0', to: 'a', theirs: 'k', type: INT4 }
  const [a, b] = [table('a', [INT4], { filter: 'c0 = 1' }), table('b', [INT4], { joined })]
  const c = table('c', [INT4], { joined: { ...joined, to: 'b' } })

  it('come after those that they join, unless each statement sees other rows', () => {
    const names = (rounds: readonly (readonly GatheredTable[])[]) =>
      rounds.map((round) => round.map(({ name }) => name).join())
    expect(names(roundsOf([c, b, a], 'none'))).toEqual(['a', 'b', 'c'])
    expect(names(roundsOf([b, table('d', []), a], 'transaction'))).toEqual(['d,a', 'b'])
    expect(names(roundsOf([c, b, a], 'statement'))).toEqual(['c,b,a'])
  })

  it('send the rows of the values that there are; all of them when these cannot be told', () => {
    expect(joinedTo(b, '{1,2}').filter).toBe('"c0" = ANY (\'{1,2}\'::pg_catalog.int4[])')
    expect(joinedTo(b, null).filter).toBe('"c0" = ANY (\'{}\'::pg_catalog.int4[])')
    const texts = table('b', [25], { joined: { ...joined, type: 25 } })
    const quoted = joinedTo(texts, '{"it\'s","a\\\\b"}').filter
    expect(quoted).toBe(`"c0" = ANY (E'{"it''s","a\\\\\\\\b"}'::pg_catalog.text[])`)
    expect([wasReadable('{é}', 'UTF8'), wasReadable('{é}', 'LATIN1')]).toEqual([true, false])
    expect(wasReadable('{e}', 'LATIN1')).toBe(true)
    expect(joinedTo(b, `{${'1,'.repeat(200_000)}1}`).filter).toBeUndefined()
  })
})

describe('planLoad', () => {
  it('reads a shard’s tables in one REPEATABLE READ, and its own part where it stands', () => {
    const load = planLoad(
      [table('a', [INT4]), table('b', [INT4], { filter: 'c0 = 1' })],
      [],
      outside,
    )
    expect(load.formats).toEqual(['binary', 'binary'])
    expect(load.sources.map(({ shard }) => shard)).toEqual([0, 2])
    expect(load.sources[0]!.sql).toBe(
      'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; COPY (SELECT "c0" FROM "public"."a") TO STDOUT (FORMAT binary); COPY (SELECT "c0" FROM "public"."b" WHERE c0 = 1) TO STDOUT (FORMAT binary); COMMIT',
    )
    expect(load.loadSql).toContain(
      'INSERT INTO pg_temp."b" SELECT "c0" FROM "public"."b" WHERE c0 = 1',
    )
  })

  it('takes no COPY for a table that only the finishing shard has, nor one of it for a shard without it', () => {
    const one = table('a', [INT4], { shards: { kind: 'some', shards: [1] } })
    const two = table('b', [INT4], { shards: { kind: 'some', shards: [2] } })
    const load = planLoad([one, two], [], outside)
    expect(load.formats).toHaveLength(1)
    expect(load.sources).toMatchObject([{ shard: 2, tables: [{ number: 0 }] }])
    expect(load.loadSql).not.toContain('COPY pg_temp."a"')
    expect(load.loadSql).not.toContain('INSERT INTO pg_temp."b"')
  })

  it('reads several tables in one statement of a READ COMMITTED transaction, without parallel plans', () => {
    const load = planLoad([table('a', [INT4, BPCHAR]), table('b', [INT4])], [], inside)
    expect(load.formats).toEqual(['text', 'text'])
    const [source] = load.sources
    expect(source).toMatchObject({ isTogether: true, tables: [{ columns: 2 }, { columns: 1 }] })
    expect(source!.sql).toMatch(/^SAVEPOINT pgshard_gather; SET LOCAL datestyle TO ISO;/)
    expect(source!.sql).toContain('SELECT 1, "c0"::pg_catalog.text, NULL::pg_catalog.text FROM')
    expect(source!.sql).toContain('pg_catalog.concat("c1")')
    expect(source!.sql).toContain('WHERE false AND pg_catalog.set_config')
    expect(source!.sql).toMatch(
      /; ROLLBACK TO SAVEPOINT pgshard_gather; RELEASE SAVEPOINT pgshard_gather$/,
    )
  })

  it('reads one table there in binary, without a savepoint', () => {
    const [source] = planLoad([table('a', [INT4])], [], inside).sources
    expect(source!.sql).toMatch(/^COPY \(SELECT[^;]*\(FORMAT binary\)$/)
  })

  it('sends types of users as exact text, and gives the client its own settings again', () => {
    const settings = Settings.none
      .with('datestyle', "'German'")
      .with('intervalstyle', rawSetting('sql_standard'))
    const load = planLoad([table('a', [USER_TYPE])], [], { ...outside, settings })
    expect(load.formats).toEqual(['text'])
    expect(load.sources[0]!.sql).toContain('SET LOCAL extra_float_digits TO 3')
    const [, restored] = load.loadSql.split('FROM STDIN (FORMAT text)')
    expect(restored).toContain("SET LOCAL datestyle TO 'German'")
    expect(restored).toContain("SET LOCAL intervalstyle TO 'sql_standard'")
    expect(restored).toContain('SET LOCAL extra_float_digits TO DEFAULT')
  })

  it('goes on in the transactions that a load before it has begun, and ends them in the last', () => {
    const [first, second] = [table('a', [INT4], { filter: 'c0 = 1' }), table('b', [INT4])]
    const begins = /^BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; COPY/
    const none = { begun: new Set<number>(), isFirst: true, isLast: false }
    const one = planLoad([first], [], outside, none)
    expect(one.loadSql).toMatch(/^BEGIN/)
    expect(one.sources.map(({ sql }) => begins.test(sql) && !sql.endsWith('COMMIT'))).toEqual([
      true,
      true,
    ])
    const last = { begun: new Set([0]), isFirst: false, isLast: true }
    const two = planLoad([second], [], outside, last)
    expect(two.loadSql).not.toMatch(/BEGIN/)
    expect(two.sources.map(({ sql }) => begins.test(sql))).toEqual([false, true])
    expect(two.sources.map(({ sql }) => sql.endsWith('; COMMIT'))).toEqual([true, true])
  })

  it('makes keys before views, and takes a small sample', () => {
    const keyed = table('a"b', [INT4], { primaryKey: ['c0'] })
    const load = planLoad([keyed], [{ name: 'v', sql: 'SELECT 1' }], outside)
    expect(load.loadSql).toMatch(
      /ALTER TABLE pg_temp\."a""b" ADD PRIMARY KEY \("c0"\); CREATE TEMPORARY VIEW "v" AS SELECT 1$/,
    )
    expect(analyzeSql([keyed], Settings.none)).toBe(
      'SET LOCAL default_statistics_target TO 20; ANALYZE pg_temp."a""b"; SET LOCAL default_statistics_target TO DEFAULT',
    )
  })
})
