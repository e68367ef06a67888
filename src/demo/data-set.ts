/**
 * The demo's rows: customers and their orders, made from their number alone, so that any of them
 * can be made again and compared. Every kind of value that splitters and parsers get wrong is in
 * them: quotes, newlines, tabs, commas, backslashes, "\.", NULL beside the empty string, letters
 * of many scripts, negative keys and keys beyond what a double holds.
 */
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { finished } from 'node:stream/promises'
import { Digest, type Field } from './digest.js'

export const ORDERS_PER_CUSTOMER = 4

export const schemaSql = `
CREATE TABLE customers (
  id bigint PRIMARY KEY, name text NOT NULL, email text, note text,
  balance numeric(12,2) NOT NULL, joined date NOT NULL);
CREATE TABLE orders (
  customer_id bigint NOT NULL, id bigint NOT NULL, item text NOT NULL,
  amount numeric(10,2) NOT NULL, placed_at timestamptz NOT NULL, remark text,
  PRIMARY KEY (customer_id, id));`

export const customerColumns = ['id', 'name', 'email', 'note', 'balance', 'joined']
export const orderColumns = ['customer_id', 'id', 'item', 'amount', 'placed_at', 'remark']

const names = [
  'Ada Lovelace',
  "Siobhán O'Brien",
  '李小龍',
  'Николай Гоголь',
  'محمد الخوارزمي',
  'Zoë "Zed" Müller',
  'José, Núñez & Søn',
  'ガブリエル',
  "Robert'); DROP TABLE customers;--",
  'Ἀριστοτέλης',
]

const notes: Field[] = [
  null,
  '',
  'plain',
  'two\nlines',
  'said "quoted, twice" and left',
  'tab\tand\\backslash',
  '\\.',
  '\\N',
  'NULL',
  ' spaces kept ',
  "it's",
  '🐘🐘 postgres 🐘',
  ',,,',
  'carriage\r\nreturn',
  '{"json": ["a", 1, null]}',
  '"',
]

const items = ['tea', 'coffee; black', 'bread "dark"', 'naïve café', '豆腐', 'milk,\nskimmed']

/** A well mixed 32-bit number for each `n`. */
export function scramble(n: number): number {
  let x = (n + 0x9e3779b9) | 0
  x = Math.imul(x ^ (x >>> 16), 0x21f0aaad)
  x = Math.imul(x ^ (x >>> 15), 0x735a2d97)
  return (x ^ (x >>> 15)) >>> 0
}

const cents = (value: number): string => {
  const sign = value < 0 ? '-' : ''
  const abs = Math.abs(value)
  return `${sign}${Math.floor(abs / 100)}.${String(abs % 100).padStart(2, '0')}`
}

/** The key of the n-th customer: every third is negative, every fiftieth needs 64 bits. */
export function customerId(n: number): string {
  if (n % 50 === 7) return String((n % 100 === 7 ? 1n : -1n) * (9_007_199_254_740_993n + BigInt(n)))
  return String(n % 3 === 0 ? -n - 1 : n + 1)
}

const DAY_MS = 86_400_000
const FIRST_DAY_MS = Date.UTC(2015, 0, 1)

export function customerRow(n: number, changes = 0): Field[] {
  const random = scramble(n)
  const email = random % 11 === 0 ? null : random % 13 === 0 ? '' : `c${n}@example.com`
  return [
    customerId(n),
    `${names[random % names.length]} ${n}`,
    email,
    notes[(random >>> 8) % notes.length]!,
    cents(((random >>> 4) % 20_000_000) - 5_000_000 + changes * 100),
    new Date(FIRST_DAY_MS + ((random >>> 3) % 4000) * DAY_MS).toISOString().slice(0, 10),
  ]
}

/** The k-th order of the n-th customer. */
export function orderRow(n: number, k: number): Field[] {
  const random = scramble(n * 31 + k * 7919)
  const placed = new Date(FIRST_DAY_MS + (random % 4_000_000) * 86_000)
  return [
    customerId(n),
    String(k + 1),
    items[random % items.length]!,
    cents((random >>> 5) % 1_000_000),
    `${placed.toISOString().slice(0, 19).replace('T', ' ')}+00`,
    notes[(random >>> 9) % notes.length]!,
  ]
}

/** One row as CSV: NULL is nothing, the empty string is "". */
export function csvLine(fields: readonly Field[]): string {
  const cells = fields.map((field) => {
    if (field === null) return ''
    return field === '' || /[",\r\n]/.test(field) || field === '\\.'
      ? `"${field.replaceAll('"', '""')}"`
      : field
  })
  return `${cells.join(',')}\n`
}

export interface MadeFile {
  path: string
  rows: number
  bytes: number
  digest: Digest
}

const CHUNK_BYTES = 1 << 18

/** Writes rows to a CSV file with a header; lets others run between chunks. */
async function writeCsv(
  path: string,
  columns: string[],
  rows: Iterable<Field[]>,
): Promise<MadeFile> {
  const stream = createWriteStream(path)
  const digest = new Digest()
  let bytes = 0
  let text = csvLine(columns)
  const flush = async () => {
    const chunk = Buffer.from(text)
    bytes += chunk.length
    text = ''
    if (!stream.write(chunk)) await once(stream, 'drain')
  }
  for (const row of rows) {
    digest.add(row)
    text += csvLine(row)
    if (text.length > CHUNK_BYTES) await flush()
  }
  await flush()
  stream.end()
  await finished(stream)
  return { path, rows: digest.rows, bytes, digest }
}

function* customers(count: number): Generator<Field[]> {
  for (let n = 0; n < count; n++) yield customerRow(n)
}

function* orders(count: number): Generator<Field[]> {
  for (let n = 0; n < count; n++) for (let k = 0; k < ORDERS_PER_CUSTOMER; k++) yield orderRow(n, k)
}

export const writeCustomers = (path: string, count: number): Promise<MadeFile> =>
  writeCsv(path, customerColumns, customers(count))

export const writeOrders = (path: string, count: number): Promise<MadeFile> =>
  writeCsv(path, orderColumns, orders(count))
