/**
 * One shard's side of a batch: its connection, its transaction, the COPY in it. A batch that fails is run again in pieces,
 * down to the row at fault, inside savepoints of the same transaction. Never decides when to commit.
 */
import type pg from 'pg'
import { LineMap } from '../../copy/line-map.js'
import { type EngineError, engineError, toEngineError } from '../../errors/engine-error.js'
import { adminQuery, closePg } from '../../pg/admin-query.js'
import { destroySocket } from '../../pg/connect.js'
import { type CopyIn, openCopyIn } from '../../pg/copy-in.js'
import { serverLine } from '../load-failure.js'
import { type BadRow, Bisection, MOST_ROWS } from './bisection.js'
import { RowStore } from './row-store.js'
import type { ShardClients } from './shard-clients.js'

/** What a server's COPY must have before and after the rows. */
export interface Framing {
  readonly sql: string
  readonly head?: Buffer
  readonly tail?: Buffer
  /** Lines of a row as a server counts them when it comes first. */
  readonly countLines: (row: readonly Buffer[]) => number
}

/**
 * A load waits for its own other shards and for files. For locks it waits long, but not for ever: who holds them may wait for a
 * lock of this load on another server.
 */
export const LOAD_SETTINGS =
  "set statement_timeout = 0; set idle_in_transaction_session_timeout = 0; set lock_timeout = '5min'"

/** A shard's lines that are remembered: more than lie on the way to its server. */
const LINE_BYTES = 8 << 20

export class BatchShard {
  /** Absent: rows are not kept, only their lines. */
  readonly store: RowStore | undefined
  #lines = new LineMap(LINE_BYTES)
  readonly #clients: ShardClients
  readonly #url: string
  readonly #client: pg.Client
  /** Inside a transaction, or lost. */
  #isBusy = false
  #copy: CopyIn | undefined
  #wait: Promise<void> | undefined
  /** Rows a piece; grows while all goes well. */
  #pieceRows = MOST_ROWS

  private constructor(clients: ShardClients, url: string, client: pg.Client, keepsRows: boolean) {
    this.#clients = clients
    this.#url = url
    this.#client = client
    this.store = keepsRows ? new RowStore() : undefined
  }

  /** `keepsRows`: for a load that runs batches again. */
  static async open(clients: ShardClients, url: string, keepsRows: boolean): Promise<BatchShard> {
    const client = await clients.borrow(url)
    try {
      await adminQuery(client, LOAD_SETTINGS)
      return new BatchShard(clients, url, client, keepsRows)
    } catch (error) {
      destroySocket(client)
      throw error
    }
  }

