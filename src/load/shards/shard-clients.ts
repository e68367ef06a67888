/**
 * Connections to shards, lent one at a time and used again: a load speaks to each shard before, in and after its batches,
 * and a new connection costs a server as much as a thousand rows.
 */
import type pg from 'pg'
import { closePg, leavePg } from '../../pg/admin-query.js'
import { connectPg } from '../../pg/connect.js'

export class ShardClients {
  /** By connection string: those that nobody uses. */
  readonly #idle = new Map<string, Set<pg.Client>>()
  /** By connection string: on its way, and nobody has asked for it yet. */
  readonly #coming = new Map<string, Promise<pg.Client>>()

  /** Begins to connect to each, so that servers start their processes side by side; failures are told to who borrows. */
  expect(urls: readonly string[]): void {
    for (const url of urls) {
      if (this.#coming.has(url) || this.#idleOf(url).size > 0) continue
      const coming = this.#connect(url)
      coming.catch(() => undefined)
      this.#coming.set(url, coming)
    }
  }

  /** A connection that is outside a transaction. */
  async borrow(url: string): Promise<pg.Client> {
    const idle = this.#idleOf(url)
    for (const client of idle) {
      idle.delete(client)
      return client
    }
    const coming = this.#coming.get(url)
    this.#coming.delete(url)
    return await (coming ?? this.#connect(url))
  }

  /** Only what is outside a transaction and has no COPY; else destroy it. */
  giveBack(url: string, client: pg.Client): void {
    this.#idleOf(url).add(client)
  }

  /** Runs `work` on a connection of its own; one on which it failed is not used again. */
  async use<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
    const client = await this.borrow(url)
    try {
      const result = await work(client)
      this.giveBack(url, client)
      return result
    } catch (error) {
      await closePg(client)
      throw error
    }
  }

  async close(): Promise<void> {
    const idle = [...this.#idle.values()].flatMap((clients) => [...clients])
    const unused = [...this.#coming.values()].map(async (coming) => leavePg(await coming))
    this.#idle.clear()
    this.#coming.clear()
    await Promise.allSettled([...idle.map((client) => leavePg(client)), ...unused])
  }

  async #connect(url: string): Promise<pg.Client> {
    const client = await connectPg(url, { applicationName: 'pgshard copy-shard' })
    client.once('end', () => this.#idleOf(url).delete(client))
    return client
  }

  #idleOf(url: string): Set<pg.Client> {
    const known = this.#idle.get(url)
    if (known !== undefined) return known
    const idle = new Set<pg.Client>()
    this.#idle.set(url, idle)
    return idle
  }
}
