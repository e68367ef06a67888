import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse } from 'csv-parse/sync'
import { expect, test } from 'vitest'
import {
  csvLine,
  customerColumns,
  customerId,
  customerRow,
  orderRow,
  writeCustomers,
} from '../../../src/demo/data-set.js'
import { Digest } from '../../../src/demo/digest.js'

test('keys are unique, negative, and beyond 53 bits', () => {
  const ids = Array.from({ length: 5000 }, (_, n) => customerId(n))
  expect(new Set(ids).size).toBe(ids.length)
  expect(ids.some((id) => id.startsWith('-'))).toBe(true)
  expect(ids.some((id) => BigInt(id) > BigInt(Number.MAX_SAFE_INTEGER))).toBe(true)
  expect(ids.some((id) => BigInt(id) < -BigInt(Number.MAX_SAFE_INTEGER))).toBe(true)
})

test('rows are the same each time, and hold what hurts', () => {
  expect(customerRow(17)).toEqual(customerRow(17))
  expect(orderRow(17, 2)).toEqual(orderRow(17, 2))
  const fields = Array.from({ length: 2000 }, (_, n) => customerRow(n)).flat()
  for (const wanted of [null, '', '\\.', '\\N', 'two\nlines', 'tab\tand\\backslash'])
    expect(fields).toContain(wanted)
})

test('a change is a whole unit more', () => {
  const cents = (row: (string | null)[]) => Math.round(Number(row[4]) * 100)
  for (const n of [0, 5, 99]) expect(cents(customerRow(n, 1)) - cents(customerRow(n))).toBe(100)
})

test('CSV tells NULL from the empty string', () => {
  expect(csvLine([null, '', 'a', 'b"c', '\\.', 'x\ny'])).toBe(',"",a,"b""c","\\.","x\ny"\n')
})

test('the file holds the rows of the digest', async () => {
  const place = mkdtempSync(join(tmpdir(), 'pgshard-unit-'))
  try {
    const made = await writeCustomers(join(place, 'c.csv'), 500)
    const text = readFileSync(made.path)
    expect(made.bytes).toBe(text.length)
    const [header, ...rows] = parse(text, {
      cast: (value, { quoting }) => (value === '' && !quoting ? null : value),
    }) as (string | null)[][]
    expect(header).toEqual(customerColumns)
    const digest = new Digest()
    for (const row of rows.reverse()) digest.add(row)
    expect(digest.equals(made.digest)).toBe(true)
  } finally {
    rmSync(place, { recursive: true })
  }
})
