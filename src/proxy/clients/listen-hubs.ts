/** Who listens for clients of transaction pools, as the pools and the configuration in force say; and what the console sees of it. */
import type { ListenerView, ServerView } from '../../admin/proxy-view.js'
import type { Clock } from '../../base/clock.js'
import type { Log } from '../../base/log.js'
import type { GeneralConfig } from '../../config/loaded-config.js'
import { primaryAmong } from '../../pool/choose-hosts.js'
import type { OpenServer } from '../../pool/definition.js'
import type { Pools } from '../../pool/pool-map.js'
import type { ServerPool } from '../../pool/server-pool.js'
import { type HubPlace, Hubs } from '../../pubsub/hubs.js'
import type { ListenSource } from '../../session/listen/listening.js'
import { sharedId, type WorkerPlace } from '../fleet.js'

export interface ListenHubsOptions {
  readonly clock: Clock
  readonly log: Log
  readonly openServer: OpenServer
  readonly pools: Pools
  readonly place: WorkerPlace
  general(): GeneralConfig
}

/** Shown as the pool of a connection that no pool has. */
const NO_POOL = 0

export class ListenHubs {
  readonly #options: ListenHubsOptions
  readonly #hubs: Hubs

  constructor(options: ListenHubsOptions) {
    this.#options = options
    const { clock, log, openServer } = options
    this.#hubs = new Hubs({
      clock,
      log,
      openServer,
      primary: (database, user) => primaryPool(options.pools, database, user)?.host.target,
      place: (database, user) => placeFor(options.pools, database, user),
      connects: () => {
        const general = options.general()
        return {
          timeoutMs: general.connectTimeoutMs,
          attempts: general.connectAttempts,
          attemptDelayMs: general.connectAttemptDelayMs,
          waitMs: general.checkoutTimeoutMs,
          answerMs: general.healthcheckTimeoutMs,
        }
      },
    })
  }

  /** Undefined: turned off, or the pool keeps servers for its clients anyway. */
  sourceFor(database: string, poolerMode: string): ListenSource | undefined {
    const limit = this.#options.general().pubSubChannelSize
    if (limit === 0 || poolerMode === 'session') return undefined
    return { hub: this.#hubs.of(database), limit }
  }

  close(): void {
    this.#hubs.close()
  }

  listeners(): ListenerView[] {
    const worker = this.#options.place.number
    return [...this.#hubs.all()].flatMap((hub) =>
      hub.channels().map((channel) => ({
        worker,
        database: hub.database,
        user: hub.connection?.user ?? '',
        shard: 0,
        ...channel,
      })),
    )
  }

  servers(): ServerView[] {
    const { place, clock } = this.#options
    return [...this.#hubs.all()].flatMap((hub) => {
      const { connection } = hub
      if (!connection) return []
      const { server, user, openedAtMs } = connection
      return {
        worker: place.number,
        poolId: sharedId(place, NO_POOL),
        database: hub.database,
        user,
        address: server.target.host,
        port: server.target.port,
        shard: 0,
        role: 'primary',
        state: 'listening',
        processId: server.processId,
        ageMs: clock.monotonicMs() - openedAtMs,
        idleMs: 0,
        isEncrypted: server.socket.encrypted,
        preparedStatements: 0,
        applicationName: 'pgshard listener',
        clientId: undefined,
        memory: server.memory,
        isWaiting: false,
        traffic: server.traffic,
      }
    })
  }
}

/** As `user` reaches it; a user that a reload has removed is replaced by another of the database. */
function primaryPool(pools: Pools, database: string, user: string): ServerPool | undefined {
  const own = pools.shardPools(user, database)
  const any = own ?? [...pools.users()].find(({ definition }) => definition.database === database)
  return primaryAmong(any?.shards[0] ?? [])
}

/** The listening connection waits for room as a pool does, but has nothing idle to give up for others. */
function placeFor(pools: Pools, database: string, user: string): HubPlace {
  const pool = primaryPool(pools, database, user)
  const rooms = pool && pools.roomsOf(pool.definition, pool.host)
  const guest = { giveUpIdle: () => false, roomFreed: () => undefined }
  return {
    take: () => rooms?.take(guest, true) ?? true,
    leave: () => rooms?.free(),
    giveUp: () => rooms?.leave(guest),
  }
}
