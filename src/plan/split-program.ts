/** A write that becomes another text on each shard: routing writes it, session runs it in one transaction. Plain data. */

export interface SplitPart {
  readonly shard: number
  /** Parameters keep their numbers; those that this part does not name are left out of its Bind by the session. */
  readonly sql: string
}

export interface SplitProgram {
  readonly parts: readonly SplitPart[]
}
