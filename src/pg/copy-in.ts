/**
 * COPY … FROM STDIN over pg-copy-streams. `write` says when to wait; a failure of the server rejects with its whole
 * error; a lost connection rejects too instead of hanging. Feed it chunks of 64 KB and more, never single rows.
 */
import type { Writable } from 'node:stream'
import type pg from 'pg'
import { from as copyFrom } from 'pg-copy-streams'
import { type Deferred, deferred } from '../base/deferred.js'
import { clientWhere } from './connect.js'
import { serverFailure } from './server-error.js'

export class CopyIn {
  readonly #client: pg.Client
  readonly #stream: ReturnType<typeof copyFrom>
  readonly #done: Deferred<number> = deferred()
  #drained: Deferred<void> | undefined
  #isOver = false

  constructor(client: pg.Client, sql: string) {
    this.#client = client
    this.#stream = copyFrom(sql)
    this.#done.promise.catch(() => undefined)
    this.#stream.on('error', (error) => this.#fail(error))
    this.#stream.on('finish', () => this.#end(() => this.#done.resolve(this.#stream.rowCount)))
    this.#stream.on('drain', () => {
      this.#drained?.resolve()
      this.#drained = undefined
    })
    client.once('end', this.#lost)
    client.query(this.#stream)
  }

  readonly #lost = () => this.#fail(new Error('connection terminated unexpectedly'))

  #end(settle: () => void): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#client.removeListener('end', this.#lost)
    settle()
    this.#drained?.resolve()
    this.#drained = undefined
  }

  #fail(error: unknown): void {
    this.#end(() => this.#done.reject(serverFailure(error, clientWhere(this.#client))))
  }

  /**
   * Sends bytes that stay as they are until `onTaken`, which is not called when the COPY fails. A promise comes back when the
   * caller must wait; it rejects as soon as the COPY has failed.
   */
  write(chunk: Buffer, onTaken?: () => void): Promise<void> | undefined {
    if (this.#isOver) return this.#done.promise.then(() => undefined)
    // Header and body of the message go out in one piece.
    const socket = socketOf(this.#client)
    socket.cork()
    const isTaken = this.#stream.write(chunk, (error) => {
      if (error || onTaken === undefined) return
      // The stream has passed it on, but a part may still wait in the socket.
      if (socket.writableLength === 0) onTaken()
      else socket.write(NOTHING, () => onTaken())
    })
    socket.uncork()
    if (isTaken) return undefined
    this.#drained ??= deferred()
    return this.#drained.promise.then(() => {
      if (this.#isOver) return this.#done.promise.then(() => undefined)
      return undefined
    })
  }

  /** Ends the data; resolves with the number of rows when the server has taken them. */
  async finish(): Promise<number> {
    if (!this.#isOver) this.#stream.end()
    return await this.#done.promise
  }

  /** Sends CopyFail, so that the server keeps nothing; resolves when it has said so. The connection stays usable. */
  async fail(reason: string): Promise<void> {
    if (!this.#isOver) this.#stream.destroy(new Error(reason))
    await this.#done.promise.catch(() => undefined)
  }
}

const NOTHING = Buffer.alloc(0)

const socketOf = (client: pg.Client): Writable =>
  (client as unknown as { connection: { stream: Writable } }).connection.stream

/** Starts `sql` on a client that has nothing else to do until the COPY is over. */
export function openCopyIn(client: pg.Client, sql: string): CopyIn {
  return new CopyIn(client, sql)
}
