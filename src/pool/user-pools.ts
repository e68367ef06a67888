/**
 * The pools of one user on one database: chooses the host of a shard by role, load and health, and lends a server of it.
 * Outlives reloads: `install` exchanges what stands behind it.
 */
import type { Clock } from '../base/clock.js'
import {
  type EngineError,
  engineError,
  isEngineError,
  toEngineError,
} from '../errors/engine-error.js'
import type { ServerConnection } from '../server/server-connection.js'
import { Balancer } from './balancer.js'
import { primaryAmong, readersAmong } from './choose-hosts.js'
import type { PoolDefinition, ReadWriteStrategy } from './definition.js'
import { endWait, makeWay, youngestOfCycle } from './holder-cycles.js'
import type { Position } from './host-group.js'
import type { CheckoutRequest } from './pool-types.js'
import type { HostRoles } from './roles.js'
import type { ServerPool } from './server-pool.js'
import type { ServerCheckout, ServerCheckoutOptions, ShardPools } from './shard-pools.js'

interface Installed {
  readonly definition: PoolDefinition
  /** Pools of each shard's hosts. */
  readonly shards: readonly (readonly ServerPool[])[]
  readonly balancer: Balancer
}

/** One caller on its way to a server. */
interface Attempt {
  readonly shard: number
  readonly role: 'primary' | 'any'
  readonly options: ServerCheckoutOptions
  readonly untilMs: number
  /** What was in force when the shard was chosen. */
  installed: Installed
  /** Chosen already; a balancer takes turns at each choice. */
  order: readonly ServerPool[] | undefined
  readonly tried: Set<ServerPool>
  /** The failure of the host that was tried last. */
  last: EngineError | undefined
}

/** Between looks at the hosts while somebody waits for one. */
const LOOK_MS = 100

export interface UserPoolsEnvironment {
  readonly clock: Clock
  readonly random: () => number
  readonly roles: HostRoles
}

export class UserPools implements ShardPools {
  readonly #environment: UserPoolsEnvironment
  #installed: Installed

  constructor(
    definition: PoolDefinition,
    shards: Installed['shards'],
    environment: UserPoolsEnvironment,
  ) {
    this.#environment = environment
    this.#installed = this.#make(definition, shards)
  }

  get definition(): PoolDefinition {
    return this.#installed.definition
  }

  get shards(): Installed['shards'] {
    return this.#installed.shards
  }

  get shardCount(): number {
    return this.#installed.shards.length
  }

  get readWriteStrategy(): ReadWriteStrategy {
    return this.definition.readWriteStrategy
  }

  get readsYourWrites(): boolean {
    return this.definition.readsYourWrites
  }

  isUp(shard: number): boolean {
    return this.#installed.shards[shard]?.some((pool) => pool.isHealthy) ?? false
  }

  install(definition: PoolDefinition, shards: Installed['shards']): void {
    this.#installed = this.#make(definition, shards)
  }

  hostNow(shard: number, role: 'primary' | 'any'): ServerPool | undefined {
    const hosts = this.#installed.shards[shard]
    return hosts && this.#candidates(hosts, role)[0]
  }

  checkout(
    shard: number,
    role: 'primary' | 'any',
    options: ServerCheckoutOptions = {},
  ): ServerCheckout | Promise<ServerCheckout> {
    const hosts = this.#installed.shards[shard]
    if (!hosts) {
      const { database } = this.definition
      throw engineError('POOL_NO_SUCH_SHARD', { database, shard, last: this.shardCount - 1 })
    }
    const order = this.#candidates(hosts, role, options.after)
    const atOnce = order[0]?.pool.tryCheckout(options.holdsServers, options.owner)
    if (atOnce) return atOnce
    const installed = this.#installed
    const untilMs = this.#environment.clock.monotonicMs() + checkoutTimeoutOf(hosts)
    const tried = new Set<ServerPool>()
    const last = undefined
    return this.#checkoutSoon({ shard, role, options, installed, untilMs, order, tried, last })
  }

  positionOf(
    shard: number,
    server: ServerConnection,
    lsnBytes: bigint,
    timeline: number | undefined,
  ): Position | undefined {
    const { roles } = this.#environment
    const pool = this.#hostsOf(shard).find((one) => one.owns(server))
    const known = timeline ?? (pool && roles.reportOf(pool.hostKey)?.timeline)
    if (!pool || known === undefined) return undefined
    roles.noteReached(pool.hostKey, lsnBytes)
    return { timeline: known, lsnBytes }
  }

  wasReadOnly(shard: number, server: ServerConnection): void {
    // A primary refuses writes too, when the client has asked for it.
    if (server.parameters.get('in_hot_standby') === 'off') return
    for (const pool of this.#hostsOf(shard)) {
      if (pool.owns(server)) pool.suspectHost('it refused a write')
    }
  }

