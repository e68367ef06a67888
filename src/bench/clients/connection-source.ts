/**
 * Where a client of a run gets its connection for a transaction: the one that it keeps, or with `--strategy` one of a
 * host that is picked for each transaction, as createBalancedPool picks at each check-out.
 */

import type { HostBook } from '../../client/host-book.js'
import { type PickOptions, pickHost } from '../../client/pick-host.js'
import type { BalanceStrategy } from '../../client/strategy.js'
import type { BenchConnection } from './bench-connection.js'

export interface ConnectionSource {
  /** Opens or reuses one. Rejects when none can be had. */
  next(): Promise<BenchConnection>
  /** The transaction took so long. Gives back what the client keeps for its next one; undefined: it must ask. */
  done(connection: BenchConnection, latencyUs: number): BenchConnection | undefined
  /** It is broken, or closed by the client. */
  drop(connection: BenchConnection): void
  close(): void
}

/** By libpq's rules, kept for the whole run. */
export const keptConnection = (open: () => Promise<BenchConnection>): ConnectionSource => ({
  next: open,
  done: (connection) => connection,
  drop: () => undefined,
  close: () => undefined,
})

/** What the clients of a thread share: hosts with their response times, and a strategy that may remember. */
export interface Picking extends PickOptions {
  readonly book: HostBook
  readonly strategy: BalanceStrategy
}

/** One connection to each host that was picked, kept for when it is picked again. */
export class PickedConnections implements ConnectionSource {
  readonly #picking: Picking
  readonly #open: (host: number) => Promise<BenchConnection>
  readonly #kept = new Map<number, BenchConnection>()

  constructor(picking: Picking, open: (host: number) => Promise<BenchConnection>) {
    this.#picking = picking
    this.#open = open
  }

  async next(): Promise<BenchConnection> {
    const { book, clock } = this.#picking
    const { index, taken } = await pickHost(this.#picking, async (host) => {
      const kept = this.#kept.get(host)
      if (kept && !kept.isLost) return kept
      if (kept) this.#forget(host)
      const startMs = clock.monotonicMs()
      const opened = await this.#open(host)
      book.opened(host, clock.monotonicMs() - startMs)
      this.#kept.set(host, opened)
      return opened
    })
    book.used(index, 1)
    return taken
  }

  done(connection: BenchConnection, latencyUs: number): undefined {
    const host = this.#hostOf(connection)
    if (host === undefined) return undefined
    this.#picking.book.used(host, -1)
    this.#picking.book.answered(host, latencyUs / 1000)
    return undefined
  }

  drop(connection: BenchConnection): void {
    const host = this.#hostOf(connection)
    if (host === undefined) return
    this.#picking.book.used(host, -1)
    this.#forget(host)
  }

  #forget(host: number): void {
    this.#kept.delete(host)
    this.#picking.book.closed(host)
  }

  close(): void {
    for (const connection of this.#kept.values()) connection.close()
    this.#kept.clear()
  }

  #hostOf(connection: BenchConnection): number | undefined {
    for (const [host, kept] of this.#kept) if (kept === connection) return host
    return undefined
  }
}
