/** Joins of which one side is filtered: the other is not copied whole, and the answer is that of one PostgreSQL. */
import type pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { useGatherRig, withClient } from './gather-rig.js'

const rig = useGatherRig(['gather_max_rows = 6000'])
const ROWS = 12_000

/** Every seventh text of `wide` is NULL, a third of the notes none of them. */
const purse = `select i::bigint as k, i as id, i % 50 as amount, case when i % 3 = 0 then 'ü' || i else i::text end as note from generate_series(1, ${ROWS}) i`
const chest = `select i::bigint as k, (i * 7919) % ${ROWS} as id, i % 9 as amount, null::timestamptz as kept from generate_series(1, ${ROWS}) i`
const wide = `select i::bigint as k, nullif(i % 7, 0)::text || case when i % 2 = 0 then i::text else '' end as v from generate_series(1, ${ROWS}) i`

const plainly = (sql: string): string =>
  `with purse as (${purse}), chest as (${chest}), wide as (${wide}) ${sql}`

beforeAll(async () => {
  await withClient(rig().served, async (client) => {
    for (const [name, rows] of Object.entries({ purse, chest, wide })) {
      for (let from = 1; from <= ROWS; from += 4000) {
        const { rows: values } = await withRows(rows, from)
        await client.query(`insert into ${name} values ${values.map(tuple).join(', ')}`)
      }
    }
  })
}, 60_000)

const withRows = async (sql: string, from: number) => ({
  rows: await rig().onShard(
    0,
    `select * from (${sql}) s where k between ${from} and ${from + 3999}`,
  ),
})

const literal = (value: unknown): string =>
  value === null ? 'null' : typeof value === 'string' ? `'${value}'` : String(value)
const tuple = (row: Record<string, unknown>): string =>
  `(${Object.values(row).map(literal).join(', ')})`

const same = async (client: pg.Client, sql: string) => {
  const { rows } = await client.query(sql)
  const texts = (all: unknown[]) => all.map((row) => JSON.stringify(row)).sort()
  expect(texts(rows), sql).toEqual(texts(await rig().onShard(0, plainly(sql))))
  return rows
}

describe('a join filtered on one side', () => {
  it.each([
    ['', ''],
    ['begin isolation level repeatable read', 'commit'],
  ])('D117, D132: reads of the other what joins (%s)', async (begin, end) => {
    await withClient(rig().served, async (client) => {
      if (begin) await client.query(begin)
      const few = 'p.amount = 3 and p.k < 2000'
      for (const sql of [
        `select p.k, c.k as other from purse p join chest c on c.id = p.id where ${few}`,
        `select p.k, c.k as other from purse p left join chest c on c.id = p.id and c.amount > p.amount where ${few}`,
        `select p.k, c.k as other from chest c right join purse p using (id) where ${few}`,
        // a chain, text, and blanks where there is nothing to join
        `select p.k, c.k as other, w.k as third from purse p join chest c on c.id = p.id join wide w on w.k = c.id where ${few}`,
        `select p.k, w.k as other from purse p left join wide w on w.v = p.note where ${few}`,
        // two tables whose values are asked for in one round, of different types
        `select p.k, c.k as other, w.k as third from purse p join chest c on c.id = p.id left join wide w on w.v = p.note where ${few}`,
        `select p.k, w.k as other, c.k as third from purse p left join wide w on w.v = p.note join chest c on c.id = p.id where ${few}`,
        `select p.k, w.k as other from purse p left join wide w on w.v = p.note where p.k < 300 and p.note < '9'`,
        `select p.k, w.k as other from purse p join wide w on w.v = p.note where p.k = -1`,
        `select p.k, (select count(*)::int from chest c where c.id = p.id) as n from purse p where ${few}`,
        `select p.k from purse p where ${few} and not exists (select from chest c where c.id = p.id and c.amount < p.amount)`,
        `select count(*)::int as n, sum(c.amount)::int as s from purse p, chest c where c.id = p.id and ${few}`,
      ]) {
        await same(client, sql)
      }
      if (end) await client.query(end)
    })
    await rig().expectClean()
  })

  it('D117: reads it whole when too many values join', async () => {
    await withClient(rig().served, async (client) => {
      // 6,000 rows are more than the values that are sent, and the limit stops the rest
      const sql = 'select p.k from purse p join chest c on c.id = p.id where p.k <= 5900'
      await expect(client.query(sql)).rejects.toMatchObject({ code: '54000' })
    })
    await rig().expectClean()
  })
})
