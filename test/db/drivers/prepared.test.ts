/** Prepared statements of the protocol and of SQL, their limits, and DDL under them: drawn steps of several clients, as direct. */
import fc from 'fast-check'
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { bySize } from '../../support/test-size.js'
import { type Target, useDriverRig } from './driver-rig.js'

const CLIENTS = 3

type Step =
  | { readonly kind: 'protocol'; readonly client: number; readonly statement: number }
  | { readonly kind: 'unnamed'; readonly client: number; readonly statement: number }
  | { readonly kind: 'sql'; readonly client: number; readonly text: string }

const texts = [
  'select * from shape where id > $1::int order by id',
  'select id, a from shape where id = $1::int',
  'insert into shape (id) values ($1::int + 1000) on conflict do nothing returning *',
  'select $1::int + 1 as n',
  'select 1 / ($1::int - 2) as n',
  ...Array.from({ length: 12 }, (_, n) => `select $1::int * ${n} as product`),
]

const statements = [
  'begin',
  'commit',
  'rollback',
  'savepoint s',
  'rollback to s',
  'alter table shape add column if not exists extra int default 7',
  'alter table shape drop column if exists extra',
  'set search_path to public, pg_catalog',
  'deallocate all',
]

const client = fc.nat({ max: CLIENTS - 1 })
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('protocol' as const),
      client,
      statement: fc.nat({ max: texts.length - 1 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('unnamed' as const),
      client,
      statement: fc.nat({ max: texts.length - 1 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('sql' as const),
      client,
      text: fc.constantFrom(...statements),
    }),
  },
)

/** node-postgres remembers which names it has prepared; it must forget them with the server. */
function forgetNames(client: pg.Client): void {
  const { connection } = client as unknown as { connection: { parsedStatements: object } }
  connection.parsedStatements = {}
}

async function run(target: Target, steps: readonly Step[]): Promise<unknown[]> {
  const clients = Array.from(
    { length: CLIENTS },
    () => new pg.Client({ connectionString: target.url, options: '-c lock_timeout=200ms' }),
  )
  for (const one of clients) await one.connect()
  const answers: unknown[] = []
  try {
    await clients[0]!.query(
      "drop table if exists shape; create table shape (id int primary key, a text default 'a'); insert into shape select generate_series(1, 4)",
    )
    for (const one of steps) {
      const by = clients[one.client]!
      const values = [one.kind === 'sql' ? 0 : (one.statement % 3) + 1]
      const query =
        one.kind === 'sql'
          ? { text: one.text }
          : one.kind === 'unnamed'
            ? { text: texts[one.statement]!, values }
            : { name: `s${one.statement}`, text: texts[one.statement]!, values }
      const answer = await by.query(query).then(
        ({ command, rows, fields }) => ({ command, rows, fields: fields.map(({ name }) => name) }),
        ({ code, message }: { code: string; message: string }) => ({ code, message }),
      )
      if (one.kind === 'sql' && one.text === 'deallocate all' && !('code' in answer))
        forgetNames(by)
      answers.push(answer)
    }
  } finally {
    for (const one of clients) await one.query('rollback')
    for (const one of clients) await one.end()
  }
  return answers
}

describe('prepared statements', () => {
  const rig = useDriverRig(['prepared_statements_limit = 6'])

  it(
    'drawn steps of three clients give what they give directly',
    async () => {
      const [direct, , four] = rig().targets
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
          expect(await run(four!, steps)).toEqual(await run(direct!, steps))
        }),
        { numRuns: bySize(25, 400) },
      )
    },
    bySize(60_000, 600_000),
  )

  it('65,535 parameters go in one Bind', async () => {
    const count = await rig().same(async (target) => {
      const one = new pg.Client({ connectionString: target.url })
      await one.connect()
      const values = Array.from({ length: 65_535 }, (_, n) => n)
      const marks = values.map((_, n) => `($${n + 1}::int)`).join(',')
      const text = `select count(*)::int as n, sum(v)::bigint::text as s from (values ${marks}) t (v)`
      const { rows } = await one.query({ name: 'many', text, values })
      const again = await one.query({ name: 'many', text, values })
      await one.end()
      return [rows, again.rows]
    })
    expect(count[1]).toEqual([{ n: 65_535, s: '2147385345' }])
  })

  it('far more statements than a server may keep, used in turn in one transaction and over many', async () => {
    const sums = await rig().same(async (target) => {
      const one = new pg.Client({ connectionString: target.url })
      await one.connect()
      const round = async () => {
        let sum = 0
        for (let n = 0; n < 40; n++) {
          const { rows } = await one.query({
            name: `n${n}`,
            text: `select ${n}::int + $1::int as v`,
            values: [1],
          })
          sum += rows[0].v as number
        }
        return sum
      }
      const found = [await round(), await round()]
      await one.query('begin')
      found.push(await round(), await round())
      await one.query('commit')
      await one.end()
      return found
    })
    expect(sums).toEqual([820, 820, 820, 820])
  })

  it('SQL and protocol share the names of a client', async () => {
    const answers = await rig().same(async (target) => {
      const one = new pg.Client({ connectionString: target.url })
      await one.connect()
      const found: unknown[] = []
      const ask = async (query: pg.QueryConfig | string) =>
        found.push(
          await one.query(query).then(
            ({ rows, command }) => [command, rows],
            ({ code }: { code: string }) => code,
          ),
        )
      await ask({ name: 'p', text: 'select $1::int as n', values: [1] })
      await ask('execute p (5)')
      await ask('prepare p (int) as select 2')
      await ask('deallocate p')
      await ask('execute p (5)')
      forgetNames(one)
      await ask('prepare q (int) as select $1 * 2 as n')
      await ask('execute q (4)')
      await ask("select count(*)::int as n from pg_prepared_statements where name = 'q'")
      await ask('deallocate q')
      await ask({ name: 'q', text: 'select $1::int as other', values: [1] })
      await ask('discard all')
      await ask('execute q (1)')
      await one.end()
      return found
    })
    expect(answers[1]).toEqual(['SELECT', [{ n: 5 }]])
  })
})
