/** What is copied to one PostgreSQL, and the statement that finishes there: routing writes it, `gather/` obeys. Plain data. */
import type { ShardSet } from '../sharding/shard-set.js'

export interface GatheredTable {
  /** Name of the temporary table. */
  readonly name: string
  /** As it stands on the shards. */
  readonly schema: string
  readonly relation: string
  readonly columns: readonly string[]
  /** Pushed-down condition in terms of the table's own columns, as SQL; parameters keep their numbers. */
  readonly filter?: string
  /** Where its rows are read. */
  readonly shards: ShardSet
}

export interface GatherProgram {
  readonly tables: readonly GatheredTable[]
  /** The client's statement with schema-qualified names spliced out. */
  readonly sql: string
}
