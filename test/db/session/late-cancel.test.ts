/** A cancel that comes late: the end of the connection that asked for it is the word that it hits nothing more. */

import { afterAll, beforeAll, expect, it } from 'vitest'
import { type HoldingWire, startHoldingWire } from '../../support/holding-wire.js'
import { sendCancel } from '../../support/send-cancel.js'
import { type Served, startServe } from '../../support/serve.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'

const postgres = usePostgres({ version: 15 })
let wire: HoldingWire
let served: Served

beforeAll(async () => {
  const { host, port } = postgres().servers[0]!
  wire = await startHoldingWire(host, port)
  served = await startServe({
    shards: [{ host: '127.0.0.1', port: wire.port, database: postgres().database }],
    general: ['default_pool_size = 2'],
  })
})

afterAll(() => wire.close())

it('D81: never hits what the same client runs next on the server that it holds', async () => {
  const client = await served.connect()
  const [{ pid } = { pid: 0 }] = (
    (await client.query('begin; select pg_backend_pid() as pid')) as unknown as {
      rows: { pid: number }[]
    }[]
  )[1]!.rows
  const first = client.query('select pg_sleep(0.4)')
  await waitFor(async () => {
    const sql = "select 1 from pg_stat_activity where pid = $1 and query like '%pg_sleep%'"
    return (await postgres().query(sql, [pid])).length > 0
  })
  // a cancel comes on a connection of its own
  wire.holdNew()
  let isOver = false
  const cancelled = sendCancel(client, served.port).then(() => {
    isOver = true
  })
  await first
  await waitFor(() => wire.heldBack > 0)
  expect(isOver).toBe(false)
  wire.release()
  await cancelled
  const { rows } = await client.query('select pg_sleep(0.3), pg_backend_pid() as pid')
  expect(rows[0].pid).toBe(pid)
  await client.query('commit')
  await client.end()
})
