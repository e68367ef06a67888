/**
 * Deadlocks that no single server can see (hard-parts §3.3): while transactions on several shards wait longer than
 * `cross_shard_deadlock_ms`, the shards are asked who blocks whom, and the other processes which of these are one. A cycle
 * that is there twice ends by its youngest transaction, in the process that has it; all that are seen, at once.
 */
import { randomBytes } from 'node:crypto'
import type { Clock, Timer } from '../../base/clock.js'
import type { Log } from '../../base/log.js'
import { toEngineError } from '../../errors/engine-error.js'
import {
  type DeadlockParty,
  type ShardWaits,
  victimsOfDeadlocks,
} from '../../executor/deadlock-graph.js'
import type { OpenServer } from '../../pool/definition.js'
import type { UserPools } from '../../pool/user-pools.js'
import { askWhoWaits, ShardConnections } from './ask-shards.js'
import { exchange, timeOf } from './other-processes.js'
import { poolWaitsOf, type WaitingParty } from './waiting-party.js'

export interface DeadlockWatchOptions {
  readonly openServer: OpenServer
  readonly clock: Clock
  readonly log: Log
  readonly waitMs: () => number
}

/** No schema pgshard, an older one, or no right to it. */
const CANNOT_TELL = new Set(['3F000', '42P01', '42501'])
const ASK_AGAIN_MS = 60_000

interface Member {
  readonly pools: UserPools
  /** By which other processes know it. */
  readonly name: string
}

/** What one look has seen. */
interface Sighting {
  readonly parties: readonly WaitingParty[]
  readonly shards: readonly ShardWaits[]
  /** Seconds by the clock of shard 0 when the shards had answered; undefined: no other process waits. */
  readonly at: number | undefined
}

export class DeadlockWatch {
  readonly #options: DeadlockWatchOptions
  readonly #process = randomBytes(9).toString('base64url')
  readonly #parties = new Map<DeadlockParty, Member>()
  /** What was seen last, of each database whose other processes wait too. */
  readonly #before = new Map<string, Sighting>()
  /** Databases whose processes cannot tell each other, and when that was found. */
  readonly #alone = new Map<string, number>()
  #count = 0
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
        this.#parties.set(party, { pools, name: `${this.#process}.${++this.#count}` })
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
    // a cycle of this process is found between one and one and a half times the wait
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
    for (const [party, { pools }] of this.#parties) {
      const from = party.waitsSinceMs
      const holds = party.servers.length + (party.waitsForPool === undefined ? 0 : 1)
      if (from !== undefined && from <= since && holds > 1)
        late.set(pools.definition.database, pools)
    }
    for (const database of this.#before.keys())
      if (!late.has(database)) this.#before.delete(database)
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
    const connections = new ShardConnections(pools, this.#options.openServer)
    try {
      const now = await this.#see(database, connections)
      this.#endOverProcesses(database, now)
      const victims = ownVictims(now)
      if (victims.length === 0) return
      // what each shard said, it said at another moment: only a cycle that stays is one
      const again = ownVictims(await this.#see(database, connections))
      for (const victim of victims) {
        const same = again.find(({ own }) => own === victim.own)
        this.#end(database, victim, same)
      }
    } finally {
      connections.close()
    }
  }

  /**
   * What another process told may be of a transaction that has ended. It counts when it told the same before and after
   * the shards were asked: so the cycle is that of the last look, of those that are still there.
   */
  #endOverProcesses(database: string, now: Sighting): void {
    const before = this.#before.get(database)
    if (now.at === undefined) this.#before.delete(database)
    else this.#before.set(database, now)
    const at = before?.at
    if (!before || at === undefined) return
    const still = new Map(now.parties.map((party) => [party.name, party]))
    const parties = before.parties.filter((party) => {
      const one = still.get(party.name)
      const isSame = one?.order === party.order && one.since === party.since
      return isSame && (one.seenAt === undefined || one.seenAt > at)
    })
    for (const victim of victimsOfDeadlocks(parties, before.shards, poolWaitsOf(parties))) {
      this.#end(database, victim, still.get(victim.name))
    }
  }

  /** Ends the victim of two looks when it is ours and waits as it did. */
  #end(database: string, first: WaitingParty, again: WaitingParty | undefined): void {
    const { own } = first
    if (!own || again?.own !== own || own.waitsSinceMs !== first.since) return
    if (own.order !== first.order) return
    this.victims++
    this.#options.log.info('a deadlock over shards ends its youngest transaction', { database })
    own.giveWay()
  }

  async #see(database: string, connections: ShardConnections): Promise<Sighting> {
    const own = this.#waitingIn(database)
    const others = await this.#othersIn(database, own, connections)
    const parties = [...own, ...others]
    const pids = new Map<number, number[]>()
    for (const { servers } of parties)
      for (const { shard, pid } of servers) pids.set(shard, [...(pids.get(shard) ?? []), pid])
    const shards = await Promise.all(
      [...pids].map(async ([shard, known]) =>
        askWhoWaits(await connections.to(shard), shard, known),
      ),
    )
    const at = others.length > 0 ? await timeOf(await connections.to(0)) : undefined
    return { parties, shards, at }
  }

  #waitingIn(database: string): WaitingParty[] {
    const waiting = [...this.#parties].flatMap(([own, { pools, name }]) => {
      const since = own.waitsSinceMs
      if (pools.definition.database !== database || since === undefined) return []
      return [{ own, pools, name, since }]
    })
    const names = new Map(waiting.map(({ own, name }) => [own.owner, name]))
    return waiting.map(({ own, pools, name, since }) => ({
      ...{ own, name, since, order: own.order, decision: own.decision },
      servers: own.servers,
      pool: poolOf(own, pools, names),
    }))
  }

  async #othersIn(
    database: string,
    own: readonly WaitingParty[],
    connections: ShardConnections,
  ): Promise<WaitingParty[]> {
    const now = this.#options.clock.monotonicMs()
    if (now - (this.#alone.get(database) ?? -ASK_AGAIN_MS) < ASK_AGAIN_MS) return []
    const server = await connections.to(0)
    try {
      return await exchange(server, this.#process, own)
    } catch (error) {
      const { sqlstate, message: reason } = toEngineError(error)
      if (!CANNOT_TELL.has(sqlstate)) throw error
      if (!this.#alone.has(database))
        this.#options.log.info('deadlocks with clients of other proxies are not seen', {
          database,
          reason,
        })
      this.#alone.set(database, now)
      return []
    }
  }
}

/** The youngest of each cycle within this process. */
function ownVictims({ parties, shards }: Sighting): WaitingParty[] {
  const own = parties.filter((party) => party.own !== undefined)
  return victimsOfDeadlocks(own, shards, poolWaitsOf(own))
}

/** The pool in whose line it stands, when all its servers are lent to clients that we know. */
function poolOf(
  party: DeadlockParty,
  pools: UserPools,
  names: ReadonlyMap<object, string>,
): WaitingParty['pool'] {
  const shard = party.waitsForPool
  if (shard === undefined) return undefined
  const standings = (pools.shards[shard] ?? [])
    .filter(({ role }) => role === 'primary')
    .map(({ pool }) => pool.standing)
  const lent = standings.flatMap((standing) => standing.owners)
  const holders = lent.flatMap((owner) => (owner && names.get(owner)) ?? [])
  const isFull = standings.every(({ hasFree }) => !hasFree) && holders.length === lent.length
  return isFull ? { shard, holders } : undefined
}
