/** The pool of servers of one user on one host of one shard: opens, checks and judges PostgreSQL connections for a resource pool. */
import type { Clock } from '../base/clock.js'
import type { Log } from '../base/log.js'
import { type EngineError, engineError, toEngineError } from '../errors/engine-error.js'
import { LatencyHistogram } from '../metrics/latency-histogram.js'
import type { ServerConnection } from '../server/server-connection.js'
import { addTraffic, noTraffic, type Traffic } from '../server/traffic.js'
import type { HostDefinition, OpenServer, PoolDefinition } from './definition.js'
import { Health } from './health.js'
import type { KnownRole, Position } from './host-group.js'
import type { Condition, PoolCounters, PoolEvents, ResourceKind } from './pool-types.js'
import { PreparedTtl } from './prepared-ttl.js'
import { ResourcePool } from './resource-pool.js'
import { type HostRoles, type HostState, hostKeyOf } from './roles.js'
import type { Rooms } from './room.js'

export interface ServerPoolEnvironment {
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
  readonly openServer: OpenServer
  readonly roles: HostRoles
}

/** Which pool of which shard. */
export interface ServerPoolPlace {
  readonly id: number
  readonly shard: number
  /** Limits that it shares with the pools of other users and hosts. */
  readonly rooms: Rooms
  /** False when no other host could take over from `pool`. */
  mayBan(pool: ServerPool): boolean
}

export class ServerPool {
  readonly id: number
  readonly shard: number
  readonly host: HostDefinition
  readonly definition: PoolDefinition
  readonly pool: ResourcePool<ServerConnection>
  readonly health: Health
  /** Under which `HostRoles` knows its host. */
  readonly hostKey: string
  /** Milliseconds spent in opening servers. */
  connectMs = 0
  /** Of callers that had to wait for a server. */
  readonly waits = new LatencyHistogram()
  readonly connects = new LatencyHistogram()
  /** Of servers that were closed. */
  readonly #pastTraffic: Traffic = noTraffic()
  readonly #environment: ServerPoolEnvironment
  readonly #preparedTtl: PreparedTtl | undefined

