/**
 * Connections to shards, lent one at a time and used again: a load speaks to each shard before, in and after its batches,
 * and a new connection costs a server as much as a thousand rows.
 */
import type pg from 'pg'
import { closePg } from '../pg/admin-query.js'
import { connectPg } from '../pg/connect.js'

export class ShardClients {
  /** By connection string: those that nobody uses. */
  readonly #idle = new Map<string, Set<pg.Client>>()

  /** A connection that is outside a transaction. */
  async borrow(url: string): Promise<pg.Client> {
    const idle = this.#idleOf(url)
    for (const client of idle) {
      idle.delete(client)
      return client
    }
    const client = await connectPg(url, { applicationName: 'pgshard copy-shard' })
    client.once('end', () => idle.delete(client))
    return client
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
    this.#idle.clear()
    await Promise.all(idle.map((client) => closePg(client)))
  }

  #idleOf(url: string): Set<pg.Client> {
    const known = this.#idle.get(url)
    if (known !== undefined) return known
    const idle = new Set<pg.Client>()
    this.#idle.set(url, idle)
    return idle
  }
}
