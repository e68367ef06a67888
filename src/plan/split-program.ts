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

export interface SplitProgram {
  readonly parts: readonly SplitPart[]
  /** RETURNING stands in the statement. */
  readonly returns: boolean
  /** For each row of the client's VALUES the part that inserts it: where every row returns one, they come in this order. */
  readonly owners?: readonly number[]
  /** A parameter without a type stands in several places, of which a part may hold only some: a server says its type. */
  readonly needsTypes?: boolean
  readonly draw?: Draw
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
