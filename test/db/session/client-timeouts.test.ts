/** Clients that do nothing, by `client_idle_timeout` and `client_idle_in_transaction_timeout`, and who may come where: seen, not only handed on. */
import { mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { afterEach, expect, inject, test } from 'vitest'
import { type Served, startServe } from '../../support/serve.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'

const postgres = usePostgres()
const clients: pg.Client[] = []

afterEach(async () => {
  for (const client of clients.splice(0)) await client.end().catch(() => undefined)
})

function serve(general: readonly string[], user: readonly string[] = []): Promise<Served> {
  const [at] = postgres().servers
  if (!at) throw new Error('no server')
  return startServe({ shards: [{ ...at, database: postgres().database }], general, user })
}

/** A client, and what it was told when the proxy ended it. */
async function open(served: Served): Promise<{ client: pg.Client; told: string[] }> {
  const client = new pg.Client({ connectionString: served.url })
  const told: string[] = []
  client.on('error', (error) => told.push((error as { code?: string }).code ?? error.message))
  await client.connect()
  clients.push(client)
  return { client, told }
}

test('client_idle_timeout ends a client that asks nothing, and none that works', async () => {
  const served = await serve(['client_idle_timeout = 300'])
  const [idle, busy] = [await open(served), await open(served)]
  const working = busy.client.query('SELECT pg_sleep(1), 7 AS x')
  await waitFor(() => idle.told.length > 0)
  expect(idle.told[0]).toBe('57P05')
  expect((await working).rows).toMatchObject([{ x: 7 }])
})

test('client_idle_in_transaction_timeout ends a client that leaves a transaction open, and rolls it back', async () => {
  await postgres().query('CREATE TABLE left_open (n int)')
  const served = await serve(['client_idle_in_transaction_timeout = 300'])
  const [open1, outside] = [await open(served), await open(served)]
  await open1.client.query('BEGIN')
  await open1.client.query('INSERT INTO left_open VALUES (1)')
  await waitFor(() => open1.told.length > 0)
  expect(open1.told[0]).toBe('25P03')
  // its lock is gone, or this would wait
  await postgres().query('TRUNCATE left_open')
  expect((await outside.client.query('SELECT count(*)::int AS n FROM left_open')).rows).toEqual([
    { n: 0 },
  ])
  expect(outside.told).toEqual([])
})

test('hba_file says who may come from where', async () => {
  const file = join(mkdtempSync(join(inject('runDirectory'), 'hba-')), 'hba.conf')
  writeFileSync(file, 'host all all 10.0.0.0/8 trust\n')
  const served = await serve([`hba_file = "${file}"`])
  await expect(open(served)).rejects.toMatchObject({ code: '28000' })
  const other = join(mkdtempSync(join(inject('runDirectory'), 'hba-')), 'hba.conf')
  writeFileSync(other, 'host all all 127.0.0.0/8 trust\n')
  const { client } = await open(await serve([`hba_file = "${other}"`]))
  expect((await client.query('SELECT 1 AS x')).rows).toEqual([{ x: 1 }])
})