  #make(definition: PoolDefinition, shards: Installed['shards']): Installed {
    return {
      definition,
      shards,
      balancer: new Balancer(definition.strategy, this.#environment.random),
    }
  }

  /** Hosts to try, in order; empty when none may be used. */
  #candidates(
    hosts: readonly ServerPool[],
    role: 'primary' | 'any',
    after?: Position,
  ): readonly ServerPool[] {
    const only = hosts[0] as ServerPool
    if (hosts.length === 1 && only.host.role === 'primary') return hosts
    const fitting = this.#fitting(hosts, role)
    if (role === 'primary') return fitting
    return this.#installed.balancer.order(after ? this.#reached(hosts, fitting, after) : fitting)
  }

  /** Those of `fitting` that show what the caller has seen; the primary when none does, or when replicas have just not said so yet. */
  #reached(
    hosts: readonly ServerPool[],
    fitting: readonly ServerPool[],
    after: Position,
  ): readonly ServerPool[] {
    const reached = fitting.filter((pool) => pool.role === 'primary' || pool.hasReached(after))
    if (reached.length < fitting.length)
      this.#environment.roles.hurry(fitting.map(({ hostKey }) => hostKey))
    return reached.length > 0 ? reached : this.#fitting(hosts, 'primary')
  }

  #fitting(hosts: readonly ServerPool[], role: 'primary' | 'any'): readonly ServerPool[] {
    if (role === 'any') return readersAmong(hosts, this.definition.readWriteSplit)
    const primary = primaryAmong(hosts)
    return primary ? [primary] : []
  }

  async #checkoutSoon(attempt: Attempt): Promise<ServerCheckout> {
    for (;;) {
      const pool = await this.#nextHost(attempt)
      const checkout = await this.#waitAt(pool, attempt)
      if (checkout) return checkout
    }
  }

  /** The first host that was not tried; waits for one while there is hope. @throws when there is none */
  async #nextHost(attempt: Attempt): Promise<ServerPool> {
    const { shard, role, tried } = attempt
    for (;;) {
      this.#assertLayout(attempt.installed.definition)
      // Bans that the tries bring about may let the primary in, so the choice is made anew each time.
      const candidates =
        attempt.order ?? this.#candidates(this.#hostsOf(shard), role, attempt.options.after)
      attempt.order = undefined
      const next = candidates.find((pool) => !tried.has(pool))
      if (next) return next
      if (tried.size > 0) throw this.#allFailed(attempt)
      await this.#someHost(attempt)
    }
  }

  /** Stands in the queue of one host; undefined: another look at the hosts is due. */
  async #waitAt(pool: ServerPool, attempt: Attempt): Promise<ServerCheckout | undefined> {
    const { roles } = this.#environment
    const isAutoPrimary = attempt.role === 'primary' && pool.host.role === 'auto'
    const moved = new AbortController()
    // Who stands in the queue of a host that is not the primary any more would stand there in vain.
    const stop = isAutoPrimary
      ? roles.listen(() => {
          if (pool.role !== 'primary') moved.abort()
        })
      : undefined
    try {
      const request = this.#requestAt(attempt, moved.signal, isAutoPrimary)
      const waiting = pool.pool.checkout(request)
      if (request.isHolder) this.#letOthersGoOn()
      return await waiting
    } catch (error) {
      if (moved.signal.aborted && attempt.options.signal?.aborted !== true) return undefined
      await this.#afterFailure(pool, attempt, toEngineError(error))
      return undefined
    } finally {
      stop?.()
    }
  }

  /** Returns when another look at the hosts is worth it. @throws when it is not */
  async #afterFailure(pool: ServerPool, attempt: Attempt, failure: EngineError): Promise<void> {
    attempt.last = failure
    if (failure.code === 'POOL_OFFLINE' && this.#installed !== attempt.installed) {
      // A reload has exchanged the pools while we stood in the queue of one that is gone.
      this.#assertLayout(attempt.installed.definition)
      attempt.installed = this.#installed
      attempt.tried.clear()
      return
    }
    if (attempt.role === 'primary' && pool.host.role === 'auto' && isGone(failure)) {
      pool.suspectHost(failure.message)
      return this.#pause(attempt)
    }
    attempt.tried.add(pool)
    if (!mayTryAnother(failure)) throw this.#allFailed(attempt)
  }

  #requestAt(attempt: Attempt, moved: AbortSignal, isAutoPrimary: boolean): CheckoutRequest {
    const { signal, owner, holdsServers: isHolder = false } = attempt.options
    const who = { isHolder, ...(owner ? { owner } : {}) }
    if (!isAutoPrimary) return { ...who, ...(signal ? { signal } : {}) }
    const leftMs = attempt.untilMs - this.#environment.clock.monotonicMs()
    return {
      ...who,
      timeoutMs: Math.max(1, leftMs),
      signal: signal ? AbortSignal.any([signal, moved]) : moved,
    }
  }

  /** Transactions over several shards that wait for each other would wait until their time is over: the youngest gives way. */
  #letOthersGoOn(): void {
    const pools = this.#installed.shards.flat()
    for (const { pool } of pools) makeWay(pool.standing)
    for (;;) {
      const youngest = youngestOfCycle(pools.map(({ pool }) => pool.standing))
      if (!youngest) return
      const { database } = this.definition
      endWait(youngest, engineError('POOL_HOLDERS_DEADLOCK', { database }))
    }
  }

  whyWaiting(shard: number, role: 'primary' | 'any'): string {
    const [pool] = this.#fitting(this.#hostsOf(shard), role)
    if (!pool) return `shard ${shard} has no ${role === 'primary' ? 'primary' : 'host'} now`
    return pool.whyWaiting()
  }

  #hostsOf(shard: number): readonly ServerPool[] {
    return this.#installed.shards[shard] ?? []
  }

  /** The shard number was chosen by another layout: lending a server by it could answer wrongly. */
  #assertLayout(before: PoolDefinition): void {
    const { database, layout } = this.definition
    if (layout !== before.layout) throw engineError('POOL_LAYOUT_CHANGED', { database })
  }

  /** Until a host of the shard may be used: a primary is being promoted, or bans are lifted. @throws when there is no hope, or the time is over */
  async #someHost(attempt: Attempt): Promise<void> {
    const { role, shard, options, untilMs } = attempt
    const hosts = this.#hostsOf(shard)
    if (role === 'any' && hosts.every((pool) => pool.isBanned)) {
      for (const pool of hosts) pool.health.forgive()
      if (this.#candidates(hosts, role).length > 0) return
      const banned = hosts.find((pool) => pool.health.ban?.isManual)
      if (banned) throw engineError('POOL_BANNED', { address: banned.address })
    }
    const isWaitable = hosts.some((pool) => pool.host.role === 'auto')
    if (!isWaitable || untilMs <= this.#environment.clock.monotonicMs()) {
      throw this.#noHost(shard, role, attempt.last)
    }
    if (options.signal?.aborted) throw engineError('POOL_CHECKOUT_ABORTED')
    await this.#pause(attempt)
  }

  /** Has the hosts asked, and waits a moment for what they say. */
  async #pause({ shard, options, untilMs }: Attempt): Promise<void> {
    const { clock, roles } = this.#environment
    roles.hurry(this.#hostsOf(shard).map(({ hostKey }) => hostKey))
    const leftMs = Math.max(0, untilMs - clock.monotonicMs())
    const over = new AbortController()
    const signal = options.signal ? AbortSignal.any([options.signal, over.signal]) : over.signal
    await Promise.race([roles.changed, clock.sleep(Math.min(leftMs, LOOK_MS), signal)])
    over.abort()
  }

  #noHost(shard: number, role: 'primary' | 'any', last: EngineError | undefined): EngineError {
    const pools = this.#hostsOf(shard)
    const what = `shard ${shard} of database "${this.definition.database}"`
    const hosts = pools.map((pool) => `${pool.address} (${pool.role})`).join(', ')
    const code = role === 'primary' ? 'POOL_NO_PRIMARY' : 'POOL_ALL_REPLICAS_DOWN'
    return engineError(code, { what, hosts }, last ? { cause: last } : {})
  }

  #allFailed({ shard, tried, last }: Attempt): EngineError {
    if (last && (tried.size < 2 || !mayTryAnother(last))) return last
    // Every host had its chance: the next caller may try them all again.
    for (const pool of this.#hostsOf(shard)) pool.health.forgive()
    const what = `shard ${shard} of database "${this.definition.database}"`
    const hosts = [...tried].map((pool) => pool.address).join(', ')
    return engineError('POOL_ALL_REPLICAS_DOWN', { what, hosts }, last ? { cause: last } : {})
  }
}

const checkoutTimeoutOf = (hosts: readonly ServerPool[]): number =>
  hosts[0]?.host.limits.checkoutTimeoutMs ?? 0

/** Failures of one host that another may not have. */
function mayTryAnother(error: unknown): boolean {
  return (
    isEngineError(error) &&
    (error.code === 'POOL_CONNECT_FAILED' || error.code === 'POOL_CONNECT_TIMEOUT')
  )
}

const goneCodes = new Set([
  'NET_CONNECT_FAILED',
  'NET_CONNECT_TIMEOUT',
  'NET_HOST_UNKNOWN',
  'SERVER_LOST',
  'SERVER_START_TIMEOUT',
])

/** The host itself is not there, or is starting or stopping: a replica may be about to take its place. */
function isGone(error: EngineError): boolean {
  if (error.code === 'POOL_CONNECT_TIMEOUT') return true
  const { cause } = error
  if (error.code !== 'POOL_CONNECT_FAILED' || !isEngineError(cause)) return false
  return goneCodes.has(cause.code) || cause.sqlstate.startsWith('57P0')
}
