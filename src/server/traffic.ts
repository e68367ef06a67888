/** What went over one server, or over all servers of a pool. */
export interface Traffic {
  transactions: number
  queries: number
  received: number
  sent: number
  /** Statements of clients. */
  reads: number
  writes: number
  /** Uses of a prepared statement that the server had already, and those for which it was prepared. */
  preparedHits: number
  preparedMisses: number
  /** Statements closed to make room, and all that were closed. */
  preparedEvictions: number
  preparedCloses: number
  /** Errors that it answered. */
  errors: number
  rollbacks: number
  /** Times that it was made clean with DISCARD ALL. */
  cleaned: number
  /** Times that it was read to the end of its replies behind a client that had gone. */
  resynced: number
  checks: number
  rowsInserted: number
  rowsUpdated: number
  rowsDeleted: number
}

export const noTraffic = (): Traffic => ({
  transactions: 0,
  queries: 0,
  received: 0,
  sent: 0,
  reads: 0,
  writes: 0,
  preparedHits: 0,
  preparedMisses: 0,
  preparedEvictions: 0,
  preparedCloses: 0,
  errors: 0,
  rollbacks: 0,
  cleaned: 0,
  resynced: 0,
  checks: 0,
  rowsInserted: 0,
  rowsUpdated: 0,
  rowsDeleted: 0,
})

export function addTraffic(sum: Traffic, more: Traffic): void {
  for (const name of Object.keys(more) as (keyof Traffic)[]) sum[name] += more[name]
}

/** Counts the rows of a command tag: `INSERT 0 5`, `UPDATE 3`, `DELETE 1`, `MERGE 4` (as updated). */
export function countRows(traffic: Traffic, tag: string): void {
  const rows = Number(tag.slice(tag.lastIndexOf(' ') + 1))
  if (!(rows > 0)) return
  if (tag.startsWith('INSERT')) traffic.rowsInserted += rows
  else if (tag.startsWith('UPDATE') || tag.startsWith('MERGE')) traffic.rowsUpdated += rows
  else if (tag.startsWith('DELETE')) traffic.rowsDeleted += rows
}
