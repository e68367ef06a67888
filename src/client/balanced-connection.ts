/**
 * `connectBalanced(conninfo, options)`: one logical connection over several hosts, by the rules of MySQL Connector/J:
 * another host is picked at the start, when the connection breaks, when a transaction ends, and when a closed one is
 * used again with autoReconnect; nowhere else. Every failure reaches the caller; nothing is run twice.
 */
import type pg from 'pg'
import { engineError } from '../errors/engine-error.js'
import { destroySocket } from '../pg/connect.js'
import type { Conninfo } from '../topology/conninfo.js'
import type { HostStatistics } from './host-book.js'
import { type Balance, type BalanceOptions, openBalance } from './options.js'
import { Physical } from './physical.js'
import { pickHost } from './pick-host.js'

export interface BalancedConnectionOptions extends BalanceOptions {
  /** A connection that was closed by a failure is opened again when it is next used. False when absent. */
  readonly autoReconnect?: boolean
}

/** Why a host was picked. */
export type PickCause = 'start' | 'reconnect' | 'error' | 'transaction end'

export class BalancedConnection {
  readonly #balance: Balance
  readonly #autoReconnect: boolean
  /** Open connections by host. */
  readonly #live = new Map<number, Physical>()
  readonly #picks: Record<PickCause, number> = {
    start: 0,
    reconnect: 0,
    error: 0,
    'transaction end': 0,
  }
  #current: Physical | undefined
  /** Why it cannot be used; undefined: it can. */
  #closed: string | undefined
  #isEnded = false
  #lastError: unknown
  /** Calls run one after the other. */
  #turn: Promise<unknown> = Promise.resolve()

  constructor(balance: Balance, autoReconnect: boolean) {
    this.#balance = balance
    this.#autoReconnect = autoReconnect
  }

  /** As pg.Client's, without callbacks. Rejects with the server's error, or that of the broken connection. */
  query<R extends pg.QueryResultRow = pg.QueryResultRow>(
    query: string | pg.QueryConfig,
    values?: unknown[],
  ): Promise<pg.QueryResult<R>> {
    return this.#inTurn(async () => {
      await this.#ensureOpen()
      const physical = this.#current as Physical
      const before = physical.status
      physical.asks()
      try {
        const result = await physical.client.query<R>(query as string, values)
        await this.#transactionEnded(before, physical)
        return result
      } catch (error) {
        await this.#failed(error, physical)
        await this.#transactionEnded(before, physical)
        throw error
      }
    })
  }

  /** True when the current connection answers; false, and closed, when it does not. */
  ping(): Promise<boolean> {
    return this.#inTurn(async () => {
      if (this.isClosed) return false
      try {
        await this.#current?.client.query('')
        return true
      } catch {
        this.#close('a ping was not answered')
        return false
      }
    })
  }

  /** Gives up the current connection at once; with autoReconnect the next call picks a new one. */
  abort(): void {
    this.#close('it was aborted')
  }

  /** Closes all; it cannot be opened again. */
  async end(): Promise<void> {
    this.#isEnded = true
    this.#closed = 'it was ended'
    const all = [...this.#live.values()]
    this.#live.clear()
    this.#current = undefined
    await Promise.all(all.map((physical) => physical.end()))
  }

  get isClosed(): boolean {
    return this.#closed !== undefined
  }

  /** `host:port` of the current connection, also of the last one when closed. */
  get host(): string | undefined {
    return this.#current && this.#balance.book.name(this.#current.index)
  }

  /** True inside BEGIN … COMMIT; also asked of a closed connection, where it is false. */
  get inTransaction(): boolean {
    return this.#closed === undefined && this.#current !== undefined && this.#current.status !== 'I'
  }

  /** Hosts, and how often one was picked for which reason. */
  stats(): { hosts: HostStatistics[]; picks: Readonly<Record<PickCause, number>> } {
    return { hosts: this.#balance.book.statistics(), picks: { ...this.#picks } }
  }

  /** One more host from the next pick on, as `host:port`. */
  addHost(host: string): void {
    this.#balance.book.add(this.#balance.parseHost(host))
  }

  /** Not picked any more; the current connection is left at the end of its transaction. @throws CLIENT_HOST */
  removeHost(host: string): void {
    const index = this.#balance.book.remove(host)
    const live = this.#live.get(index)
    if (live && live !== this.#current) this.#forget(live)
  }

  /** The first pick. @throws CLIENT_ALL_DOWN, or what a server answered */
  open(): Promise<void> {
    return this.#inTurn(() => this.#pick('start'))
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const run = this.#turn.then(work)
    this.#turn = run.catch(() => undefined)
    return run
  }

  async #ensureOpen(): Promise<void> {
    if (this.#closed === undefined) return
    if (this.#isEnded || !this.#autoReconnect)
      throw engineError('CLIENT_CLOSED', { reason: this.#closed })
    this.#current = undefined
    await this.#pick('reconnect')
  }

  async #pick(cause: PickCause): Promise<void> {
    this.#picks[cause]++
    try {
      const { taken } = await pickHost(this.#balance, (index) => this.#take(index))
      if (this.#isEnded) return await taken.end()
      this.#current = taken
      this.#closed = undefined
    } catch (error) {
      this.#close('no host could be reached')
      throw error
    }
  }

  async #take(index: number): Promise<Physical> {
    const known = this.#live.get(index)
    if (known && !known.isGone) return known
    this.#live.delete(index)
    const physical = await Physical.open(this.#balance, index)
    this.#live.set(index, physical)
    return physical
  }

  /** A failure that its host is to blame for: the connection is left. The same failure never counts twice. */
  async #failed(error: unknown, physical: Physical): Promise<void> {
    const { book, checker, blocklistTimeoutMs } = this.#balance
    if (this.#closed !== undefined || error === this.#lastError || !checker(error)) return
    this.#lastError = error
    book.switched(physical.index, blocklistTimeoutMs)
    this.#forget(physical)
    // Whether another was found or not: the caller hears of the statement's failure, and of this one with the next call.
    await this.#pick('error').catch(() => undefined)
  }

  async #transactionEnded(before: string, physical: Physical): Promise<void> {
    const hasEnded = before !== 'I' && physical.status === 'I' && physical === this.#current
    if (!hasEnded || this.#closed !== undefined) return
    await this.#pick('transaction end').catch(() => undefined)
    if (this.#balance.book.isRemoved(physical.index)) this.#forget(physical)
  }

  #forget(physical: Physical): void {
    if (this.#live.get(physical.index) === physical) this.#live.delete(physical.index)
    destroySocket(physical.client)
  }

  #close(reason: string): void {
    if (this.#isEnded) return
    this.#closed = reason
    if (this.#current) this.#forget(this.#current)
  }
}

/** Connects to one of the hosts. @throws CONNINFO_INVALID, CLIENT_STRATEGY, CLIENT_EXCEPTION_CHECKER, CLIENT_ALL_DOWN, or what a server answered */
export async function connectBalanced(
  target: string | Conninfo,
  options: BalancedConnectionOptions = {},
): Promise<BalancedConnection> {
  const balance = await openBalance(target, options)
  const connection = new BalancedConnection(balance, options.autoReconnect ?? false)
  await connection.open()
  return connection
}
