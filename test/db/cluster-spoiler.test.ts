import pg from 'pg'
import { afterEach, expect, test } from 'vitest'
import { checkLeaks } from '../support/leak-check.js'
import { type Spoiler, startSpoiler } from '../support/spoiler.js'
import { usePostgres } from '../support/use-postgres.js'
import { waitFor } from '../support/wait-for.js'

const postgres = usePostgres()
checkLeaks()

let spoiler: Spoiler
afterEach(() => spoiler.close())

async function open(): Promise<pg.Client> {
  const client = new pg.Client({
    host: '127.0.0.1',
    port: spoiler.port,
    user: postgres().user,
    database: postgres().database,
  })
  client.on('error', () => undefined)
  await client.connect()
  return client
}

test('passes everything when it has no rules', async () => {
  spoiler = await startSpoiler(postgres().servers[0]!)
  const client = await open()
  const { rows } = await client.query(
    "SELECT repeat('x', 100000) AS long, generate_series(1, 50) AS n",
  )
  expect(rows).toHaveLength(50)
  expect(rows[49]).toEqual({ long: 'x'.repeat(100_000), n: 50 })
  await client.end()
  await waitFor(() => spoiler.open === 0)
})

test('cuts before the message asked for', async () => {
  spoiler = await startSpoiler(postgres().servers[0]!)
  spoiler.setRules({ direction: 'to-client', fault: 'close', atMessage: { tag: 'D', nth: 3 } })
  const client = await open()
  const rows: unknown[] = []
  const query = client.query(new pg.Query('SELECT generate_series(1, 5) AS n'))
  query.on('row', (row) => rows.push(row.n))
  await new Promise((resolve) => query.on('error', resolve))
  expect(rows).toEqual([1, 2])
  await client.end().catch(() => undefined)
})

test('cuts a connection after so many bytes, a reset', async () => {
  spoiler = await startSpoiler(postgres().servers[0]!)
  spoiler.setRules({ direction: 'to-client', fault: 'reset', afterBytes: 10_000 })
  const client = await open()
  await expect(client.query("SELECT repeat('x', 20000)")).rejects.toThrow('ECONNRESET')
  spoiler.setRules()
  const other = await open()
  expect((await other.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }])
  await other.end()
})

test('hangs half-open, delays, and refuses', async () => {
  spoiler = await startSpoiler(postgres().servers[0]!)
  const client = await open()
  spoiler.setDelayMs(60)
  const begin = performance.now()
  await client.query('SELECT 1')
  expect(performance.now() - begin).toBeGreaterThan(110)
  spoiler.setDelayMs(0)
  spoiler.strike('hang')
  let answered = false
  void client.query('SELECT 1').then(
    () => {
      answered = true
    },
    () => undefined,
  )
  await spoiler.refuse(true)
  await expect(open()).rejects.toThrow('ECONNREFUSED')
  await spoiler.refuse(false)
  const other = await open() // long enough for an answer, had one been let through
  await other.end()
  expect(answered).toBe(false)
  await client.end().catch(() => undefined)
})
