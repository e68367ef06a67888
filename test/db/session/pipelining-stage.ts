/**
 * A pool of two servers: one is kept by an open transaction, on the other a statement waits for a lock. Whoever is
 * pipelined now stands behind it; whoever is not waits in the pool's queue and runs as soon as the transaction ends.
 */
import type pg from 'pg'
import type { TestPostgres } from '../../support/postgres.js'
import type { Served } from '../../support/serve.js'
import { waitFor } from '../../support/wait-for.js'

export const lockedRead = 'select v from locked where id = 1'

export class Stage {
  readonly head: pg.Client
  readonly #postgres: TestPostgres
  readonly #holder: pg.Client
  readonly #occupier: pg.Client
  readonly #probe: pg.Client

  private constructor(
    postgres: TestPostgres,
    clients: readonly [pg.Client, pg.Client, pg.Client, pg.Client],
  ) {
    this.#postgres = postgres
    ;[this.head, this.#holder, this.#occupier, this.#probe] = clients
  }

  static async open(served: Served, postgres: TestPostgres): Promise<Stage> {
    const [head, occupier, probe] = [
      await served.connect(),
      await served.connect(),
      await served.connect(),
    ]
    const stage = new Stage(postgres, [head, await postgres.connect(), occupier, probe])
    for (const client of [head, occupier, probe]) client.on('error', () => undefined)
    for (let i = 0; i < 10; i++) await head.query(lockedRead)
    return stage
  }

  /** Takes the lock and one of the two servers, sends the head, and in the same moment what `then` sends. */
  async block<T>(then: () => T): Promise<{ headDone: Promise<pg.QueryResult>; sent: T }> {
    await this.#occupier.query('begin')
    await this.#occupier.query('select 1')
    await this.#holder.query('begin')
    await this.#holder.query('lock table locked in access exclusive mode')
    const headDone = this.head.query(lockedRead)
    headDone.catch(() => undefined)
    const sent = then()
    await waitFor(() => this.waitingPid(), { what: 'the head waits for its lock' })
    return { headDone, sent }
  }

  /** The server process that waits for the lock. */
  async waitingPid(): Promise<number | undefined> {
    const rows = await this.#postgres.query(
      `select pid from pg_stat_activity where wait_event_type = 'Lock' and query like '%from locked%' and datname = $1`,
      [this.#postgres.database],
    )
    return rows[0]?.['pid'] as number | undefined
  }

  /** Gives back the second server; resolves when everybody who waited for it before has had it. */
  async freeServer(): Promise<void> {
    const probed = this.#probe.query('select random()')
    await this.#occupier.query('commit')
    await probed
  }

  async unlock(): Promise<void> {
    await this.#holder.query('rollback')
  }

  /** Whether what `ask` sends stands behind the head, rather than on a server of its own. */
  async carries(ask: () => Promise<unknown>): Promise<boolean> {
    let isDone = false
    const { headDone, sent } = await this.block(() =>
      ask().then(() => {
        isDone = true
      }),
    )
    await this.freeServer()
    const ranAlone = isDone
    await this.unlock()
    await Promise.all([headDone, sent])
    return !ranAlone
  }

  async close(): Promise<void> {
    const clients = [this.head, this.#holder, this.#occupier, this.#probe]
    await Promise.all(clients.map((client) => client.end().catch(() => undefined)))
  }
}
