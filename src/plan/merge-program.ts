/** How the rows of several shards become one answer: routing writes it, executor drives `merge/` by it. Plain data. */

/** A column of the shards' rows, by its number from 0; it may be a hidden one. */
export interface SortKey {
  readonly column: number
  readonly descending: boolean
  readonly nullsFirst: boolean
}

/** How the partial values of one aggregate column are made one. `parts`: columns of the shards' rows that hold them. */
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
}

export interface MergeProgram {
  /** What every shard is sent instead of the statement; parameters keep their numbers. */
  readonly sql: string
  /** The client sees this many columns from the left; those behind them are hidden. */
  readonly visible: number
  /** Order of the shards' rows and of the answer. Empty: none. */
  readonly order: readonly SortKey[]
  /** Rows equal in these columns become one: GROUP BY, DISTINCT, DISTINCT ON. Empty list: all rows are one group. */
  readonly unique?: readonly number[]
  readonly combine: readonly Combine[]
  /** null: none. */
  readonly limit: bigint | null
  readonly offset: bigint
  readonly withTies: boolean
}
