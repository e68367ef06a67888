/**
 * Ways in which a statement may mean another shard than it seems to: keys that the server stores otherwise than they are
 * written, equality of unlike types, names that mean something else to this session. Each is answered as one PostgreSQL
 * answers it, or refused.
 */
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import pg from 'pg'
import { from } from 'pg-copy-streams'
import { describe, expect, it } from 'vitest'
import type { ServerConnection } from '../../src/server/server-connection.js'
import { keys, loadable, rows, schema, sharding } from '../support/arbitraries/holes.js'
import { binaryOf } from '../support/key-binary.js'
import { type Answer, type AskedParameter, ask, asMultiset, openTarget } from './ask.js'
import { useOracle } from './targets.js'

describe('statements that mean another shard than they seem to', () => {
  const oracle = useOracle({
    setupSql: `${schema};\n${rows}`,
    shardSql: schema,
    tables: loadable.concat('kind'),
    shards: 3,
    sharding,
    searchPath: 'hole',
  })

  const judge = (direct: Answer, over: Answer, sql: string): 'answered' | 'refused' => {
    if (over.error?.sqlstate === '0A000') return 'refused'
    expect(over.error?.sqlstate, `${sql}: ${over.error?.message}`).toBe(direct.error?.sqlstate)
    expect(asMultiset(over.rows), sql).toEqual(asMultiset(direct.rows))
    expect(over.tag, sql).toBe(direct.tag)
    return 'answered'
  }

  /** Asks both, in a transaction that is rolled back; stops at the first error. */
  async function both(sqls: readonly string[], parameters: readonly AskedParameter[] = []) {
    const { plain, sharded } = oracle()
    const targets = [plain, sharded] as const
    const mode = parameters.length > 0 ? 'extended text' : 'simple'
    const verdicts: string[] = []
    for (const target of targets) await ask(target, 'begin', 'simple')
    for (const sql of sqls) {
      const direct = await ask(plain, sql, mode, parameters)
      const over = await ask(sharded, sql, mode, parameters)
      verdicts.push(judge(direct, over, sql))
      if (over.error ?? direct.error) break
    }
    for (const target of targets) await ask(target, 'rollback', 'simple')
    return verdicts
  }

  const stored: [string, string, string][] = [
    ['code', "'a    '", 'a  '],
    ['code', "'abc  '", 'abc'],
    ['code', "'a b  '", 'a b'],
    ['code', "'äöü   '", 'äöü'],
    ['code', "'abcd'", 'abc'],
    ['dom_code', "'xyz   '", 'xyz'],
    ['dom_acct', "'  77 '", '77'],
    ['dom_acct', '1000001', '1000001'],
    ['price', '1.25', '1.3'],
    ['price', '-1.25', '-1.3'],
    ['price', "'0.04'", '0.0'],
    ['price', '99.96', '100.0'],
    ['price', '1234567', '1234567'],
    ['zip', "'ab    '", 'ab'],
    ['zip', "'abcde'", 'abcd'],
    ['tick', "'2024-03-01 10:00:00.5'", '2024-03-01 10:00:01'],
    ['tick', "'1999-12-31 23:59:59.7'", '2000-01-01 00:00:00'],
    ['tick', "'1960-01-01 00:00:00.5'", '1960-01-01 00:00:01'],
    ['tick', "'1960-01-01 00:00:00.4'", '1960-01-01 00:00:00'],
  ]

  it.each(stored)('%s stores %s where %s is looked for', async (table, written, kept) => {
    await both([
      `insert into ${table} (k, id) values (${written}, 999)`,
      `select k, id from ${table} where k = '${kept}'`,
      `select id from ${table} where id = 999`,
    ])
    const first = `insert into ${table} (k, id) values (${written}, 999)`
    expect(await both([first])).toEqual(['answered'])
  })

  it.each(stored)('%s: UPDATE of the key to %s and a look for %s', async (table, written, kept) => {
    await both([
      `insert into ${table} (k, id) values ('${kept}', 999)`,
      `update ${table} set k = ${written} where k = '${kept}' and id = 999`,
      `select k, id from ${table} where k = '${kept}'`,
    ])
  })

  it.each(['code', 'price', 'tick', 'zip', 'dom_code', 'dom_acct'])(
    'COPY puts rows of %s where they are looked for',
    async (table) => {
      const { plain, sharded } = oracle()
      const list = await ask(plain, `select k::text from ${table}`, 'simple')
      for (const [key] of list.rows) {
        const sql = `select k, id from ${table} where k = '${key}'`
        judge(await ask(plain, sql, 'simple'), await ask(sharded, sql, 'simple'), sql)
      }
      expect(list.rows.length).toBeGreaterThan(20)
    },
  )

  it('COPY of values that the column cuts or rounds', async () => {
    const { served, sharded } = oracle()
    const client = await served.connect()
    const cases: [string, string, string][] = [
      ['code', 'q    ', 'q  '],
      ['code', 'abc  ', 'abc'],
      ['price', '7.77', '7.8'],
      ['tick', '2024-05-05 05:05:05.9', '2024-05-05 05:05:06'],
    ]
    for (const [table, written, kept] of cases) {
      const stream = client.query(from(`copy hole.${table} (k, id) from stdin`))
      await pipeline(Readable.from([`${written}\t888\n`]), stream)
      const found = await ask(
        sharded,
        `select id from ${table} where k = '${kept}' and id = 888`,
        'simple',
      )
      expect(found.rows, `${table} ${written}`).toEqual([['888']])
    }
    await client.end()
  })

  const comparisons = [
    'select id from acct where k = 5.0',
    'select id from acct where k = 5.4::int8',
    "select id from acct where k = '5'::text",
    'select id from acct where k = 5::numeric',
    'select id from acct where k = 5::float8',
    'select id from acct where k = 2 + 3',
    'select id from acct where k = 9999999999999999999999',
    'select id from small where k = 5000000000',
    "select id from person where k = 'x5'::name",
    "select id from person where k = 'x5 '::bpchar",
    `select id from person where k = 'x5' collate "C"`,
    'select a.k from acct a join item i on a.k = i.k where i.k = 7',
    'select a.k from acct a join item i on a.k = i.n and i.n = 7.0',
    'select a.k from acct a join item i on a.k = i.f where i.f = 7 and a.k = 7 and i.k = 7',
    "select p.id from person p join acct a on p.k = a.b where a.b = 'x7 ' and a.k = 7",
    "select p.id from person p, kind where p.k = 'x1 '::char(2)",
    "select id from acct where k = any('{1,NULL,2}')",
    'select id from acct where k = any(array[1, null])',
    'select id from acct where k <> all(array[1, null])',
    'select id from acct where (k = 5) is not distinct from true',
    'select id from acct where not (k <> 5)',
    'select id from acct where k is not distinct from 5',
    "select id from price where k = '5.5'::numeric(3,1)",
    'select id from price where k = 5.45::numeric(3,1)',
    "select id from code where k = 'bcdef'::varchar(1)",
    "select id from loose where k = 'X5'",
    'select count(*) from floaty where k = 5',
    'select lower(k) from acct',
    'select k <+> id from acct',
    'select count_acct()',
    'select * from pg_kind',
    'select * from pg_class where false',
    'select h.k from acct h, hole.item where hole.item.k = 5 and h.k = 5',
  ]

  it.each(comparisons)('%s', async (sql) => {
    await both([sql])
  })

  const typed: [string, number, string, string][] = [
    ['select id from acct where k = $1', 23, 'integer', '7'],
    ['select id from acct where k = $1', 21, 'smallint', '7'],
    ['select id from acct where k = $1', 1700, 'numeric', '7.0'],
    ['select id from acct where k = $1', 25, 'text', '7'],
    ['select id from acct where k = $1::int8', 1700, 'numeric', '6.6'],
    ['select id from acct where k = $1::int8', 25, 'text', ' 7'],
    ['select id from acct where n = $1 and k = $1', 0, 'numeric', '7.0'],
    ['select id from acct where n = $1 and k = $1::int8', 0, 'numeric', '6.6'],
    ['select p.id from person p where b = $1 and k = $1', 0, 'text', 'x7 '],
    ['select id from price where k = $1::int4', 1700, 'numeric', '7.5'],
    ['select id from price where k = $1', 23, 'integer', '7'],
    ['select id from person where k = $1', 1042, 'text', 'x7 '],
    ['select id from person where k = $1', 19, 'text', 'x7'],
    ['select id from person where k = $1', 1043, 'text', 'x7'],
    ['select a.id from acct a, item i where a.k = $1 and i.k = $1', 0, 'bigint', '7'],
  ]

  it.each(typed)('%s with type %i (%s) of %s', async (sql, type, form, text) => {
    for (const format of [0, 1] as const) {
      const bytes = format === 1 ? binaryOf(form, text) : Buffer.from(text)
      await both([sql], [{ type, format, bytes }])
    }
  })

  it('a parameter that stands for two keys is still a key', async () => {
    const sql = 'select a.id from acct a join item i on a.id = i.id where a.k = $1 and i.k = $1'
    const parameter = { type: 0, format: 0, bytes: Buffer.from('7') } as const
    expect(await both([sql], [parameter])).toEqual(['answered'])
  })

  it('keys of every kind are found where they are', async () => {
    for (const k of keys) {
      const sqls = [
        `select id from acct where k = ${k}`,
        `select id from dom_acct where k = ${k}`,
        `select id from small where k = ${k}`,
        `select id from person where k = 'x${k}'`,
        `select id from price where k = ${k}.50`,
        `select id from code where k = '${String.fromCharCode(97 + k)}'`,
      ]
      for (const sql of sqls) expect(await both([sql]), sql).toEqual(['answered'])
    }
  })

  /** Two sessions of their own, so that what they set is theirs. */
  async function sessions(run: (target: ServerConnection, isPlain: boolean) => Promise<Answer>) {
    const { plain, served } = oracle()
    const database = (await ask(plain, 'select current_database()', 'simple')).rows[0]![0]!
    const port = (await ask(plain, "select setting from pg_settings where name = 'port'", 'simple'))
      .rows[0]![0]!
    const answers: Answer[] = []
    for (const target of [
      { name: 'plain', port: Number(port), database },
      { name: 'sharded', port: served.port, database: 'app' },
    ]) {
      const connection = await openTarget(target)
      await ask(connection, 'set search_path to hole', 'simple')
      answers.push(await run(connection, target.name === 'plain'))
      connection.close()
    }
    return answers as [Answer, Answer]
  }

  it('standard_conforming_strings = off changes what a backslash means', async () => {
    const off = 'set standard_conforming_strings to off'
    for (const sql of [
      "select id from person where k = '\\x785'",
      "select 'it\\'s', id from acct where k = 5 --'",
    ]) {
      const [direct, over] = await sessions(async (target) => {
        await ask(target, off, 'simple')
        return ask(target, sql, 'simple')
      })
      expect(direct.error, sql).toBeUndefined()
      expect(judge(direct, over, sql)).toBe('refused')
    }
    const [direct, over] = await sessions(async (target) => {
      await ask(target, off, 'simple')
      return ask(target, "select id from person where k = 'x5'", 'extended text')
    })
    expect(judge(direct, over, 'without a backslash')).toBe('answered')
  })

  it('standard_conforming_strings = off in the same request', async () => {
    const sql =
      "set standard_conforming_strings to off; select id from person where k = '\\170\\065'"
    const [direct, over] = await sessions((target) => ask(target, sql, 'simple'))
    expect(judge(direct, over, sql)).toBe('answered')
  })

  it('search_path set in the same request', async () => {
    // written through the proxy, so that the row stands where its key says
    const written = 'insert into postgres.shadow values (5, 55)'
    for (const answer of await sessions((target) => ask(target, written, 'simple')))
      expect(answer.error).toBeUndefined()
    const sql = 'set search_path to postgres; select id from shadow where k = 5'
    const [direct, over] = await sessions((target) => ask(target, sql, 'simple'))
    expect(direct.rows).toEqual([['55']])
    expect(judge(direct, over, sql)).toBe('answered')
  })

  it('$user in search_path may name a schema of the user', async () => {
    const sql = 'select id from shadow where k = 1'
    const [direct, over] = await sessions(async (target) => {
      await ask(target, 'set search_path to "$user", hole', 'simple')
      return ask(target, sql, 'simple')
    })
    expect(direct.rows).toEqual([['2']])
    expect(judge(direct, over, sql)).toBe('refused')
    const [one, other] = await sessions(async (target) => {
      await ask(target, 'set search_path to "$user", hole', 'simple')
      return ask(target, 'select id from acct where k = 1', 'simple')
    })
    expect(judge(one, other, 'a table that is in one schema only')).toBe('answered')
  })

  it('a temporary table hides the sharded one of its name', async () => {
    const make = async (target: ServerConnection, isPlain: boolean) => {
      const hint = isPlain ? '' : '/* pgshard_shard: 1 */ '
      const made = await ask(
        target,
        `${hint}create temporary table acct (k bigint, id int)`,
        'simple',
      )
      expect(made.error).toBeUndefined()
      await ask(target, `${hint}insert into pg_temp.acct values (1, 77), (2, 78)`, 'simple')
    }
    for (const k of [1, 2, 3]) {
      const sql = `select id from acct where k = ${k}`
      const [direct, over] = await sessions(async (target, isPlain) => {
        await make(target, isPlain)
        return ask(target, sql, 'simple')
      })
      judge(direct, over, sql)
    }
    const [direct, over] = await sessions(async (target, isPlain) => {
      await make(target, isPlain)
      return ask(target, 'select id from hole.acct where k = 3', 'simple')
    })
    expect(judge(direct, over, 'with its schema')).toBe('answered')
    const [own, same] = await sessions(async (target, isPlain) => {
      await make(target, isPlain)
      return ask(target, 'select * from pg_temp.acct', 'simple')
    })
    expect(judge(own, same, 'pg_temp.acct')).toBe('answered')
  })

  it('SQL PREPARE and EXECUTE find the rows of every shard', async () => {
    for (const k of keys.slice(0, 6)) {
      const [direct, over] = await sessions(async (target) => {
        const made = await ask(target, 'prepare p as select id from acct where k = $1', 'simple')
        return made.error ? made : ask(target, `execute p(${k})`, 'simple')
      })
      judge(direct, over, `execute p(${k})`)
      const [one, other] = await sessions(async (target) => {
        const made = await ask(target, `prepare q as select id from acct where k = ${k}`, 'simple')
        return made.error ? made : ask(target, 'execute q', 'simple')
      })
      expect(judge(one, other, `prepared with ${k}`)).toBe('answered')
    }
  })

  it('an operator of a user that compares keys is not taken for the built-in one', async () => {
    const { plain, served } = oracle()
    const make =
      'create operator hole.= (leftarg = varchar, rightarg = varchar, function = hole.any_case)'
    await ask(plain, make, 'simple')
    for (const shard of [0, 1, 2]) await served.query(`/* pgshard_shard: ${shard} */ ${make}`)
    const admin = new pg.Client({ connectionString: served.adminUrl })
    await admin.connect()
    await admin.query('RELOAD')
    await admin.end()
    const sql = "select id from watched where k = 'X5'"
    const [direct, over] = await sessions((target) => ask(target, sql, 'simple'))
    expect(direct.rows).toEqual([['5']])
    expect(judge(direct, over, sql)).toBe('refused')
  })
})
