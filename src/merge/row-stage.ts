/** One step on the way of rows from the shards to the client: grouping, sorting, limiting. */
export interface RowStage {
  /** False: no row may be given now; the answer is complete, or the client has all rows that it asked for so far. */
  readonly takes: boolean
  /** True: no row will ever be taken again. */
  readonly isFull: boolean
  /** The row [start, end), whose keys in the order of the rows are in `slot`. Borrowed until the call returns, but for memory of a RowArena. */
  row(bytes: Buffer, start: number, end: number, slot: number): void
  /** No more rows come: hands on what is held. False: call again when the stage takes rows again. */
  finish(): boolean
}
