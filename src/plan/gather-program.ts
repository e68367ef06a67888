/** What is copied to one PostgreSQL, and the statement that finishes there: routing writes it, `gather/` obeys. Plain data. */
import type { ShardSet } from '../sharding/shard-set.js'

export interface GatheredColumn {
  readonly name: string
  /** Oid of the type beneath domains. */
  readonly type: number
}

/** Rows matter only where `column` equals a value of column `theirs` of the copy of table `to`. */
export interface JoinedRows {
  readonly column: string
  readonly to: string
  readonly theirs: string
  /** Oid of the type of `theirs`, one of PostgreSQL's own. */
  readonly type: number
}

export interface GatheredTable {
  readonly schema: string
  /** Its name on the shards, and that of its temporary table. */
  readonly name: string
  /** In the order of the table; those that the statement may read. */
  readonly columns: readonly GatheredColumn[]
  /** Read without its children. */
  readonly only: boolean
  /** Condition in terms of its own columns, as SQL without parameters: other rows cannot matter. */
  readonly filter?: string
  /** It is copied after `to`, as far as its rows join: never together with a filter. */
  readonly joined?: JoinedRows
  /** Where its rows are read. Of a reference table: one that has them. */
  readonly shards: ShardSet
  /** Its primary key, where the statement may lean on it (GROUP BY). */
  readonly primaryKey?: readonly string[]
  /** It stands on one shard, which had better be the one that finishes. */
  readonly livesOn?: number
}

/** A view over such tables, made anew over their copies. */
export interface GatheredView {
  readonly name: string
  /** Its query with the schemas of `tables`, and of views made before it, blanked out. */
  readonly sql: string
  /** The same when `references` are copied too. */
  readonly sqlWithReferences: string
}

/** A text to run, its tables' names without their schemas. */
export interface GatherProgram {
  readonly tables: readonly GatheredTable[]
  /** Tables that stand on every shard: read where the statement finishes, unless the transaction has written. */
  readonly references: readonly GatheredTable[]
  /** In the order in which they can be made. */
  readonly views: readonly GatheredView[]
  /** The client's statement with the schemas of `tables` blanked out. */
  readonly sql: string
  /** The same when `references` are copied too. */
  readonly sqlWithReferences: string
  /** now() or its kin stand in it: in a transaction they would be those of another one. */
  readonly usesClock: boolean
  /** A backslash in a string of these texts is one (`standard_conforming_strings`). */
  readonly standard: boolean
}
