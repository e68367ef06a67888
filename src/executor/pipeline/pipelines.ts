/** The pipelines of one user's pools, each made when it is first needed. */
import type { Clock } from '../../base/clock.js'
import type { ServerPool } from '../../pool/server-pool.js'
import type { ShardPools } from '../../pool/shard-pools.js'
import type { PipelineLimits } from './lane-owner.js'
import { Pipeline } from './pipeline.js'

interface PipelinesOptions {
  readonly clock: Clock
  /** Those in force; RELOAD changes them. */
  readonly limits: () => PipelineLimits
}

export class Pipelines {
  readonly #pools: ShardPools
  readonly #options: PipelinesOptions
  readonly #known = new WeakMap<ServerPool, Pipeline>()
  /** The one that was asked for last. */
  #last: { readonly pool: ServerPool; readonly pipeline: Pipeline } | undefined

  constructor(pools: ShardPools, options: PipelinesOptions) {
    this.#pools = pools
    this.#options = options
  }

  get limits(): PipelineLimits {
    return this.#options.limits()
  }

  /** undefined when no host of the shard can be chosen at once. */
  of(shard: number, role: 'primary' | 'any'): Pipeline | undefined {
    const pool = this.#pools.hostNow?.(shard, role)
    if (!pool) return undefined
    if (this.#last?.pool === pool) return this.#last.pipeline
    let pipeline = this.#known.get(pool)
    if (!pipeline) {
      pipeline = new Pipeline(pool.pool, this.#options)
      this.#known.set(pool, pipeline)
    }
    this.#last = { pool, pipeline }
    return pipeline
  }
}
