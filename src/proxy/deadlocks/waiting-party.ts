/** A transaction that waits, in this process or another, as one look at the shards sees it. */
import type { DeadlockParty, Party, PoolWait } from '../../executor/deadlock-graph.js'

export interface WaitingParty extends Party {
  /** When its request began, by the clock of its process: the same wait has the same. */
  readonly since: number
  /** The pool in whose line it stands, and the names of those who have all its servers. */
  readonly pool: { readonly shard: number; readonly holders: readonly string[] } | undefined
  /** Present when it is of this process. */
  readonly own?: DeadlockParty
  /** Of another process: when that told of it. */
  readonly seenAt?: number
}

/** Those that stand in line for a pool all of whose servers are lent to known ones. */
export function poolWaitsOf(parties: readonly WaitingParty[]): PoolWait<WaitingParty>[] {
  const byName = new Map(parties.map((party) => [party.name, party]))
  return parties.flatMap((party) => {
    if (!party.pool) return []
    const { shard, holders } = party.pool
    const known = holders.flatMap((name) => byName.get(name) ?? [])
    return known.length === holders.length ? [{ party, shard, holders: known }] : []
  })
}