  /** Begins the transaction of a batch; `lockSql` makes a second load of the same job wait. */
  async begin(lockSql: string): Promise<void> {
    this.store?.clear()
    this.#lines = new LineMap(LINE_BYTES)
    this.#isBusy = true
    await adminQuery(this.#client, `begin; ${lockSql}; savepoint pgshard_batch`)
  }

  /** Notes a row before its bytes are written. */
  take(length: number, line: number, lines: number, ordinal: number): void {
    if (this.store === undefined) this.#lines.take(line, lines)
    else this.store.take(length, line, lines, ordinal)
  }

  /** Notes several rows, when they are not kept. */
  takeNotes(notes: Buffer): void {
    this.#lines.takeNotes(notes)
  }

  /** The line of the file that the server means by `counted`. */
  lineOf(counted: number, framing: Framing): number | undefined {
    const { store } = this
    if (store === undefined) return this.#lines.lineOf(counted)
    const row = store.rowAt(0, counted, framing.countLines)
    return row === undefined ? undefined : store.lineOf(row)
  }

  async commit(): Promise<void> {
    await adminQuery(this.#client, 'commit')
    this.#isBusy = false
  }

  startCopy(framing: Framing): void {
    this.#wait = undefined
    this.#copy = openCopyIn(this.#client, framing.sql)
    if (framing.head !== undefined) this.write(framing.head)
  }

  /** Sends bytes, when a COPY runs; they stay as they are until `onTaken`. */
  write(bytes: Buffer, onTaken?: () => void): void {
    const wait = this.#copy?.write(bytes, onTaken)
    if (wait === undefined) return
    wait.catch(() => undefined)
    this.#wait = wait
  }

  /** When more may be sent; a failure is told by `finishCopy`. True: the COPY has failed. */
  async ready(): Promise<boolean> {
    const wait = this.#wait
    this.#wait = undefined
    if (wait === undefined) return false
    return await wait.then(
      () => false,
      () => true,
    )
  }

  /** Ends the COPY. @returns the rows that the server took */
  async finishCopy(framing: Framing): Promise<number> {
    const copy = this.#copy
    this.#copy = undefined
    if (copy === undefined) return 0
    if (framing.tail !== undefined) copy.write(framing.tail)?.catch(() => undefined)
    return await copy.finish()
  }

  /**
   * Runs the batch from its savepoint in pieces. Rows at fault are left out and come back.
   * @throws what is no row's fault: a lost connection, a missing table
   */
  async runInPieces(
    framing: Framing,
    signal: AbortSignal,
  ): Promise<{ rows: number; bad: BadRow[] }> {
    await adminQuery(this.#client, 'rollback to pgshard_batch')
    const { store } = this
    if (store === undefined) throw new TypeError('rows were not kept')
    const pieces = new Bisection(store.count, this.#pieceRows)
    let rows = 0
    for (let piece = pieces.next(); piece !== undefined; piece = pieces.next()) {
      if (signal.aborted) throw engineError('INTERRUPTED', { what: 'copy-shard' })
      const outcome = await this.#tryPiece(framing, store.bytesOf(piece.from, piece.to))
      if (typeof outcome === 'number') {
        rows += outcome
        pieces.succeeded()
      } else {
        const line = serverLine(outcome)
        const named =
          line === undefined ? undefined : store.rowAt(piece.from, line, framing.countLines)
        pieces.failed(outcome, named, isSure(outcome))
      }
    }
    this.#pieceRows = pieces.pieceRows
    return { rows, bad: pieces.bad }
  }

  /** Rows taken, or why not. */
  async #tryPiece(framing: Framing, piece: readonly Buffer[]): Promise<number | EngineError> {
    await adminQuery(this.#client, 'savepoint pgshard_piece')
    try {
      const rows = await this.#send(framing, piece)
      await adminQuery(
        this.#client,
        'set constraints all immediate; release pgshard_piece; set constraints all deferred',
      )
      return rows
    } catch (error) {
      const known = toEngineError(error)
      if (!isRowFault(known)) throw error
      await adminQuery(this.#client, 'rollback to pgshard_piece; release pgshard_piece')
      return known
    }
  }

  async #send(framing: Framing, piece: readonly Buffer[]): Promise<number> {
    this.startCopy(framing)
    for (const bytes of piece) {
      this.write(bytes)
      if (await this.ready()) break
    }
    return await this.finishCopy(framing)
  }

  /** Runs SQL; the first column of the last row. */
  async ask(sql: string): Promise<string | undefined> {
    const rows = await adminQuery(this.#client, sql)
    return Object.values(rows.at(-1) ?? {})[0] ?? undefined
  }

  /** CopyFail, when a COPY runs, and ROLLBACK. Never fails. */
  async rollback(): Promise<void> {
    const copy = this.#copy
    this.#copy = undefined
    await copy?.fail('the load has failed elsewhere')
    this.#isBusy = await this.#client.query('rollback').then(
      () => false,
      () => true,
    )
  }

  async close(): Promise<void> {
    if (this.#isBusy) await closePg(this.#client)
    else this.#clients.giveBack(this.#url, this.#client)
  }

  destroy(): void {
    destroySocket(this.#client)
  }
}

/** True for errors that leaving out a row can cure: data, constraints, and what triggers raise. */
export function isRowFault(error: EngineError): boolean {
  return error.code === 'SERVER_ERROR' && /^(22|23|P0|54000|0A000|44000)/.test(error.sqlstate)
}

/** Data that cannot be read, and constraints that are checked row by row, name their row rightly. */
const isSure = (error: EngineError): boolean => /^2[23]/.test(error.sqlstate)
