/** How a client's run of a script ends. */

export type Ending = 'done' | 'serialization' | 'deadlock' | 'aborted' | 'interrupted'

/** Errors after which pgbench tries a transaction again, by SQLSTATE. */
export const retriable: Readonly<Record<string, 'serialization' | 'deadlock'>> = {
  '40001': 'serialization',
  '40P01': 'deadlock',
}

/** Ends a client, with what to say about it. */
export class ClientAborted extends Error {}
