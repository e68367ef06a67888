/**
 * `createBalancedPool(conninfo, options)`: a pool over the hosts of a connection string, usable where pg.Pool is. Each
 * check-out is a pick of the strategy; a host that fails goes on a blocklist and the pick goes on; hosts come and go
 * while it works. A failed statement is never run again here: its error reaches the caller.
 */
import { EventEmitter } from 'node:events'
import type pg from 'pg'
import type { Timer } from '../base/clock.js'
import { type Deferred, deferred } from '../base/deferred.js'
import { engineError } from '../errors/engine-error.js'
import { destroySocket } from '../pg/connect.js'
import type { Conninfo } from '../topology/conninfo.js'
import type { HostStatistics } from './host-book.js'
import { IdleConnections } from './idle-connections.js'
import { type Balance, type BalanceOptions, openBalance } from './options.js'
import { Physical } from './physical.js'
import { pickHost } from './pick-host.js'

export interface BalancedPoolOptions extends BalanceOptions {
  /** Connections at one time, over all hosts; 10 when absent. */
  readonly max?: number
  /** An unused connection is closed after this; 10,000 when absent, 0: never. */
  readonly idleTimeoutMillis?: number
  /** How long a check-out waits; 0 or absent: for ever. */
  readonly connectionTimeoutMillis?: number
  /** A connection is closed after so many check-outs; absent: never. */
  readonly maxUses?: number
  /** A connection older than this is closed when it comes back; 0 or absent: never. */
  readonly maxLifetimeSeconds?: number
}

/** A client that is lent: give it back with `release`, or `release(true)` or `release(error)` to have it closed. */
export type BalancedClient = pg.Client & { release(destroy?: boolean | Error): void }

export interface PoolStatistics {
  readonly hosts: readonly HostStatistics[]
  readonly total: number
  readonly idle: number
  readonly waiting: number
}

type Callback<T> = (error: Error | undefined, value?: T) => void

export class BalancedPool extends EventEmitter {
  readonly options: Readonly<BalancedPoolOptions>
  /** Resolved once: options may name modules. */
  readonly #opened: Promise<Balance>
  #balance: Balance | undefined
  readonly #idle: IdleConnections
  readonly #waiting: Deferred<void>[] = []
  readonly #all = new Set<Physical>()
  /** Slots taken by clients that are lent or being opened. */
  #lent = 0
  #ending = false
  #ended: Deferred<void> | undefined

