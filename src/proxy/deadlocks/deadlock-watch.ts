/**
 * Deadlocks that no single server can see (hard-parts §3.3): while transactions on several shards wait longer than
 * `cross_shard_deadlock_ms`, the shards are asked who blocks whom, on connections of our own, because those of the pools
 * may all be stuck. A cycle that is there twice ends by its youngest transaction. Knows the clients of this process.
 */
import type { Clock, Timer } from '../base/clock.js'
import type { Log } from '../base/log.js'
import { toEngineError } from '../errors/engine-error.js'
import {
  type DeadlockParty,
  type PoolWait,
  type ShardWaits,
  youngestOfDeadlock,
} from '../executor/deadlock-graph.js'
import type { OpenServer } from '../pool/definition.js'
import type { UserPools } from '../pool/user-pools.js'
import type { ServerConnection } from '../server/server-connection.js'
import { openPastPool } from './ask-primary.js'

export interface DeadlockWatchOptions {
  readonly openServer: OpenServer
  readonly clock: Clock
  readonly log: Log
  readonly waitMs: () => number
}

export class DeadlockWatch {
  readonly #options: DeadlockWatchOptions
  readonly #parties = new Map<DeadlockParty, UserPools>()
  #beat: Timer | undefined
  /** Ended by us. */
  victims = 0

  constructor(options: DeadlockWatchOptions) {
    this.#options = options
  }

  /** For the clients of one user. */
  of(pools: UserPools): { enter(party: DeadlockParty): void; leave(party: DeadlockParty): void } {
    return {
      enter: (party) => {
        this.#parties.set(party, pools)
        this.#arm()
      },
      leave: (party) => void this.#parties.delete(party),
    }
  }

  stop(): void {
    this.#parties.clear()
    this.#beat?.cancel()
    this.#beat = undefined
  }

  #arm(): void {
    if (this.#beat || this.#parties.size === 0) return
    // a cycle is found between one and one and a half times the wait
    this.#beat = this.#options.clock.after(Math.max(10, this.#options.waitMs() / 2), () => {
      void this.#look().finally(() => {
        this.#beat = undefined
        this.#arm()
      })
    })
  }

  async #look(): Promise<void> {
    const since = this.#options.clock.monotonicMs() - this.#options.waitMs()
    const late = new Map<string, UserPools>()
    for (const [party, pools] of this.#parties) {
      const from = party.waitsSinceMs
      const holds = party.servers.length + (party.waitsForPool === undefined ? 0 : 1)
      if (from !== undefined && from <= since && holds > 1)
        late.set(pools.definition.database, pools)
    }
    for (const [database, pools] of late) {
      try {
        await this.#lookAt(database, pools)
      } catch (error) {
        const reason = toEngineError(error).message
        this.#options.log.warn('deadlocks over shards could not be looked for', {
          database,
          reason,
        })
      }
    }
  }

  async #lookAt(database: string, pools: UserPools): Promise<void> {
    const servers = new Map<number, ServerConnection>()
    try {
      const first = await this.#victimOf(database, pools, servers)
      if (!first) return
      // what each shard said, it said at another moment: only a cycle that stays is one
      const again = await this.#victimOf(database, pools, servers)
      if (again !== first || first.waitsSinceMs === undefined) return
      this.victims++
      this.#options.log.info('a deadlock over shards ends its youngest transaction', { database })
      first.giveWay()
    } finally {
      for (const server of servers.values()) server.close()
    }
  }

  async #victimOf(
    database: string,
    pools: UserPools,
    servers: Map<number, ServerConnection>,
  ): Promise<DeadlockParty | undefined> {
    const parties: DeadlockParty[] = []
    const pids = new Map<number, number[]>()
    for (const [party, of] of this.#parties) {
      if (of.definition.database !== database || party.waitsSinceMs === undefined) continue
      parties.push(party)
      for (const { shard, pid } of party.servers) pids.set(shard, [...(pids.get(shard) ?? []), pid])
    }
    const shards = await Promise.all(
      [...pids].map(async ([shard, known]) => {
        const server =
          servers.get(shard) ?? (await openPastPool(pools, shard, this.#options.openServer))
        servers.set(shard, server)
        return waitsOn(server, shard, known)
      }),
    )
    return youngestOfDeadlock(parties, shards, this.#poolWaits(parties))
  }

  /** Who stands in line for a pool whose servers are all lent to clients that we know. */
  #poolWaits(waiting: readonly DeadlockParty[]): PoolWait<DeadlockParty>[] {
    const owners = new Map(waiting.map((party) => [party.owner, party]))
    return waiting.flatMap((party) => {
      const shard = party.waitsForPool
      if (shard === undefined) return []
      const standings = (this.#parties.get(party)?.shards[shard] ?? [])
        .filter(({ role }) => role === 'primary')
        .map(({ pool }) => pool.standing)
      const lent = standings.flatMap((standing) => standing.owners)
      const holders = lent.flatMap((owner) => (owner && owners.get(owner)) ?? [])
      const isFull = standings.every(({ hasFree }) => !hasFree) && holders.length === lent.length
      return isFull ? [{ party, shard, holders }] : []
    })
  }
}

async function waitsOn(
  server: ServerConnection,
  shard: number,
  pids: readonly number[],
): Promise<ShardWaits> {
  const results = await server.query(`WITH RECURSIVE w (pid) AS (
      SELECT pg_catalog.unnest('{${pids.join(',')}}'::integer[])
      UNION SELECT pg_catalog.unnest(pg_catalog.pg_blocking_pids(w.pid)) FROM w WHERE w.pid > 0)
    SELECT pid, pg_catalog.array_to_string(pg_catalog.pg_blocking_pids(pid), ',') FROM w
    WHERE pid > 0`)
  return {
    shard,
    waits: (results.at(-1)?.rows ?? []).map(([pid, blockers]) => ({
      pid: Number(pid),
      blockers: (blockers ?? '').split(',').filter(Boolean).map(Number),
    })),
  }
}
