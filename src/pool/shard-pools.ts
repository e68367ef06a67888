/** What a session needs of the pools: a server of one shard, now or soon. Made by pool-map.ts. */
import type { ServerConnection } from '../server/server-connection.js'
import type { Checkout } from './checkout.js'
import type { ReadWriteStrategy } from './definition.js'
import type { Position } from './host-group.js'
import type { Owner } from './pool-types.js'
import type { ServerPool } from './server-pool.js'

export type ServerCheckout = Checkout<ServerConnection>

export interface ServerCheckoutOptions {
  /** Leaves the queue when aborted; the promise then rejects with POOL_CHECKOUT_ABORTED. */
  readonly signal?: AbortSignal
  /** The transaction already holds a server of another shard: waits ahead of those that hold none. */
  readonly holdsServers?: boolean
  /** The same object at each checkout of one client: finds those that wait for each other. */
  readonly owner?: Owner
  /** With `any`: a replica must have replayed as much. */
  readonly after?: Position
}

/** The pools of one user on one database. Stays valid over RELOAD while the user and the database exist. */
export interface ShardPools {
  readonly shardCount: number
  readonly readWriteStrategy: ReadWriteStrategy
  /** `read_your_writes`. */
  readonly readsYourWrites: boolean
  /** False when no host of the shard answered when it was last asked. */
  isUp(shard: number): boolean
  /** The host that would be asked first for a server now, if there is one. */
  hostNow?(shard: number, role: 'primary' | 'any'): ServerPool | undefined
  /**
   * A server of `shard`: at once (not a promise) when an idle one may be lent, else after its turn in the queue.
   * `any` is for reads that a replica may answer.
   * @throws (or rejects with) POOL_CHECKOUT_TIMEOUT, POOL_OFFLINE, POOL_CONNECT_FAILED, POOL_CONNECT_TIMEOUT, POOL_ALL_REPLICAS_DOWN, POOL_NO_PRIMARY, POOL_BANNED, POOL_HOLDERS_DEADLOCK, POOL_CHECKOUT_ABORTED
   */
  checkout(
    shard: number,
    role: 'primary' | 'any',
    options?: ServerCheckoutOptions,
  ): ServerCheckout | Promise<ServerCheckout>
  /** What `server` has said of itself; without a timeline that of its host. undefined: its host is not known well enough. */
  positionOf(
    shard: number,
    server: ServerConnection,
    lsnBytes: bigint,
    timeline: number | undefined,
  ): Position | undefined
  /** What a caller that waits for a server waits for, for people. */
  whyWaiting(shard: number, role: 'primary' | 'any'): string
  /** `server` refused a write because it is a replica (25006): whether its host is still the primary is asked now. */
  wasReadOnly(shard: number, server: ServerConnection): void
}

export interface PoolMap {
  /** undefined when there is no such user or database. */
  shardPools(user: string, database: string): ShardPools | undefined
}
