/** What the pools of one user on one database are to be; proxy/ makes these from the configuration. Plain values. */
import type { OpenServerOptions } from '../server/open-server.js'
import type { ServerConnection } from '../server/server-connection.js'
import type { ServerTarget } from '../server/server-target.js'
import type { HostRole } from '../topology/topology.js'
import type { BalancingStrategy } from './balancer.js'
import type { HealthSettings } from './health.js'
import type { PoolLimits } from './pool-types.js'

export type ReadWriteSplit =
  | 'include_primary'
  | 'exclude_primary'
  | 'include_primary_if_replica_banned'
  | 'prefer_primary'

/** Explicit transactions go to the primary, or where their first statement belongs. */
export type ReadWriteStrategy = 'conservative' | 'aggressive'

export interface HostDefinition {
  readonly target: ServerTarget
  readonly role: HostRole
  readonly weight: number
  readonly limits: PoolLimits
}

export interface PoolDefinition {
  /** As clients call it. */
  readonly user: string
  readonly database: string
  /** What decides where rows live; when it differs after a reload, whoever waits was routed by the old one. */
  readonly layout: string
  /** In shard order, without gaps. */
  readonly shards: readonly { readonly hosts: readonly HostDefinition[] }[]
  readonly strategy: BalancingStrategy
  readonly readWriteSplit: ReadWriteSplit
  readonly readWriteStrategy: ReadWriteStrategy
  /** A client's reads show what it wrote and read before. */
  readonly readsYourWrites: boolean
  /** Connections at most to one host for one database, over all users; of one user, over all hosts. Infinity: unlimited. */
  readonly maxDbConnections: number
  readonly maxUserConnections: number
  readonly connect: {
    readonly timeoutMs: number
    readonly attempts: number
    readonly attemptDelayMs: number
  }
  readonly health: HealthSettings & {
    readonly checkTimeoutMs: number
    /** New hosts take no reads until a check has passed. */
    readonly isDistrustful: boolean
    /** Replicas further behind are banned; Infinity: none. */
    readonly banLagMs: number
    readonly banLagBytes: number
  }
  /** Between looks at what hosts are: primary or replica, and how far. */
  readonly roleCheckIntervalMs: number
  /** Hosts with a fixed role are looked at too, from so long after the start; Infinity: they are not. */
  readonly lagCheckDelayMs: number
  /** Prepared statements of a server are closed after this, ± the jitter; Infinity: never. */
  readonly preparedTtlMs: number
  readonly preparedTtlJitterMs: number
  /** For SHOW POOLS. */
  readonly schemaAdmin: boolean
  readonly poolerMode: 'transaction' | 'session' | 'statement'
}

/** How a server is opened; `openServer` of server/, or a fake. */
export type OpenServer = (
  target: ServerTarget,
  options: OpenServerOptions,
) => Promise<ServerConnection>
