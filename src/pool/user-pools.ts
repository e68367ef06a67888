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
import { Balancer } from './balancer.js'
import type { PoolDefinition } from './definition.js'
import type { HostRoles } from './roles.js'
import type { ServerPool } from './server-pool.js'
import type { ServerCheckout, ServerCheckoutOptions, ShardPools } from './shard-pools.js'

interface Installed {
  readonly definition: PoolDefinition
  /** Pools of each shard's hosts. */
  readonly shards: readonly (readonly ServerPool[])[]
  readonly balancer: Balancer
}

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

  isUp(shard: number): boolean {
    return this.#installed.shards[shard]?.some((pool) => pool.isHealthy) ?? false
  }

  install(definition: PoolDefinition, shards: Installed['shards']): void {
    this.#installed = this.#make(definition, shards)
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
    const order = this.#candidates(hosts, role)
    const first = order[0]
    const atOnce = first?.pool.tryCheckout(options.holdsServers)
    if (atOnce) return atOnce
    return this.#checkoutSoon(shard, role, order, options)
  }

  #make(definition: PoolDefinition, shards: Installed['shards']): Installed {
    return {
      definition,
      shards,
      balancer: new Balancer(definition.strategy, this.#environment.random),
    }
  }

  /** Hosts to try, in order; empty when none may be used. */
  #candidates(hosts: readonly ServerPool[], role: 'primary' | 'any'): readonly ServerPool[] {
    const only = hosts[0] as ServerPool
    if (hosts.length === 1 && only.host.role === 'primary') return hosts
    if (role === 'primary') {
      const primary = this.#primaryOf(hosts)
      return primary ? [primary] : []
    }
    return this.#installed.balancer.order(this.#readers(hosts))
  }

  /** Of several that say so, the one with the most WAL: an old primary that came back has less. */
  #primaryOf(hosts: readonly ServerPool[]): ServerPool | undefined {
    const { roles } = this.#environment
    let best: ServerPool | undefined
    for (const pool of hosts) {
      if (pool.role !== 'primary') continue
      if (!best || roles.lsnOf(pool.host.target) > roles.lsnOf(best.host.target)) best = pool
    }
    return best
  }

  #readers(hosts: readonly ServerPool[]): readonly ServerPool[] {
    const usable = hosts.filter((pool) => !pool.isBanned)
    const replicas = usable.filter((pool) => pool.role !== 'primary')
    const primary = this.#primaryOf(usable)
    const withPrimary = primary ? [...replicas, primary] : replicas
    switch (this.definition.readWriteSplit) {
      case 'include_primary':
        return withPrimary
      case 'exclude_primary':
        return replicas.length > 0 ? replicas : withPrimary
      case 'include_primary_if_replica_banned': {
        const anyBanned = usable.length < hosts.length
        return anyBanned || replicas.length === 0 ? withPrimary : replicas
      }
      case 'prefer_primary':
        return primary ? [primary] : replicas
    }
  }

  async #checkoutSoon(
    shard: number,
    role: 'primary' | 'any',
    order: readonly ServerPool[],
    options: ServerCheckoutOptions,
  ): Promise<ServerCheckout> {
    const { clock } = this.#environment
    const installed = this.#installed
    const untilMs = clock.monotonicMs() + this.#patienceMs(shard)
    const request = {
      isHolder: options.holdsServers ?? false,
      ...(options.signal ? { signal: options.signal } : {}),
    }
    let candidates = order
    while (candidates.length === 0) {
      candidates = await this.#someHost(shard, role, untilMs, options)
      this.#assertLayout(installed.definition)
    }
    let last: EngineError | undefined
    const tried = new Set<ServerPool>()
    // Bans that the tries bring about may let the primary in, so the choice is made anew each time.
    for (let pool = candidates[0]; pool; pool = this.#untried(shard, role, tried)) {
      tried.add(pool)
      try {
        this.#assertLayout(installed.definition)
        return await pool.pool.checkout(request)
      } catch (error) {
        last = toEngineError(error)
        if (!mayTryAnother(last)) break
        // A supposed primary that cannot be reached may have been replaced.
        if (pool.host.role === 'auto') this.#environment.roles.lookAgain()
      }
    }
    // A reload has exchanged the pools while we stood in the queue of one that is gone.
    if (last?.code === 'POOL_OFFLINE' && this.#installed !== installed) {
      this.#assertLayout(installed.definition)
      return this.checkout(shard, role, options)
    }
    throw this.#allFailed(shard, [...tried], last)
  }

  #untried(shard: number, role: 'primary' | 'any', tried: Set<ServerPool>): ServerPool | undefined {
    const hosts = this.#installed.shards[shard] ?? []
    return this.#candidates(hosts, role).find((pool) => !tried.has(pool))
  }

  /** The shard number was chosen by another layout: lending a server by it could answer wrongly. */
  #assertLayout(before: PoolDefinition): void {
    const { database, layout } = this.definition
    if (layout !== before.layout) throw engineError('POOL_LAYOUT_CHANGED', { database })
  }

  #patienceMs(shard: number): number {
    return this.#installed.shards[shard]?.[0]?.host.limits.checkoutTimeoutMs ?? 0
  }

  /** Waits until a host of the shard may be used: a primary is being promoted, or bans are lifted. */
  async #someHost(
    shard: number,
    role: 'primary' | 'any',
    untilMs: number,
    options: ServerCheckoutOptions,
  ): Promise<readonly ServerPool[]> {
    const { clock, roles } = this.#environment
    const hosts = this.#installed.shards[shard] ?? []
    const banned = hosts.find((pool) => pool.health.ban?.isManual)
    const isWaitable = hosts.some((pool) => pool.host.role === 'auto')
    if (role === 'any' && hosts.every((pool) => pool.isBanned)) {
      for (const pool of hosts) pool.health.forgive()
      const forgiven = this.#candidates(hosts, role)
      if (forgiven.length > 0) return forgiven
      if (banned) throw engineError('POOL_BANNED', { address: banned.address })
    }
    const leftMs = untilMs - clock.monotonicMs()
    if (!isWaitable || leftMs <= 0) throw this.#noHost(shard, role)
    if (options.signal?.aborted) throw engineError('POOL_CHECKOUT_ABORTED')
    roles.beat()
    await Promise.race([roles.changed, clock.sleep(Math.min(leftMs, 333), options.signal)])
    return this.#candidates(this.#installed.shards[shard] ?? [], role)
  }

  #noHost(shard: number, role: 'primary' | 'any'): EngineError {
    const pools = this.#installed.shards[shard] ?? []
    const what = `shard ${shard} of database "${this.definition.database}"`
    const hosts = pools.map((pool) => `${pool.address} (${pool.role})`).join(', ')
    return engineError(role === 'primary' ? 'POOL_NO_PRIMARY' : 'POOL_ALL_REPLICAS_DOWN', {
      what,
      hosts,
    })
  }

  #allFailed(
    shard: number,
    tried: readonly ServerPool[],
    last: EngineError | undefined,
  ): EngineError {
    if (last && (tried.length < 2 || !mayTryAnother(last))) return last
    // Every host had its chance: the next caller may try them all again.
    for (const pool of this.#installed.shards[shard] ?? []) pool.health.forgive()
    const what = `shard ${shard} of database "${this.definition.database}"`
    const hosts = tried.map((pool) => pool.address).join(', ')
    return engineError('POOL_ALL_REPLICAS_DOWN', { what, hosts }, last ? { cause: last } : {})
  }
}

/** Failures of one host that another may not have. */
function mayTryAnother(error: unknown): boolean {
  return (
    isEngineError(error) &&
    (error.code === 'POOL_CONNECT_FAILED' || error.code === 'POOL_CONNECT_TIMEOUT')
  )
}