  constructor(
    definition: PoolDefinition,
    host: HostDefinition,
    place: ServerPoolPlace,
    environment: ServerPoolEnvironment,
  ) {
    this.definition = definition
    this.host = host
    this.id = place.id
    this.shard = place.shard
    this.hostKey = hostKeyOf(host)
    this.#environment = environment
    this.#preparedTtl = PreparedTtl.of(definition, environment)
    this.health = new Health({
      clock: environment.clock,
      settings: definition.health,
      mayBan: () => place.mayBan(this),
      check: (open) => this.#checkHost(open),
      onBan: (reason) => environment.log.warn('banned', { ...this.#facts(), reason }),
      onLift: () => environment.log.info('ban lifted', this.#facts()),
    })
    this.pool = new ResourcePool(this.#kind(), host.limits, this.#events(), {
      clock: environment.clock,
      random: environment.random,
      rooms: place.rooms,
    })
  }

  /** `host:port`. */
  get address(): string {
    return addressOf(this.host.target)
  }

  get role(): KnownRole {
    if (this.host.role !== 'auto') return this.host.role
    return this.#environment.roles.roleOf(this.hostKey)
  }

  /** What its host last said, when it is watched. */
  get hostState(): HostState | undefined {
    return this.#environment.roles.stateOf(this.hostKey)
  }

  /** For the balancer. */
  get weight(): number {
    return this.host.weight
  }

  /** A running mean; 0: not known. */
  heldMs = 0

  get lent(): number {
    return this.pool.lent
  }

  get isHealthy(): boolean {
    return this.health.isHealthy
  }

  get isBanned(): boolean {
    return this.health.ban !== undefined
  }

  /** Two pools whose servers are interchangeable: the same login on the same database of the same server. */
  get identity(): string {
    const { host, port, user, database, password, parameters, ...rest } = this.host.target
    const keys = rest.scramKeys?.clientKey.toString('base64')
    const secret = password ?? keys ?? rest.credentials?.name
    return JSON.stringify([host, port, user, database, secret, parameters])
  }

  /** `shard 0 of database "app"`. */
  get what(): string {
    return `shard ${this.shard} of database "${this.definition.database}"`
  }

  /** Over all servers that it had. */
  traffic(): Traffic {
    const sum = { ...this.#pastTraffic }
    for (const { resource } of this.pool.resources()) addTraffic(sum, resource.traffic)
    return sum
  }

  beat(): void {
    this.pool.maintain()
    this.#preparedTtl?.expireIdle(this.pool.resources())
    void this.health.beat()
    this.#judgeLag()
  }

  /** A replica too far behind takes no reads until it has caught up. */
  #judgeLag(): void {
    const { banLagMs, banLagBytes } = this.definition.health
    if (banLagMs === Number.POSITIVE_INFINITY && banLagBytes === Number.POSITIVE_INFINITY) return
    const lag = this.role === 'replica' ? this.#environment.roles.lagOf(this.hostKey) : undefined
    this.health.lags(lag !== undefined && (lag.ms > banLagMs || lag.bytes > banLagBytes))
  }

  /** A look at the host now; resolves when it has answered, or has not. */
  lookNow(): Promise<void> {
    this.health.suspect()
    return this.health.beat()
  }

  /** Takes over the servers, callers and health of the pool that stood here before a reload. */
  inherit(older: ServerPool): void {
    this.health.inherit(older.health)
    addTraffic(this.#pastTraffic, older.#pastTraffic)
    this.connectMs += older.connectMs
    this.waits.add(older.waits)
    this.connects.add(older.connects)
    addCounters(this.pool.counters, older.pool.counters)
    older.pool.moveTo(this.pool)
  }

  #facts(): Record<string, unknown> {
    const { user, database } = this.definition
    return { database, user, shard: this.shard, address: this.address }
  }

  #kind(): ResourceKind<ServerConnection> {
    return {
      open: (signal) => this.#open(signal),
      close: (server) => {
        addTraffic(this.#pastTraffic, server.traffic)
        if (server.isIdle) server.close()
        else server.destroy()
      },
      condition: (server) => {
        this.#preparedTtl?.expire(server)
        return conditionOf(server)
      },
      check: (server) => this.#check(server),
    }
  }

  #events(): PoolEvents {
    const { log } = this.#environment
    const onReturned = (heldMs: number) => {
      this.heldMs = this.heldMs === 0 ? heldMs : this.heldMs * 0.8 + heldMs * 0.2
    }
    return {
      ...(this.definition.strategy === 'best_response_time' ? { onReturned } : {}),
      onOpened: () => this.health.succeeded(),
      onWaited: (waitedMs) => this.waits.record(waitedMs),
      onOpenFailed: (error) => {
        const { message, hint } = toEngineError(error)
        if (this.health.isHealthy) log.warn(message, { hint })
        this.health.failed(message)
      },
      onBroken: (why) => {
        if (why === 'check') this.health.failed('health check failed')
        // One server that broke says little of its host: look.
        else this.health.suspect()
      },
      timedOut: (facts) =>
        engineError('POOL_CHECKOUT_TIMEOUT', { ...facts, address: this.address }),
      offline: () => engineError('POOL_OFFLINE', { address: this.address }),
    }
  }

  async #open(signal: AbortSignal): Promise<ServerConnection> {
    const { clock, openServer } = this.#environment
    const { timeoutMs, attempts, attemptDelayMs } = this.definition.connect
    for (let attempt = 1; ; attempt++) {
      const startedMs = clock.monotonicMs()
      try {
        const server = await openServer(this.host.target, { signal, timeoutMs })
        const elapsedMs = clock.monotonicMs() - startedMs
        this.connectMs += elapsedMs
        this.connects.record(elapsedMs)
        server.onClose = () => this.#ended(server)
        if (this.role === 'primary' && server.parameters.get('in_hot_standby') === 'on')
          this.suspectHost('it is a replica')
        return server
      } catch (error) {
        if (attempt >= attempts || signal.aborted) throw this.#connectError(toEngineError(error))
        await clock.sleep(attemptDelayMs, signal)
      }
    }
  }

