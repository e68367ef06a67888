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
})

export function addTraffic(sum: Traffic, more: Traffic): void {
  for (const name of Object.keys(more) as (keyof Traffic)[]) sum[name] += more[name]
}
