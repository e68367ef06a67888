/** Rows that the session holds, as an INSERT of parameters. */

export interface CarriedColumn {
  readonly name: string
  /** Declared type of its parameters; 0: the server takes text for the column's own type. */
  readonly type: number
  readonly format: 0 | 1
}

export interface RowsInsert {
  /** `INSERT INTO "s"."t" AS "x" ("a", "b") ` up to VALUES. */
  readonly head: string
  readonly columns: readonly CarriedColumn[]
  /** SQL of what every row has behind them. */
  readonly constants: readonly string[]
  /** ON CONFLICT, RETURNING; or nothing. */
  readonly tail: string
  /** Rows must not come in several statements. */
  readonly isWhole: boolean
}
