/** Prepared statements on the servers that clients share: one of each text, and no more than the limit. */
import { beforeAll, describe, expect, it } from 'vitest'
import { type Served, startServe } from '../../support/serve.js'
import { usePostgres } from '../../support/use-postgres.js'
import { rowsOf, say, WireClient } from '../../support/wire-client.js'

const SERVERS = 2
const LIMIT = 10

describe('prepared statements of clients that share servers', () => {
  const postgres = usePostgres({ version: 15 })
  let served: Served

  beforeAll(async () => {
    const { host, port } = postgres().servers[0]!
    served = await startServe({
      shards: [{ host, port, database: postgres().database }],
      general: [
        `default_pool_size = ${SERVERS}`,
        `prepared_statements_limit = ${LIMIT}`,
        'checkout_timeout = 60000',
      ],
    })
  })

  /** Process of each server → number of statements it has, of one text or of all. */
  const onServers = async (text = '%'): Promise<Map<string, number>> => {
    const found = new Map<string, number>()
    const holders = await Promise.all(
      Array.from({ length: SERVERS }, () => WireClient.open(served)),
    )
    for (const holder of holders) await holder.rows('begin')
    for (const holder of holders) {
      const [row = []] = await holder.rows(
        `select pg_backend_pid(), count(*) from pg_prepared_statements where statement like '${text}'`,
      )
      found.set(String(row[0]), Number(row[1]))
    }
    for (const holder of holders) await holder.end()
    expect(found.size).toBe(SERVERS)
    return found
  }

  const run = async (client: WireClient, name: string, value: string) => {
    const [answer = []] = await client.ask([say.bind(name, [value]), say.execute(), say.sync()])
    return rowsOf(answer)
  }

  it('D178: one text is prepared once on each server, however many clients prepare it', async () => {
    const clients = await Promise.all(Array.from({ length: 20 }, () => WireClient.open(served)))
    const text = 'select $1::int + 178 as shared'
    await Promise.all(
      clients.map(async (client, n) => {
        const [prepared = []] = await client.ask([say.parse(`s${n % 3}`, text), say.sync()])
        expect(prepared.map(({ tag }) => tag).join('')).toBe('1Z')
        for (let i = 0; i < 20; i++)
          expect(await run(client, `s${n % 3}`, String(i))).toEqual([[String(i + 178)]])
      }),
    )
    for (const count of (await onServers('%178 as shared%')).values()) expect(count).toBe(1)
    await Promise.all(clients.map((client) => client.end()))
  })

  it('D179: a server keeps no more than prepared_statements_limit, and clients can use all of theirs', async () => {
    const client = await WireClient.open(served)
    for (let n = 0; n < 100; n++)
      await client.ask([say.parse(`n${n}`, `select $1::int + ${n}`), say.sync()])
    for (const from of [0, 50, 0]) {
      for (let n = from; n < 100; n += 7)
        expect(await run(client, `n${n}`, '1')).toEqual([[String(n + 1)]])
      for (const count of (await onServers()).values()) expect(count).toBeLessThanOrEqual(LIMIT)
    }
    await client.end()
  })
})
