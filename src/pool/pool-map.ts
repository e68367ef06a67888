/**
 * All pools of the proxy: (user, database, shard, host) → pool. Builds them from definitions, exchanges them on RELOAD
 * without losing a server whose address and login stayed the same (D187–D195), and beats every 333 ms.
 */
import type { Timer } from '../base/clock.js'
import { engineError } from '../errors/engine-error.js'
import type { HostDefinition, OpenServer, PoolDefinition } from './definition.js'
import { HostRoles, type WatchedHost } from './roles.js'
import { Room, Rooms } from './room.js'
import { ServerPool, type ServerPoolEnvironment } from './server-pool.js'
import type { PoolMap } from './shard-pools.js'
import { UserPools } from './user-pools.js'

export const BEAT_MS = 333

export interface PoolMapOptions extends Omit<ServerPoolEnvironment, 'roles'> {
  readonly openServer: OpenServer
  readonly roleCheckTimeoutMs: number
}

export interface PoolFilter {
  readonly user?: string
  readonly database?: string
}

/** One user of one database. */
export const userKeyOf = (user: string, database: string): string =>
  JSON.stringify([user, database])

export class Pools implements PoolMap {
  readonly roles: HostRoles
  readonly #options: PoolMapOptions
  readonly #users = new Map<string, UserPools>()
  readonly #pausedDatabases = new Set<string>()
  readonly #rooms = new Map<string, Room>()
  /** Hosts, by key, that have been cut off. */
  #stale: ReadonlySet<string> = new Set()
  /** Of definitions that are not in force yet. */
  readonly #ahead: ServerPool[] = []
  #nextId = 1
  #timer: Timer | undefined
  #isOnline = true

