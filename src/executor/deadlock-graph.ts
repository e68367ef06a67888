/**
 * Who waits for whom over shards: nodes are transactions, or a server process of one shard when we do not know whose it
 * is; a transaction of several servers is one node, with what it has prepared for its commit. Pure.
 */

/** What one shard says: a process and those that it waits for. */
export interface ShardWaits {
  readonly shard: number
  readonly waits: readonly {
    readonly pid: number
    readonly blockers: readonly number[]
    /** Prepared transactions that it waits for, by the key in their gid. */
    readonly prepared: readonly string[]
  }[]
}

/** A server of a transaction. */
export interface PartyServer {
  readonly shard: number
  readonly pid: number
  /** A second one of its shard, that takes no part in the transaction but works for it. */
  readonly isApart?: boolean
}

/** A transaction on several servers. */
export interface Party {
  /** Greater is younger. */
  readonly order: number
  /** The same in every process that sees it: says who is younger of those that began in the same moment. */
  readonly name: string
  readonly servers: readonly PartyServer[]
  /** The key in the gids of its two-phase commit, while that is under way. */
  readonly decision: string | undefined
}

/** A client's transaction on several servers, as the search for deadlocks sees it. */
export interface DeadlockParty extends Omit<Party, 'name'> {
  /** When the request that runs now began; undefined: none, or it waits for a pool. */
  readonly waitsSinceMs: number | undefined
  /** The shard in whose pool it stands in line, while it holds servers of others. */
  readonly waitsForPool: number | undefined
  /** By which a pool knows it. */
  readonly owner: object
  /** Fails its statement with 40P01, and lets go of its locks. */
  giveWay(): void
}

/** A transaction that waits for a server of a pool, all of which are lent to these. */
export interface PoolWait<P> {
  readonly party: P
  readonly shard: number
  readonly holders: readonly P[]
}

interface Edge<P> {
  readonly to: P | string
  readonly shard: number
}

/**
 * The known transactions that must end so that no cycle is left that no single server sees: of each its youngest, as if
 * the ones before had ended already. Cycles within one shard are left to PostgreSQL, which finds them itself.
 */
export function victimsOfDeadlocks<P extends Party>(
  parties: readonly P[],
  shards: readonly ShardWaits[],
  pools: readonly PoolWait<P>[] = [],
): P[] {
  const edges = lockEdges(parties, shards)
  for (const { party, shard, holders } of pools) {
    const known = edges.get(party) ?? []
    // a pool is left by a door of its own: a cycle through it is no server's to see
    edges.set(party, [...known, ...holders.map((to) => ({ to, shard: -1 - shard }))])
  }
  const inPools = new Set(pools.map(({ party }) => party))
  const victims: P[] = []
  for (;;) {
    const victim = youngestOfCycle(parties, edges, inPools)
    if (!victim) return victims
    victims.push(victim)
    // who has ended waits for nobody
    edges.delete(victim)
  }
}

function youngestOfCycle<P extends Party>(
  parties: readonly P[],
  edges: ReadonlyMap<P | string, readonly Edge<P>[]>,
  inPools: ReadonlySet<P>,
): P | undefined {
  const stuck = stuckNodes(edges, inPools)
  let youngest: P | undefined
  for (const party of parties) {
    if (!stuck.has(party) || !isInCycle(party, edges)) continue
    if (!youngest || isYounger(party, youngest)) youngest = party
  }
  return youngest
}

const isYounger = (a: Party, b: Party): boolean =>
  a.order === b.order ? a.name > b.name : a.order > b.order

function lockEdges<P extends Party>(
  parties: readonly P[],
  shards: readonly ShardWaits[],
): Map<P | string, Edge<P>[]> {
  const owners = new Map<string, P>()
  const apart = new Set<string>()
  for (const party of parties) {
    for (const { shard, pid, isApart } of party.servers) {
      owners.set(`${shard}:${pid}`, party)
      if (isApart) apart.add(`${shard}:${pid}`)
    }
    if (party.decision !== undefined) owners.set(party.decision, party)
  }
  const nodeOf = (name: string): P | string => owners.get(name) ?? name
  const edges = new Map<P | string, Edge<P>[]>()
  for (const { shard, waits } of shards) {
    for (const { pid, blockers, prepared } of waits) {
      const from = nodeOf(`${shard}:${pid}`)
      // its PostgreSQL takes it for somebody else, and sees no cycle through it
      const door = apart.has(`${shard}:${pid}`) ? shard + 0.5 : shard
      const names = blockers.flatMap((blocker) => (blocker > 0 ? [`${shard}:${blocker}`] : []))
      const to = [...names, ...prepared].map((name) => ({ to: nodeOf(name), shard: door }))
      edges.set(from, [...(edges.get(from) ?? []), ...to])
    }
  }
  return edges
}

/** Those that wait for nobody but each other: in a pool it is enough that one holder goes on, for locks all must. */
function stuckNodes<P>(
  edges: ReadonlyMap<P | string, readonly Edge<P>[]>,
  inPools: ReadonlySet<P>,
): ReadonlySet<P | string> {
  const stuck = new Set<P | string>(
    [...edges].flatMap(([node, to]) => (to.length > 0 ? [node] : [])),
  )
  for (let before = -1; before !== stuck.size; ) {
    before = stuck.size
    for (const node of stuck) {
      const to = edges.get(node) ?? []
      const isPool = typeof node !== 'string' && inPools.has(node)
      const waits = isPool
        ? to.every((edge) => stuck.has(edge.to))
        : to.some((edge) => stuck.has(edge.to))
      if (!waits) stuck.delete(node)
    }
  }
  return stuck
}

/** Whether a way leads from a node back to itself over more than one shard, or from one of its servers to another. */
function isInCycle<P>(start: P, edges: ReadonlyMap<P | string, readonly Edge<P>[]>): boolean {
  const seen = new Set<string>()
  const ids = new Map<P | string, number>()
  const idOf = (node: P | string): number => {
    const id = ids.get(node) ?? ids.size
    ids.set(node, id)
    return id
  }
  const open: { node: P | string; shard: number | undefined; several: boolean }[] = [
    { node: start, shard: undefined, several: false },
  ]
  for (let at = open.pop(); at; at = open.pop()) {
    for (const { to, shard } of edges.get(at.node) ?? []) {
      const several = at.several || (at.shard !== undefined && at.shard !== shard)
      if (to === start && (several || at.node === start)) return true
      const key = `${idOf(to)} ${shard} ${several}`
      if (to === start || seen.has(key)) continue
      seen.add(key)
      open.push({ node: to, shard, several })
    }
  }
  return false
}
