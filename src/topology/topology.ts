/** Databases → shards → hosts. An immutable snapshot: reload builds a new one. */

export type HostRole = 'primary' | 'replica' | 'auto'

export type PoolerMode = 'transaction' | 'session' | 'statement'

/** What a database entry or a user sets instead of the general pool settings; `config/pool-settings.ts` resolves them. */
export interface PoolOverrides {
  readonly poolSize?: number
  readonly poolSizePrimary?: number
  readonly poolSizeReplica?: number
  readonly minPoolSize?: number
  readonly minPoolSizePrimary?: number
  readonly minPoolSizeReplica?: number
  readonly idleTimeoutMs?: number
  readonly idleTimeoutPrimaryMs?: number
  readonly idleTimeoutReplicaMs?: number
  readonly poolerMode?: PoolerMode
  readonly serverLifetimeMs?: number
  readonly serverLifetimeJitterMs?: number
  /** Settings of the server connections, 0 is off as in PostgreSQL. */
  readonly statementTimeoutMs?: number
  readonly lockTimeoutMs?: number
}

export interface Host extends PoolOverrides {
  readonly host: string
  readonly port: number
  /** Name of the database on that server. */
  readonly database: string
  readonly role: HostRole
  /** Relative share of reads; 255 is PgDog's default. */
  readonly weight: number
  /** Credentials of the database entry, which win over the user's. */
  readonly user?: string
  readonly password?: string
  /** Server connections get default_transaction_read_only = on. */
  readonly readOnly?: boolean
  /** Read by reshard only; clients never reach it. */
  readonly reshardingOnly?: boolean
}

export interface Shard {
  readonly number: number
  readonly hosts: readonly Host[]
}

export interface DatabaseTopology {
  /** The name that clients connect to. */
  readonly name: string
  /** Numbered 0..n−1 without gaps. */
  readonly shards: readonly Shard[]
}
