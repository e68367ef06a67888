/** A write of several shards: routing writes it, session runs it in one transaction. Plain data, except `Draw.finish`. */

export interface SplitPart {
  readonly shard: number
  /** Parameters keep the client's numbers; those that this part does not name are left out of its Bind by the session. */
  readonly sql: string
}

/** What a server has answered to the queries of a draw, one result a query. */
export interface DrawnResult {
  readonly columns: readonly { readonly typeOid: number }[]
  readonly rows: readonly (readonly (string | null)[])[]
}

/** Values that a server must compute before anybody knows where rows belong, or that must be one value on all shards. */
export interface Draw {
  /** Queries, without parameters, for the server that leads; how many. */
  readonly sql: string
  readonly count: number
  /** Its now() is asked for: it must be the server whose transaction the client's is. */
  readonly usesClock: boolean
  /** @throws the refusal of what cannot be placed after all */
  finish(results: readonly DrawnResult[]): SplitProgram
}

/** An UPDATE of the sharding key, whose rows leave their shards. */
export interface MovedRows {
  /** The UPDATE with RETURNING of ctid and of `columns` of the new row, for shards that rows leave. */
  readonly updateSql: string
  readonly table: string
  /** Of the new rows, in the order of RETURNING behind ctid; the generated ones left out. */
  readonly columns: readonly string[]
  /** Shard of a new row. @throws KEY_UNMAPPED */
  shardOf(row: readonly (string | null)[]): number
  /** Takes the row at these ctids away; a text array is spliced for %. */
  readonly deleteSql: (ctids: readonly string[]) => string
  readonly insertSql: (rows: readonly (readonly (string | null)[])[]) => string
  /** RETURNING of rows that stay where they are; absent: the statement returns nothing. */
  readonly staySql?: (ctids: readonly string[]) => string
}

export interface SplitProgram {
  readonly parts: readonly SplitPart[]
  /** RETURNING stands in the statement. */
  readonly returns: boolean
  /** For each row of the client's VALUES the part that inserts it: where every row returns one, they come in this order. */
  readonly owners?: readonly number[]
  /** A parameter without a type stands in several places, of which a part may hold only some: a server says its type. */
  readonly needsTypes?: boolean
  readonly draw?: Draw
  readonly moves?: MovedRows
}

/** A statement that every shard runs, with the same outcome. */
export interface EverywhereProgram {
  /** Cannot stand in a transaction: shard after shard, and what has run stays. */
  readonly outsideTransaction: boolean
  /** Every shard must count the same rows (writes of reference tables). */
  readonly sameCount: boolean
  readonly returns: boolean
  /** The text instead of the client's, when values in it were to be one on all shards. */
  readonly split?: SplitProgram
  /** Asked on each shard behind the statement, in its transaction. */
  readonly afterwards?: (shard: number, shardCount: number) => string
}
