/** What pins a client to its server, what becomes of it when the server goes, and statement pooling, which pins nothing. */
import { beforeAll, describe, expect, it } from 'vitest'
import { type Served, startServe } from '../../support/serve.js'
import { usePostgres } from '../../support/use-postgres.js'

describe('pinned clients', () => {
  const postgres = usePostgres({ version: 15 })
  let served: Served
  let statementMode: Served

  beforeAll(async () => {
    const { host, port } = postgres().servers[0]!
    const shards = [{ host, port, database: postgres().database }]
    served = await startServe({ shards })
    statementMode = await startServe({ shards, general: ['pooler_mode = "statement"'] })
  })

  it('keep their server while a temporary table lives, and end when it is lost', async () => {
    const client = await served.connect()
    const ended = new Promise<Error>((resolve) => client.on('error', resolve))
    await client.query('create temp table mine (n int)')
    const pid = async () =>
      (await client.query('select pg_backend_pid() as pid')).rows[0].pid as number
    const first = await pid()
    await client.query('insert into mine values (1)')
    expect(await pid()).toBe(first)
    await postgres().query('select pg_terminate_backend($1)', [first])
    // not a new server in silence, where the table would be missing
    expect(await ended).toBeInstanceOf(Error)
  })

  it('fail a transaction whose server was lost, and say so at once', async () => {
    const client = await served.connect()
    client.on('error', () => undefined)
    await client.query('begin')
    const { rows } = await client.query('select pg_backend_pid() as pid')
    await postgres().query('select pg_terminate_backend($1)', [rows[0].pid])
    // the FATAL may come before the next statement: then the driver itself refuses to send it
    const failure = await client
      .query('select 1')
      .catch((error: Error & { code?: string }) => error)
    expect(failure).toBeInstanceOf(Error)
    const { code = '', message } = failure as Error & { code?: string }
    expect(`${code} ${message}`).toMatch(/25P02|57P01|08006|not queryable|terminated/)
    await client.end().catch(() => undefined)
    expect((await served.query('select 1 as one'))[0]).toEqual({ one: 1 })
  })

  it('have no transactions in statement mode', async () => {
    const client = await statementMode.connect()
    expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }])
    await expect(client.query('begin')).rejects.toMatchObject({ code: '0A000' })
    await expect(client.query({ name: 'b', text: 'begin' })).rejects.toMatchObject({
      code: '0A000',
    })
    await expect(client.query('select 1; select 2')).rejects.toMatchObject({ code: '0A000' })
    expect((await client.query('select $1::int as n', [3])).rows).toEqual([{ n: 3 }])
    await client.end()
  })
})