  constructor(options: PoolMapOptions) {
    this.#options = options
    const { clock, log, openServer, roleCheckTimeoutMs: timeoutMs } = options
    this.roles = new HostRoles({ clock, log, openServer, timeoutMs })
    this.roles.listen(() => this.#cutOffReplaced())
  }

  shardPools(user: string, database: string): UserPools | undefined {
    return this.#users.get(userKeyOf(user, database))
  }

  /** Makes the pools of one user, or gives them another definition; those of the others stay as they are. */
  put(definition: PoolDefinition): void {
    const known = this.#users.get(userKeyOf(definition.user, definition.database))
    if (known) this.#exchange(known, definition)
    else this.#add(definition)
    this.#watch()
  }

  /** Takes the pools of one user away. */
  remove(user: string, database: string): void {
    const key = userKeyOf(user, database)
    for (const { pool } of this.#users.get(key)?.shards.flat() ?? []) pool.goOffline()
    this.#users.delete(key)
    this.#watch()
  }

  /** Makes the pools be as defined: at start and on RELOAD. What is kept is moved before anything is closed. */
  apply(definitions: readonly PoolDefinition[]): void {
    const wanted = new Set<string>()
    for (const definition of definitions) {
      const key = userKeyOf(definition.user, definition.database)
      wanted.add(key)
      const known = this.#users.get(key)
      if (known) this.#exchange(known, definition)
      else this.#add(definition)
    }
    for (const [key, pools] of this.#users) {
      if (wanted.has(key)) continue
      this.#users.delete(key)
      for (const pool of pools.shards.flat()) pool.pool.goOffline()
    }
    this.#watch()
  }

  /**
   * Opens servers for definitions that will be applied soon, as many on each host as their users have now on a host of before:
   * `apply` takes them over. What it does not take is given back by `closeAhead`.
   */
  openAhead(definitions: readonly PoolDefinition[]): void {
    for (const definition of definitions) {
      const known = this.#users.get(userKeyOf(definition.user, definition.database))
      const totals = known?.shards.flat().map(({ pool }) => pool.snapshot().total) ?? []
      const size = Math.max(0, ...totals)
      if (size === 0) continue
      this.#ahead.push(...this.#build(withMinimum(definition, size)).flat())
    }
    this.tendAhead()
  }

  /** Tries again what could not be opened. */
  tendAhead(): void {
    for (const { pool } of this.#ahead) pool.maintain()
  }

  get isAheadOpen(): boolean {
    return this.#ahead.every(({ pool }) => pool.snapshot().total >= pool.limits.minSize)
  }

  closeAhead(): void {
    for (const { pool } of this.#ahead.splice(0)) pool.goOffline()
  }

  /** Starts the beat and opens each pool's minimum. */
  start(): void {
    this.beat()
    const next = () => {
      this.#timer = this.#options.clock.after(BEAT_MS, () => {
        this.beat()
        if (this.#isOnline) next()
      })
    }
    next()
  }

  beat(): void {
    for (const pool of this.all()) pool.beat()
    this.roles.beat()
  }

  *all(filter: PoolFilter = {}): Iterable<ServerPool> {
    for (const { definition, shards } of this.#users.values()) {
      if (filter.user !== undefined && filter.user !== definition.user) continue
      if (filter.database !== undefined && filter.database !== definition.database) continue
      for (const hosts of shards) yield* hosts
    }
  }

  users(): Iterable<UserPools> {
    return this.#users.values()
  }

  byId(id: number): ServerPool | undefined {
    for (const pool of this.all()) if (pool.id === id) return pool
    return undefined
  }

  /** Lends nothing any more; resolves when all servers have come back. */
  async pause(filter: PoolFilter = {}): Promise<void> {
    if (filter.user === undefined) this.#pausedDatabases.add(filter.database ?? '*')
    const pools = [...this.all(filter)]
    for (const { pool } of pools) pool.pause()
    await Promise.all(pools.map(({ pool }) => pool.whenDrained()))
  }

  resume(filter: PoolFilter = {}): void {
    if (filter.database === undefined) this.#pausedDatabases.clear()
    else if (filter.user === undefined) this.#pausedDatabases.delete(filter.database)
    for (const { pool } of this.all(filter)) pool.resume()
  }

  /** Replaces all servers: idle ones now, lent ones when they come back. */
  recycle(filter: PoolFilter = {}): void {
    for (const { pool } of this.all(filter)) pool.recycle('reconnect')
  }

  /** The name of a host leads elsewhere: new servers are opened there, old ones end when they come back. */
  hostMoved(host: string): void {
    for (const pool of this.all()) {
      if (pool.host.target.host !== host) continue
      pool.pool.recycle('its host has another address')
      pool.suspectHost('its host has another address')
    }
  }

  /** For ever. */
  goOffline(): void {
    this.#isOnline = false
    this.#timer?.cancel()
    for (const { pool } of this.all()) pool.goOffline()
    this.roles.close()
  }

  whenDrained(): Promise<unknown> {
    return Promise.all([...this.all()].map(({ pool }) => pool.whenDrained()))
  }

  #add(definition: PoolDefinition): UserPools {
    const { clock, random } = this.#options
    const environment = { clock, random, roles: this.roles }
    const pools = new UserPools(definition, this.#build(definition), environment)
    this.#users.set(userKeyOf(definition.user, definition.database), pools)
    return pools
  }

  #exchange(user: UserPools, definition: PoolDefinition): void {
    const key = userKeyOf(definition.user, definition.database)
    const ahead = this.#ahead.filter(
      (pool) => userKeyOf(pool.definition.user, pool.definition.database) === key,
    )
    const older = new Map([...ahead, ...user.shards.flat()].map((pool) => [pool.identity, pool]))
    const { database, layout } = user.definition
    if (definition.layout !== layout) {
      const error = engineError('POOL_LAYOUT_CHANGED', { database })
      for (const { pool } of older.values()) pool.rejectWaiters(error)
    }
    const shards = this.#build(definition)
    for (const pool of shards.flat()) {
      const before = older.get(pool.identity)
      if (before) pool.inherit(before)
      older.delete(pool.identity)
    }
    user.install(definition, shards)
    // Last: who waits in a pool that goes finds the new ones installed when he tries again.
    for (const pool of older.values()) pool.pool.goOffline()
  }

  #build(definition: PoolDefinition): ServerPool[][] {
    const environment: ServerPoolEnvironment = { ...this.#options, roles: this.roles }
    return definition.shards.map(({ hosts }, shard) => {
      const pools: ServerPool[] = []
      const mayBan = (pool: ServerPool) => mayBanAmong(pools, pool)
      for (const host of hosts) {
        const rooms = this.roomsOf(definition, host)
        const place = { id: this.#nextId++, shard, rooms, mayBan }
        const pool = new ServerPool(definition, host, place, environment)
        if (this.isPaused(definition.database)) pool.pool.pause()
        pools.push(pool)
      }
      if (definition.health.isDistrustful) for (const pool of pools) pool.health.awaitCheck()
      return pools
    })
  }

  /** Limits over several pools: kept over reloads, because what they count lives on. */
  roomsOf({ user, ...limits }: PoolDefinition, { target }: HostDefinition): Rooms {
    const ofHost = JSON.stringify([target.host, target.port, target.database])
    return new Rooms([
      this.#room(ofHost, limits.maxDbConnections),
      this.#room(`user ${user}`, limits.maxUserConnections),
    ])
  }

  #room(key: string, limit: number): Room {
    const room = this.#rooms.get(key) ?? new Room(limit)
    room.limit = limit
    this.#rooms.set(key, room)
    return room
  }

  /** Hosts whose role is open, and those whose lag matters, are asked what they are. */
  #watch(): void {
    const watched: WatchedHost[] = []
    for (const { definition, shards } of this.#users.values()) {
      for (const hosts of shards) {
        const group = JSON.stringify(hosts.map(({ hostKey }) => hostKey).sort())
        for (const { host } of hosts) {
          const delayMs = host.role === 'auto' ? 0 : definition.lagCheckDelayMs
          if (delayMs === Number.POSITIVE_INFINITY) continue
          const { target, role } = host
          const intervalMs = definition.roleCheckIntervalMs
          watched.push({ target, role, group, intervalMs, delayMs })
        }
      }
    }
    this.roles.define(watched)
  }

  /** A host that was replaced as primary and lives on would take writes that nobody sees again. */
  #cutOffReplaced(): void {
    for (const pool of this.all()) {
      const wasStale = this.#stale.has(pool.hostKey)
      if (pool.role === 'stale' && !wasStale) pool.cutOff()
    }
    this.#stale = new Set(
      [...this.all()].flatMap((pool) => (pool.role === 'stale' ? [pool.hostKey] : [])),
    )
  }

  isPaused(database: string): boolean {
    return this.#pausedDatabases.has('*') || this.#pausedDatabases.has(database)
  }
}

const withMinimum = (definition: PoolDefinition, size: number): PoolDefinition => ({
  ...definition,
  shards: definition.shards.map(({ hosts }) => ({
    hosts: hosts.map((host) => {
      const { minSize, maxSize } = host.limits
      const limits = { ...host.limits, minSize: Math.max(minSize, Math.min(size, maxSize)) }
      return { ...host, limits }
    }),
  })),
})

/** Never the only primary, and never the last host that is not banned. */
function mayBanAmong(pools: readonly ServerPool[], pool: ServerPool): boolean {
  const others = pools.filter((other) => other !== pool)
  if (!others.some((other) => !other.isBanned)) return false
  return pool.role !== 'primary' || others.some((other) => other.role === 'primary')
}
