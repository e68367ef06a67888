/** A cancel that comes late: the end of the connection that asked for it is the word that it hits nothing more. */

import type { AddressInfo } from 'node:net'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { sendCancel } from '../../support/send-cancel.js'
import { type Served, startServe } from '../../support/serve.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'

/** Bytes 5 to 8 of a CancelRequest. */
const CANCEL_REQUEST = 80_877_102

const postgres = usePostgres({ version: 15 })
const open = new Set<Socket>()
/** Cancels on their way, which the wire keeps until they are let go. */
const kept: (() => void)[] = []
let wire: Server
let served: Served

beforeAll(async () => {
  const [at] = postgres().servers
  wire = createServer((client) => {
    const upstream = connect(at!.port, at!.host)
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      open.add(from)
      from.on('error', () => undefined).on('close', () => to.destroy())
      from.on('data', (chunk: Buffer) => {
        const pass = () => void to.write(chunk)
        if (chunk.length === 16 && chunk.readInt32BE(4) === CANCEL_REQUEST) kept.push(pass)
        else pass()
      })
    }
  })
  await new Promise<void>((resolve) => wire.listen(0, '127.0.0.1', resolve))
  const { port } = wire.address() as AddressInfo
  served = await startServe({
    shards: [{ host: '127.0.0.1', port, database: postgres().database }],
    general: ['default_pool_size = 2'],
  })
})

afterAll(async () => {
  for (const socket of open) socket.destroy()
  await new Promise((resolve) => wire.close(resolve))
})

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
  let isOver = false
  const cancelled = sendCancel(client, served.port).then(() => {
    isOver = true
  })
  await first
  await waitFor(() => kept.length === 1)
  expect(isOver).toBe(false)
  for (const pass of kept.splice(0)) pass()
  await cancelled
  const { rows } = await client.query('select pg_sleep(0.3), pg_backend_pid() as pid')
  expect(rows[0].pid).toBe(pid)
  await client.query('commit')
  await client.end()
})
