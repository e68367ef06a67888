/** INSERT … SELECT whose rows the session reads first and puts on their shards then. Routing writes it, session runs it. */
import type { RowsInsert } from './rows-insert.js'

/** A column of the query's answer. */
export interface SelectedField {
  readonly type: number
}

export interface SelectInsertProgram {
  readonly returns: boolean
  /** It asks for the time of its transaction: the program with that written in. */
  readonly withClock?: (now: string) => SelectInsertProgram
  /** The query, with the client's parameters by their numbers. */
  readonly query: string
  /** SQL of a value that a server draws for each row's key, which the statement leaves out. */
  readonly keyDefault?: string
  /** Forms in which the fields are asked for. @throws WRITE_SELECTED_TYPE */
  formatsOf(fields: readonly SelectedField[]): readonly (0 | 1)[]
  /** With a drawn key: its value is the last of each row. */
  insertFor(fields: readonly SelectedField[]): RowsInsert
  /** Shards of a row; `drawnType`: the type of a drawn key, the last value. @throws KEY_UNMAPPED, KEY_NULL, WRITE_SELECTED_TYPE */
  shardsOf(
    row: readonly (Buffer | null)[],
    fields: readonly SelectedField[],
    drawnType: number | undefined,
  ): readonly number[]
  /** The key is text, and stands here among the fields: its bytes are those of the client's encoding. */
  readonly textKeyAt?: number
  /** Every shard takes every row: they must count the same, and one answers. */
  readonly isEverywhere: boolean
  readonly table: string
}
