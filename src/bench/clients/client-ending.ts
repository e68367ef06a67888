/** How a client's run of a script ends. */

/** `lost`: the transaction went with its connection, and the client goes on with another one. */
export type Ending = 'done' | 'serialization' | 'deadlock' | 'lost' | 'aborted' | 'interrupted'

/** Errors after which pgbench tries a transaction again, by SQLSTATE. */
export const retriable: Readonly<Record<string, 'serialization' | 'deadlock'>> = {
  '40001': 'serialization',
  '40P01': 'deadlock',
}

/** Errors that say of the server, not of the statement, that it cannot go on here: lost, shutting down, read-only after a switch. */
export const isServerGone = (sqlstate: string | undefined): boolean =>
  sqlstate !== undefined && /^(08|57P0|25006)/.test(sqlstate)

/** Ends a client, with what to say about it. */
export class ClientAborted extends Error {
  /** Of the error that did it; absent: the script is at fault. */
  readonly sqlstate: string | undefined

  constructor(message: string, sqlstate?: string) {
    super(message)
    this.sqlstate = sqlstate
  }
}
