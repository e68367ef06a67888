/**
 * Clients that write through the proxy while the data moves, and know what must be there in the
 * end: every change that was acknowledged is made in a digest as well.
 */
import { isEngineError } from '../errors/engine-error.js'
import { adminQuery, closePg } from '../pg/admin-query.js'
import type { HostClient } from '../pg/host-client.js'
import { openHostClient } from '../pg/host-client.js'
import { customerId, customerRow, ORDERS_PER_CUSTOMER, orderRow, scramble } from './data-set.js'
import type { Digest, Field } from './digest.js'
import type { ProxyProcess } from './proxy-process.js'
import { DATABASE, type Stage, USER } from './stage.js'

const WRITERS = 6
const MAX_TRIES = 5
/** The first number of an order that a writer makes. */
const FIRST_NEW_ORDER = 1000

export interface Expected {
  customers: Digest
  orders: Digest
}

export interface WriteCounts {
  inserted: number
  updated: number
  deleted: number
  /** Statements that were told to run again, nothing having been done (40001), and did. */
  retried: number
  /** Transactions that were told to have failed. */
  failed: string[]
  /** The longest time between two acknowledged writes of one writer. */
  longestGapMs: number
}

/** The writers have work for so long at least. */
const USED_UP_MS = 60_000

export class Writers {
  readonly counts: WriteCounts = {
    retried: 0,
    inserted: 0,
    updated: 0,
    deleted: 0,
    failed: [],
    longestGapMs: 0,
  }
  readonly #stage: Stage
  readonly #proxy: ProxyProcess
  readonly #expected: Expected
  readonly #work: Promise<void>[] = []
  #isStopped = false

  constructor(stage: Stage, proxy: ProxyProcess, expected: Expected) {
    this.#stage = stage
    this.#proxy = proxy
    this.#expected = expected
  }

  /** Customers whose three changes were acknowledged. */
  readonly changed = new Set<number>()

  get total(): number {
    return this.counts.inserted + this.counts.updated + this.counts.deleted
  }

  async start(): Promise<void> {
    const { host, port } = this.#proxy
    for (let writer = 0; writer < WRITERS; writer++) {
      const client = await openHostClient({
        host,
        port,
        user: USER,
        database: DATABASE,
        password: '',
      })
      this.#work.push(this.#write(client, writer))
    }
  }

  /** Lets every writer finish what it is doing. */
  async stop(): Promise<void> {
    this.#isStopped = true
    await Promise.all(this.#work)
  }

  async #write(client: HostClient, writer: number): Promise<void> {
    let last = this.#stage.clock.monotonicMs()
    // a small data set must not be used up before the switch
    const pauseMs = Math.max(1, (USED_UP_MS * WRITERS) / this.#stage.customers)
    // each writer has customers of its own, so that the order of changes is known
    for (let turn = 0; !this.#isStopped; turn++) {
      const n = writer + WRITERS * turn
      if (n >= this.#stage.customers) break
      try {
        await this.#change(client, n)
      } catch (error) {
        this.counts.failed.push(error instanceof Error ? error.message : String(error))
      }
      const now = this.#stage.clock.monotonicMs()
      this.counts.longestGapMs = Math.max(this.counts.longestGapMs, now - last)
      last = now
      await this.#stage.clock.sleep(pauseMs)
    }
    await closePg(client)
  }

  /** A statement as a careful client runs it: again when PostgreSQL's code for "run it again" comes back. */
  async #run(client: HostClient, sql: string, values: readonly Field[]): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        await adminQuery(client, sql, values)
        return
      } catch (error) {
        const mayRetry = isEngineError(error) && error.sqlstate === '40001' && attempt < MAX_TRIES
        if (!mayRetry) throw error
        this.counts.retried++
      }
    }
  }

  /** One customer pays, orders something new, and takes one order back. */
  async #change(client: HostClient, n: number): Promise<void> {
    const id = customerId(n)
    await this.#run(client, 'UPDATE customers SET balance = balance + 1 WHERE id = $1', [id])
    this.#expected.customers.remove(customerRow(n))
    this.#expected.customers.add(customerRow(n, 1))
    this.counts.updated++

    const fresh = orderRow(n, FIRST_NEW_ORDER)
    await this.#run(
      client,
      'INSERT INTO orders (customer_id, id, item, amount, placed_at, remark) VALUES ($1, $2, $3, $4, $5, $6)',
      fresh,
    )
    this.#expected.orders.add(fresh as Field[])
    this.counts.inserted++

    const k = scramble(n) % ORDERS_PER_CUSTOMER
    await this.#run(client, 'DELETE FROM orders WHERE customer_id = $1 AND id = $2', [
      id,
      String(k + 1),
    ])
    this.#expected.orders.remove(orderRow(n, k))
    this.counts.deleted++
    this.changed.add(n)
  }
}

/** The rows that must be there, one after the other. */
export function* expectedRows(
  table: 'customers' | 'orders',
  customers: number,
  changed: ReadonlySet<number>,
): Generator<Field[]> {
  for (let n = 0; n < customers; n++) {
    const isChanged = changed.has(n)
    if (table === 'customers') {
      yield customerRow(n, isChanged ? 1 : 0)
      continue
    }
    const gone = isChanged ? scramble(n) % ORDERS_PER_CUSTOMER : -1
    for (let k = 0; k < ORDERS_PER_CUSTOMER; k++) if (k !== gone) yield orderRow(n, k)
    if (isChanged) yield orderRow(n, FIRST_NEW_ORDER)
  }
}
