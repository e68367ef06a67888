/** The order of every type against PostgreSQL's own, pair by pair, in text and in binary form. */
import type pg from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import { comparatorOf } from '../../../src/merge/keys/comparator-of.js'
import { usePostgres } from '../../support/use-postgres.js'
import { moneySample, samples, valuesOf } from './samples.js'

const postgres = usePostgres()
let client: pg.Client
beforeAll(async () => {
  client = await postgres().connect()
  await client.query(`SELECT setseed(0.42)`)
  await client.query(`SET TimeZone TO 'Europe/Berlin'`)
})

interface Row {
  t: string
  b: Buffer
  rank: string
}

const collated = /^(text|varchar|char\()/

async function ranked(sample: (typeof samples)[number]): Promise<Row[]> {
  const [{ typsend }] = (
    await client.query<{ typsend: string }>(`SELECT typsend::text FROM pg_type WHERE oid = $1`, [
      sample.oid,
    ])
  ).rows as [{ typsend: string }]
  const order = collated.test(sample.type) ? 'v COLLATE "C"' : 'v'
  const { rows } = await client.query<Row>(
    `WITH v AS MATERIALIZED (${valuesOf(sample)})
     SELECT format('%s', v) AS t, ${typsend}(v) AS b, dense_rank() OVER (ORDER BY ${order}) AS rank
     FROM v ORDER BY ${order}`,
  )
  return rows
}

/** Number of pairs that are ordered unlike PostgreSQL orders them. */
function check(oid: number, format: number, rows: readonly Row[]): string[] {
  const comparator = comparatorOf({ typeOid: oid, format, bytewise: true })!
  const bytes = Buffer.concat(rows.map(({ t, b }) => (format === 0 ? Buffer.from(t) : b)))
  let at = 0
  rows.forEach(({ t, b }, slot) => {
    const length = format === 0 ? Buffer.byteLength(t) : b.length
    comparator.read(bytes, at, at + length, slot)
    at += length
  })
  const wrong: string[] = []
  rows.forEach((a, i) => {
    comparator.keep(i, rows.length)
    rows.forEach((b, j) => {
      const wanted = Math.sign(Number(a.rank) - Number(b.rank))
      const order = Math.sign(comparator.compare(i, j))
      const kept = Math.sign(comparator.compare(rows.length, j))
      const same = comparator.identity(i) === comparator.identity(j)
      if (order !== wanted || kept !== wanted || same !== (wanted === 0))
        wrong.push(`${a.t} ${b.t}: ${order} ${kept} ${same}, not ${wanted}`)
    })
  })
  return wrong
}

describe.each(samples)('$type', (sample) => {
  test('D121: every pair of values, in text and in binary form', async () => {
    const rows = await ranked(sample)
    expect(rows.length).toBeGreaterThan(50)
    expect(check(sample.oid, 0, rows)).toEqual([])
    expect(check(sample.oid, 1, rows)).toEqual([])
  })
})

test('D121: money, in binary form', async () => {
  expect(check(moneySample.oid, 1, await ranked(moneySample))).toEqual([])
  const text = { typeOid: moneySample.oid, format: 0, bytewise: true }
  expect(comparatorOf(text)).toBeUndefined()
})

test.each([
  ['date', 'DateStyle', 'SQL, DMY', `date '2024-02-01'`],
  ['date', 'DateStyle', 'German', `date '2024-02-01'`],
  ['timestamp', 'DateStyle', 'Postgres, DMY', `timestamp '2024-02-01 12:00'`],
  ['timestamptz', 'DateStyle', 'SQL, MDY', `timestamptz '2024-02-01 12:00'`],
  ['interval', 'IntervalStyle', 'iso_8601', `interval '1 day'`],
  ['interval', 'IntervalStyle', 'sql_standard', `interval '1 day 2 hours'`],
  ['interval', 'IntervalStyle', 'postgres_verbose', `interval '1 day'`],
  ['bytea', 'bytea_output', 'escape', `bytea 'abc'`],
])('a value of type %s written under %s %s is refused', async (type, setting, value, sql) => {
  await client.query(`SET ${setting} TO ${value}`)
  const { rows } = await client.query<{ t: string }>(`SELECT format('%s', ${sql}) AS t`)
  await client.query(`RESET ${setting}`)
  const oid = samples.find((sample) => sample.type === type)!.oid
  const comparator = comparatorOf({ typeOid: oid, format: 0, bytewise: true })!
  const bytes = Buffer.from(rows[0]!.t)
  const form = expect.objectContaining({ code: 'MERGE_VALUE_FORM' })
  expect(() => comparator.read(bytes, 0, bytes.length, 0)).toThrowError(form)
})
