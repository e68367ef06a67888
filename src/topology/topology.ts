/** Databases → shards → hosts. An immutable snapshot: reload builds a new one. */

export type HostRole = 'primary' | 'replica' | 'auto'

export interface Host {
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