  /** The connection is over. When not by us, its host may have died: idle servers of it must not be lent before that is known. */
  #ended(server: ServerConnection): void {
    this.pool.forget(server)
    const { lost } = server
    if (lost && lost.code !== 'SERVER_CLOSED_BY_US' && lost.code !== 'POOL_SUPERSEDED')
      this.suspectHost(lost.message)
  }

  /** Its role, when it is watched, counts no more until the host has been asked again. */
  suspectHost(reason: string): void {
    this.#environment.roles.suspect(this.hostKey, reason)
  }

  hasReached(position: Position): boolean {
    return this.#environment.roles.hasReached(this.hostKey, position)
  }

  owns(server: ServerConnection): boolean {
    return this.pool.owns(server)
  }

  /** Why its callers wait, for people. */
  whyWaiting(): string {
    const { isPaused, opening, lent, total } = this.pool.snapshot()
    if (isPaused) return 'the pool is paused'
    if (opening > 0) return `a server of ${this.address} is being opened`
    if (total < this.host.limits.maxSize)
      return `${this.address} cannot be reached, or a limit over several pools is reached`
    return `all ${lent} servers of ${this.address} are in use`
  }

  /** Another host is the primary now: whoever still works here must not commit. */
  cutOff(): void {
    const { address } = this
    for (const { resource, isLent } of [...this.pool.resources()]) {
      if (!isLent) continue
      resource.lost ??= engineError('POOL_SUPERSEDED', { address })
      resource.destroy()
    }
    this.pool.closeIdle('the host was replaced')
  }

  #connectError(error: EngineError): EngineError {
    const place = { what: this.what, address: this.address }
    if (error.code === 'NET_CONNECT_TIMEOUT' || error.code === 'SERVER_START_TIMEOUT') {
      const { timeoutMs } = this.definition.connect
      return engineError('POOL_CONNECT_TIMEOUT', { ...place, timeoutMs }, { cause: error })
    }
    const { user, database } = this.host.target
    const parameters = { ...place, user, database, reason: reasonOf(error) }
    const hint = error.sqlstate.startsWith('28') ? (error.hint ?? loginHint(user)) : undefined
    const extras = { cause: error, ...(hint === undefined ? {} : { hint }) }
    return engineError('POOL_CONNECT_FAILED', parameters, extras)
  }

  async #check(server: ServerConnection): Promise<boolean> {
    if (!server.isIdle) return false
    server.traffic.checks++
    const { clock, log } = this.#environment
    const timer = clock.after(this.definition.health.checkTimeoutMs, () => server.destroy())
    try {
      await server.query('SELECT 1')
      return server.isIdle
    } catch (error) {
      const reason = toEngineError(error).message
      const failure = engineError('POOL_HEALTHCHECK', { address: this.address, reason })
      log.warn(failure.message, { ...this.#facts(), hint: failure.hint })
      return false
    } finally {
      timer.cancel()
    }
  }

  async #checkHost(open: boolean): Promise<boolean | undefined> {
    const { isOnline, isPaused } = this.pool.snapshot()
    if (!isOnline || isPaused) return undefined
    const isGood = await this.pool.checkIdle()
    if (isGood !== undefined || !open) return isGood
    try {
      const timeoutMs = this.definition.connect.timeoutMs + this.definition.health.checkTimeoutMs
      const checkout = await this.pool.checkout({ timeoutMs })
      const answered = await this.#check(checkout.resource)
      checkout.release()
      return answered
    } catch {
      // The pool has reported why.
      return false
    }
  }
}

export function addressOf(target: { readonly host: string; readonly port: number }): string {
  return target.host.includes(':')
    ? `[${target.host}]:${target.port}`
    : `${target.host}:${target.port}`
}

const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset',
  EHOSTUNREACH: 'no route to host',
  ENETUNREACH: 'network is unreachable',
  ENOTFOUND: 'host name not found',
  EAI_AGAIN: 'host name not found now',
  ENOENT: 'no such socket',
}

/** What went wrong, without the address, which the message around it names. */
function reasonOf(error: EngineError): string {
  if (error.code !== 'NET_CONNECT_FAILED') return error.message
  const reason = error.message.slice(error.message.lastIndexOf(': ') + 2)
  return reasons[reason] ?? reason
}

function conditionOf(server: ServerConnection): Condition {
  if (server.closed) return 'failed'
  return server.isIdle ? 'fit' : 'unfit'
}

/** Counters go on over a reload. */
function addCounters(sum: PoolCounters, more: PoolCounters): void {
  for (const name of Object.keys(more) as (keyof PoolCounters)[]) sum[name] += more[name]
}

/** The server is there, and does not let us in. */
const loginHint = (user: string): string =>
  `check server_password (or password) of user "${user}" in users.toml, and pg_hba.conf of the server`