  constructor(target: string | Conninfo, options: BalancedPoolOptions = {}) {
    super()
    this.options = options
    this.#opened = openBalance(target, options).then((balance) => {
      this.#balance = balance
      return balance
    })
    this.#opened.catch(() => undefined)
    this.#idle = new IdleConnections(options.idleTimeoutMillis ?? 10_000, (physical) =>
      this.#remove(physical),
    )
  }

  get totalCount(): number {
    return this.#all.size
  }

  get idleCount(): number {
    return this.#idle.count
  }

  get waitingCount(): number {
    return this.#waiting.length
  }

  get ending(): boolean {
    return this.#ending
  }

  get ended(): boolean {
    return this.#ending && this.#all.size === 0
  }

  stats(): PoolStatistics {
    return {
      hosts: this.#balance?.book.statistics() ?? [],
      total: this.totalCount,
      idle: this.idleCount,
      waiting: this.waitingCount,
    }
  }

  /** One more host, as `host:port`; named again it is picked more often. */
  async addHost(host: string): Promise<void> {
    const balance = this.#balance ?? (await this.#opened)
    balance.book.add(balance.parseHost(host))
  }

  /** Its idle connections are closed, the others when they come back. @throws CLIENT_HOST */
  async removeHost(host: string): Promise<void> {
    const { book } = await this.#opened
    const index = book.remove(host)
    for (const physical of this.#idle.takeAll(index)) this.#remove(physical)
  }

  /** @throws CLIENT_POOL_TIMEOUT, CLIENT_ALL_DOWN, CLIENT_CLOSED, or what a server answered */
  connect(): Promise<BalancedClient>
  connect(
    callback: (
      error: Error | undefined,
      client?: BalancedClient,
      release?: BalancedClient['release'],
    ) => void,
  ): void
  connect(
    callback?: (
      error: Error | undefined,
      client?: BalancedClient,
      release?: BalancedClient['release'],
    ) => void,
  ): Promise<BalancedClient> | undefined {
    const lent = this.#checkOut()
    if (!callback) return lent
    lent.then(
      (client) => callback(undefined, client, (destroy) => client.release(destroy)),
      (error: Error) => callback(error),
    )
    return undefined
  }

  /** Runs one statement on a picked host. Rejects as pg does; the statement is not run again. */
  query<R extends pg.QueryResultRow = pg.QueryResultRow>(
    query: string | pg.QueryConfig,
    values?: unknown[],
  ): Promise<pg.QueryResult<R>>
  query<R extends pg.QueryResultRow = pg.QueryResultRow>(
    query: string | pg.QueryConfig,
    values: unknown[] | Callback<pg.QueryResult<R>>,
    callback?: Callback<pg.QueryResult<R>>,
  ): void
  query<R extends pg.QueryResultRow = pg.QueryResultRow>(
    query: string | pg.QueryConfig,
    values?: unknown[] | Callback<pg.QueryResult<R>>,
    callback?: Callback<pg.QueryResult<R>>,
  ): Promise<pg.QueryResult<R>> | undefined {
    const hear = typeof values === 'function' ? values : callback
    const result = this.#query<R>(query, typeof values === 'function' ? undefined : values)
    if (!hear) return result
    result.then(
      (value) => hear(undefined, value),
      (error: Error) => hear(error),
    )
    return undefined
  }

  /** Waits for clients that are lent, then closes all. */
  async end(): Promise<void> {
    if (this.#ending) throw engineError('CLIENT_CLOSED', { reason: 'end was called before' })
    this.#ending = true
    const gone = engineError('CLIENT_CLOSED', { reason: 'the pool has ended' })
    for (const waits of this.#waiting.splice(0)) waits.reject(gone)
    for (const physical of this.#idle.takeAll()) this.#remove(physical)
    if (this.#lent === 0) return
    this.#ended = deferred()
    await this.#ended.promise
  }

  async #query<R extends pg.QueryResultRow>(
    query: string | pg.QueryConfig,
    values: unknown[] | undefined,
  ): Promise<pg.QueryResult<R>> {
    const client = await this.#checkOut()
    let failure: Error | undefined
    try {
      return await client.query<R>(query as string, values)
    } catch (error) {
      failure = error as Error
      throw error
    } finally {
      client.release(failure && this.#balance?.checker(failure) ? failure : undefined)
    }
  }

  async #checkOut(): Promise<BalancedClient> {
    if (this.#ending) throw engineError('CLIENT_CLOSED', { reason: 'the pool has ended' })
    const balance = this.#balance ?? (await this.#opened)
    if (this.#lent >= (this.options.max ?? 10)) await this.#wait(balance)
    else this.#lent++
    try {
      const { taken } = await pickHost(balance, (index) => this.#take(balance, index))
      return this.#lend(balance, taken)
    } catch (error) {
      this.#freeSlot()
      throw error
    }
  }

  /** Until a slot is handed over. First come, first served. */
  async #wait({ clock }: Balance): Promise<void> {
    const waits: Deferred<void> = deferred()
    this.#waiting.push(waits)
    const { connectionTimeoutMillis: timeoutMs } = this.options
    let timer: Timer | undefined
    if (timeoutMs) {
      timer = clock.after(timeoutMs, () => {
        const at = this.#waiting.indexOf(waits)
        if (at >= 0) this.#waiting.splice(at, 1)
        waits.reject(engineError('CLIENT_POOL_TIMEOUT', { timeoutMs }))
      })
    }
    await waits.promise.finally(() => timer?.cancel())
  }

  #freeSlot(): void {
    const next = this.#waiting.shift()
    if (next) return next.resolve()
    if (--this.#lent === 0) this.#ended?.resolve()
  }

  async #take(balance: Balance, index: number): Promise<Physical> {
    const idle = this.#idle.take(index)
    if (idle) return idle
    // idle ones of other hosts make room: `max` is for all, and we hold a slot already
    if (this.#lent + this.#idle.count > (this.options.max ?? 10)) {
      const oldest = this.#idle.takeOldest()
      if (oldest) this.#remove(oldest)
    }
    const physical = await Physical.open(balance, index)
    this.#all.add(physical)
    physical.client.on('error', (error) => {
      if (this.#idle.forget(physical)) this.emit('error', error, physical.client)
      this.#remove(physical)
    })
    physical.client.once('end', () => {
      this.#idle.forget(physical)
      this.#remove(physical)
    })
    this.emit('connect', physical.client)
    return physical
  }

  #lend(balance: Balance, physical: Physical): BalancedClient {
    balance.book.used(physical.index, 1)
    physical.uses++
    physical.asks()
    const client = physical.client as BalancedClient
    let isLent = true
    client.release = (destroy) => {
      if (!isLent)
        throw new Error('Release called on client which has already been released to the pool.')
      isLent = false
      balance.book.used(physical.index, -1)
      this.#takeBack(balance, physical, destroy)
      this.#freeSlot()
    }
    this.emit('acquire', client)
    return client
  }

  #takeBack(balance: Balance, physical: Physical, destroy: boolean | Error | undefined): void {
    const { book, checker, blocklistTimeoutMs } = balance
    const error = destroy instanceof Error ? destroy : undefined
    if (error && checker(error)) book.switched(physical.index, blocklistTimeoutMs)
    this.emit('release', error, physical.client)
    const mayStay =
      !destroy &&
      !this.#ending &&
      !physical.isGone &&
      physical.status === 'I' &&
      !book.isRemoved(physical.index) &&
      !this.#isWorn(balance, physical)
    if (mayStay) this.#idle.add(physical)
    else this.#remove(physical)
  }

  #isWorn({ clock }: Balance, { uses, openedAtMs }: Physical): boolean {
    const { maxUses, maxLifetimeSeconds } = this.options
    if (maxUses !== undefined && uses >= maxUses) return true
    return !!maxLifetimeSeconds && clock.monotonicMs() - openedAtMs >= maxLifetimeSeconds * 1000
  }

  #remove(physical: Physical): void {
    if (!this.#all.delete(physical)) return
    // in a transaction, or worse: nothing polite to say
    if (physical.status === 'I') void physical.end()
    else destroySocket(physical.client)
    this.emit('remove', physical.client)
  }
}

/** A pool over the hosts of `target`; nothing is opened before the first check-out. */
export function createBalancedPool(
  target: string | Conninfo,
  options: BalancedPoolOptions = {},
): BalancedPool {
  return new BalancedPool(target, options)
}
