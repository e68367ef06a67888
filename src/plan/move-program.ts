/** An UPDATE of the sharding key: rows that belong elsewhere afterwards are taken out and put in there. Routing writes it, session runs it. */
import type { RowsInsert } from './rows-insert.js'

export interface MoveProgram {
  /** Where rows may match. */
  readonly shards: readonly number[]
  readonly returns: boolean
  /** It asks for the time of its transaction: the program with that written in. */
  readonly withClock?: (now: string) => MoveProgram
  /** Locks the rows; for each its table's oid, its ctid, whether it is of another table than the one named, and its new key, the last in binary form. */
  readonly lockSql: string
  /** The client's UPDATE for rows that stay, named by a condition on the row; `key` is returned behind all else when `checksKey`. */
  update(rows: string): string
  /** Takes out rows, and returns what they shall be, in the order of `insert.columns`, and the fingerprint of the table's columns last. */
  remove(rows: string): string
  /** Qualified `ctid` and `tableoid` of the row. */
  readonly rowId: { readonly ctid: string; readonly table: string }
  /** Other tables are read in it: what was locked may look different a moment later. */
  readonly checksKey: boolean
  readonly insert: RowsInsert
  /** Which of `insert.columns` is the key. */
  readonly keyAt: number
  /** What `remove` must say of the columns; another one is a schema that nobody here knows. */
  readonly fingerprint: string
  /** A ctid is known within one partition only. */
  readonly isPartitioned: boolean
  /** The key is text, so its bytes are those of the client's encoding. */
  readonly keyIsText: boolean
  readonly table: string
  readonly column: string
  /** The shard of a new key in binary form; undefined: it cannot be stored, and the server shall say so. @throws KEY_UNMAPPED, KEY_NULL */
  placeKey(key: Buffer | null): number | undefined
}
