/** Reads of one client that follow one another, which are known by their bytes: in whatever pieces they come, and whatever comes between them. */
import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Served, startServe } from '../../support/serve.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'
import { type Message, say, textsOf, WireClient } from '../../support/wire-client.js'
import { Stage } from './pipelining-stage.js'

const read = (id: number) => say.query(`select v from free where id = ${id}`)
const batch = (id: number) =>
  Buffer.concat([
    say.parse('', 'select v from free where id = $1::int'),
    say.bind('', [String(id)]),
    say.execute(),
    say.sync(),
  ])
const valuesOf = (answer: readonly Message[]) =>
  answer.filter(({ tag }) => tag === 'D').map((row) => textsOf(row)[0])

describe('reads that follow one another', () => {
  const postgres = usePostgres({ version: 15 })
  let served: Served

  beforeAll(async () => {
    await postgres().query('create table free (id int primary key, v text)')
    await postgres().query("insert into free select n, 'v' || n from generate_series(1, 100) n")
    await postgres().query('create table locked (id int primary key, v text)')
    await postgres().query("insert into locked values (1, 'locked')")
    const { host, port } = postgres().servers[0]!
    served = await startServe({
      shards: [{ host, port, database: postgres().database }],
      general: ['default_pool_size = 2', 'min_pool_size = 2', 'pipeline_stall_ms = 60_000'],
    })
  })

  describe.each([
    ['Query', read],
    ['a batch', batch],
  ])('as %s', (_, ask) => {
    let client: WireClient
    beforeAll(async () => {
      client = await WireClient.open({ port: served.port, database: served.database })
      // by then the class and the text are known, and the next one is taken as it stands
      for (let i = 0; i < 200; i++)
        expect(valuesOf((await client.ask(ask(1 + (i % 9))))[0]!)).toEqual([`v${1 + (i % 9)}`])
    })
    afterAll(() => client.end())

    it('are taken in any pieces', async () => {
      const whole = ask(47)
      const { length } = whole
      for (const cut of [
        1,
        4,
        5,
        6,
        20,
        length - 6,
        length - 5,
        length - 3,
        length - 2,
        length - 1,
      ]) {
        client.send(whole.subarray(0, cut))
        // the first piece is read by itself
        await new Promise((resolve) => setImmediate(resolve))
        client.send(whole.subarray(cut))
        expect(valuesOf(await client.untilReady())).toEqual(['v47'])
        expect(valuesOf((await client.ask(ask(5)))[0]!)).toEqual(['v5'])
      }
    })

    it('come several in one piece, and behind one that runs', async () => {
      for (let i = 0; i < 20; i++) {
        client.send(ask(6), ask(7))
        client.send(ask(8))
        for (const id of [6, 7, 8]) expect(valuesOf(await client.untilReady())).toEqual([`v${id}`])
      }
    })

    it('have an error among them, a transaction, and a setting', async () => {
      for (let i = 0; i < 5; i++) {
        const [failed] = await client.ask(say.query('select v from free where id = 1/0'))
        expect(failed!.map(({ tag }) => tag)).toEqual(['E', 'Z'])
        expect(valuesOf((await client.ask(ask(9)))[0]!)).toEqual(['v9'])
        await client.ask(say.query('begin'))
        await client.ask(say.query("update free set v = 'mine' where id = 9"))
        expect(valuesOf((await client.ask(ask(9)))[0]!)).toEqual(['mine'])
        await client.ask(say.query('rollback'))
        await client.ask(say.query("set application_name = 'another'"))
        expect(valuesOf((await client.ask(ask(9)))[0]!)).toEqual(['v9'])
        expect(valuesOf((await client.ask(ask(3)))[0]!)).toEqual(['v3'])
      }
    })

    it('tell when the last one was', async () => {
      const before = Date.now()
      await client.ask(ask(2))
      const [row] = await consoleRows(`SHOW CLIENTS`)
      expect(Date.parse(`${row?.['last_request']}`)).toBeGreaterThan(before - 2000)
    })
  })

  it('run from the beginning, however long, when the server is lost under the one before them', async () => {
    const stage = await Stage.open(served, postgres())
    const clients = await Promise.all([served.connect(), served.connect()])
    const ask = async (client: pg.Client, id: number, times: number) =>
      (await client.query(`select v from free where id = ${id} and v <> '${'x'.repeat(times)}'`))
        .rows
    // the first is known by its bytes, which are short; the other is read each time
    const isKnown = async () => {
      for (const [n, client] of clients.entries()) await ask(client, 1, n === 0 ? 3 : 6000)
      return stage.carries(() => ask(clients[0]!, 1, 6000))
    }
    await waitFor(isKnown, { deadlineMs: 30_000 })
    await ask(clients[0]!, 1, 3)
    const { headDone, sent } = await stage.block(() =>
      clients.map((client, n) => ask(client, n + 2, 6000)),
    )
    await postgres().query('select pg_terminate_backend($1)', [await stage.waitingPid()])
    await stage.freeServer()
    expect(await Promise.all(sent)).toEqual([[{ v: 'v2' }], [{ v: 'v3' }]])
    await expect(headDone).rejects.toMatchObject({ code: '57P01' })
    await stage.unlock()
    await stage.close()
    for (const client of clients) await client.end()
  })

  async function consoleRows(sql: string): Promise<Record<string, unknown>[]> {
    const { Client } = (await import('pg')).default
    const admin = new Client({ connectionString: served.adminUrl })
    await admin.connect()
    const { rows } = await admin.query(sql)
    await admin.end()
    return rows.filter((row) => row['database'] === served.database)
  }
})
