/** How the rows of several shards become one answer: routing writes it, executor drives `merge/` by it. Plain data. */

/** A column of the shards' rows, by its number from 0; it may be a hidden one. */
export interface SortKey {
  readonly column: number
  readonly descending: boolean
  readonly nullsFirst: boolean
  /**
   * Text in this column is in the order of its bytes: its collation is C-like, or the shards were told `COLLATE "C"`.
   * Absent: not known to be, so only types without a collation may stand there; the merger refuses all others.
   */
  readonly bytewise?: boolean
}

/**
 * How the partial values of one aggregate column are made one. `parts`: columns of the shards' rows that hold them.
 * avg: sum, count. stddev and variance with a numeric result: count, sum, sum of squares, all as exact numerics; with a
 * float8 result: count, sum, and the sum of squared deviations (`regr_sxx(x, x)`). All others: the aggregate itself.
 * The type of the answer's column, in the RowDescription, is the type of the aggregate.
 */
export interface Combine {
  /** Column of the answer. */
  readonly column: number
  readonly by:
    | 'count'
    | 'sum'
    | 'min'
    | 'max'
    | 'avg'
    | 'bool_and'
    | 'bool_or'
    | 'bit_and'
    | 'bit_or'
    | 'bit_xor'
    | 'stddev_samp'
    | 'stddev_pop'
    | 'var_samp'
    | 'var_pop'
  readonly parts: readonly number[]
  /** With min and max: as of a sort key. */
  readonly bytewise?: boolean
}

export interface MergeProgram {
  /** What every shard is sent instead of the statement; parameters keep their numbers. */
  readonly sql: string
  /** The client sees this many columns from the left; those behind them are hidden. Below zero: it sees all. */
  readonly visible: number
  /** The order in which each shard's rows come, and in which they are merged. Empty: none. */
  readonly order: readonly SortKey[]
  /**
   * Rows equal in these columns become one: GROUP BY, DISTINCT, DISTINCT ON (the first stands for all). They are among the
   * keys of `order`, so that equal rows come behind each other. Empty list: all rows are one group.
   */
  readonly unique?: readonly number[]
  readonly combine: readonly Combine[]
  /** Order of the answer where it is not `order` (by aggregates): the merged rows are held and sorted before the limit. */
  readonly sort?: readonly SortKey[]
  /** null: none. */
  readonly limit: bigint | null
  readonly offset: bigint
  readonly withTies: boolean
  /** With ties: how many keys of the order (from the first) are the client's own; absent: all. */
  readonly tieKeys?: number
}
