/**
 * One connection and one transaction per shard, and the COPY that runs in each.
 * Nothing is committed before `commitAll`. Connections are closed, never reused.
 */
import type pg from 'pg'
import { type EngineError, toEngineError } from '../../errors/engine-error.js'
import { adminQuery, closePg } from '../../pg/admin-query.js'
import { connectPg, destroySocket } from '../../pg/connect.js'
import { type CopyIn, openCopyIn } from '../../pg/copy-in.js'
import { LOAD_SETTINGS } from '../shards/batch-shard.js'

/** How the COPY of a shard ended: with rows, or not. */
export type CopyEnd =
  | { readonly rows: number; readonly error?: undefined }
  | { readonly rows: 0; readonly error: EngineError }

export class ShardWriters {
  readonly #clients: readonly pg.Client[]
  /** The COPY of a shard has failed; `endCopy` says why. */
  hasFailed = false
  #copies: CopyIn[] = []
  #waits: Promise<void>[] = []

  private constructor(clients: readonly pg.Client[]) {
    this.#clients = clients
  }

  /** Connects to each shard and begins a transaction there. */
  static async open(urls: readonly string[]): Promise<ShardWriters> {
    const opened = await Promise.allSettled(urls.map((url) => connectPg(url)))
    const clients = opened.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
    const writers = new ShardWriters(clients)
    try {
      for (const one of opened) if (one.status === 'rejected') throw one.reason
      await writers.#each(`${LOAD_SETTINGS}; begin`)
      return writers
    } catch (error) {
      writers.destroy()
      throw error
    }
  }

  /** In the order of the shards. */
  get clients(): readonly pg.Client[] {
    return this.#clients
  }

  /** Runs a statement on every shard; the first column of the first row of each, as a number. */
  async ask(sql: string): Promise<number[]> {
    const answers = await Promise.all(this.#clients.map((client) => adminQuery(client, sql)))
    return answers.map((rows) => Number(Object.values(rows[0] ?? {})[0] ?? 0))
  }

  startCopy(sql: string): void {
    this.#waits = []
    this.hasFailed = false
    this.#copies = this.#clients.map((client) => openCopyIn(client, sql))
  }

  /** Sends owned bytes to a shard; `ready` tells when more may be sent. */
  write(shard: number, bytes: Buffer): void {
    const wait = (this.#copies[shard] as CopyIn).write(bytes)
    if (wait === undefined) return
    this.#waits.push(
      wait.catch(() => {
        this.hasFailed = true
      }),
    )
  }

  /** Resolves when every shard can take more, or as soon as one has failed. */
  async ready(): Promise<void> {
    if (this.#waits.length === 0) return
    const waits = this.#waits
    this.#waits = []
    await Promise.all(waits)
  }

  /** Ends the COPY of every shard; how, by shard. */
  async endCopy(): Promise<CopyEnd[]> {
    const ends = await Promise.allSettled(this.#copies.map((copy) => copy.finish()))
    return ends.map((end) =>
      end.status === 'fulfilled'
        ? { rows: end.value }
        : { rows: 0, error: toEngineError(end.reason) },
    )
  }

  /** CopyFail to every shard. */
  async failCopy(reason: string): Promise<void> {
    await Promise.all(this.#copies.map((copy) => copy.fail(reason)))
  }

  /** Commits shard by shard; `onCommitted` hears of each, so that the caller can tell what is done when one fails. */
  async commitAll(onCommitted: (shard: number) => void): Promise<void> {
    for (const [shard, client] of this.#clients.entries()) {
      await adminQuery(client, 'commit')
      onCommitted(shard)
    }
  }

  async rollbackAll(): Promise<void> {
    await Promise.all(
      this.#clients.map((client) => client.query('rollback').catch(() => undefined)),
    )
  }

  async close(): Promise<void> {
    await Promise.all(this.#clients.map((client) => closePg(client)))
  }

  /** Cuts the connections; the servers roll back. */
  destroy(): void {
    for (const client of this.#clients) destroySocket(client)
  }

  async #each(sql: string): Promise<void> {
    await Promise.all(this.#clients.map((client) => adminQuery(client, sql)))
  }
}
