/** PAUSE, RECONNECT and RELOAD while servers carry several clients' reads: nobody hears of it, and they do what they say. */
import { readFileSync, writeFileSync } from 'node:fs'
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { type Served, startServe } from '../../support/serve.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'

const ROWS = 300
const CLIENTS = 24
const POOL = 2

const sharding =
  '[[sharded_tables]]\ndatabase = "app"\nname = "item"\ncolumn = "id"\ndata_type = "bigint"'

/** Clients that read their own rows without a break. */
class Readers {
  answers = 0
  readonly #running: Promise<void>[]
  #isOver = false

  constructor(served: Served) {
    this.#running = Array.from({ length: CLIENTS }, (_, n) => this.#work(served, n))
  }

  async #work(served: Served, n: number): Promise<void> {
    const client = await served.connect()
    for (let turn = 0; !this.#isOver; turn++) {
      const id = ((n * 31 + turn * 7) % ROWS) + 1
      const { rows } =
        turn % 3 === 0
          ? await client.query({
              name: 'one',
              text: 'select v from item where id = $1',
              values: [id],
            })
          : await client.query(`select v from item where id = ${id}`)
      expect(rows).toEqual([{ v: `v${id}` }])
      this.answers++
    }
    await client.end()
  }

  /** Resolves when this many more answers have come. @throws what went wrong in a reader */
  async more(count: number): Promise<void> {
    const goal = this.answers + count
    await Promise.race([
      waitFor(() => this.answers >= goal, { what: `${count} more answers` }),
      Promise.all(this.#running),
    ])
  }

  async end(): Promise<void> {
    this.#isOver = true
    await Promise.all(this.#running)
  }
}

describe.each([1, 3])('the console while lanes are busy, %i shards', (shards) => {
  const postgres = usePostgres({ version: 15 })

  it('D187: PAUSE, RECONNECT and RELOAD cost no client an error', async () => {
    const { host, port } = postgres().servers[0]!
    const databases: string[] = []
    for (let shard = 0; shard < shards; shard++) {
      const database = await postgres().createDatabase()
      databases.push(database)
      const client = await postgres().connect(0, database)
      await client.query('create table item (id bigint primary key, v text)')
      // whoever routes wrongly reads nothing: a row stands on one shard only
      const own = `satisfies_hash_partition('hashed'::regclass, ${shards}, ${shard}, n::bigint)`
      await client.query('create table hashed (id bigint) partition by hash (id)')
      await client.query(
        `insert into item select n, 'v' || n from generate_series(1, ${ROWS}) n where ${own}`,
      )
      await client.end()
    }
    const served = await startServe({
      shards: databases.map((database) => ({ host, port, database })),
      general: [`default_pool_size = ${POOL}`, `min_pool_size = ${POOL}`, 'log_level = "debug"'],
      ...(shards > 1 ? { tables: sharding } : {}),
    })
    await served.program.waitForOutput(/the schema was read/)
    const console = new pg.Client({ connectionString: served.adminUrl })
    await console.connect()
    const backends = async () =>
      (
        await postgres().query(
          `select pid, state from pg_stat_activity where datname = any($1) and query like '%from item%'`,
          [databases],
        )
      ).map((row) => ({ pid: row['pid'] as number, state: row['state'] as string }))

    const readers = new Readers(served)
    await readers.more(CLIENTS * 20)
    // more clients than servers work at once, so servers carry several
    expect((await backends()).length).toBeLessThanOrEqual(POOL * shards)

    await console.query('PAUSE app')
    const atPause = readers.answers
    expect((await backends()).every(({ state }) => state === 'idle')).toBe(true)
    for (let look = 0; look < 20; look++) await console.query('SHOW POOLS')
    expect(readers.answers - atPause, 'answers behind PAUSE').toBeLessThanOrEqual(CLIENTS)
    const paused = readers.answers
    for (let look = 0; look < 20; look++) await console.query('SHOW CLIENTS')
    expect(readers.answers, 'a second look behind PAUSE').toBe(paused)
    await console.query('RESUME app')
    await readers.more(CLIENTS * 10)

    const before = new Set((await backends()).map(({ pid }) => pid))
    expect(before.size).toBeGreaterThan(0)
    await console.query('RECONNECT app')
    await waitFor(async () => (await backends()).every(({ pid }) => !before.has(pid)), {
      what: 'every server is a new one',
    })
    await readers.more(CLIENTS * 10)

    const config = readFileSync(served.configPath, 'utf8')
    writeFileSync(
      served.configPath,
      config.replace(`default_pool_size = ${POOL}`, `default_pool_size = ${POOL + 1}`),
    )
    await console.query('RELOAD')
    await readers.more(CLIENTS * 20)
    const pools = (await console.query('SHOW DATABASES')).rows as {
      name: string
      pool_size: number
    }[]
    expect(
      pools.filter(({ name }) => name === 'app').map(({ pool_size }) => Number(pool_size)),
    ).toEqual(Array(shards).fill(POOL + 1))
    await readers.end()
    await console.end()
  })
})
