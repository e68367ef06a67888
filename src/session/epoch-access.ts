/** What a session is told of moves of its database. */
export interface EpochAccess {
  /** A move is prepared or done: what is sent may be refused. */
  readonly isMoving: boolean
  /** Marks a refusal of the fence, in the bytes of its ErrorResponse. */
  readonly mark: Buffer
  /** Resolves when another try makes sense, or waiting for it was in vain. */
  refused(): Promise<void>
}
