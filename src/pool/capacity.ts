/** How many resources a pool may have and lend now: its size, its reserve, and the room that limits over several pools leave. */
import type { Clock } from '../base/clock.js'
import type { PoolLimits } from './pool-types.js'
import type { Rooms } from './room.js'

export interface CapacityOptions {
  readonly limits: PoolLimits
  readonly clock: Clock
  readonly rooms: Rooms
  readonly queue: { readonly oldestSinceMs: number | undefined }
}

export class Capacity {
  readonly #options: CapacityOptions

  constructor(options: CapacityOptions) {
    this.#options = options
  }

  get rooms(): Rooms {
    return this.#options.rooms
  }

  /** With the reserve while a caller has waited long for it. */
  get openable(): number {
    const { limits, clock, queue } = this.#options
    const { maxSize, reserveSize, reserveAfterMs } = limits
    if (reserveSize === 0) return maxSize
    const sinceMs = queue.oldestSinceMs
    const isLong = sinceMs !== undefined && clock.monotonicMs() - sinceMs >= reserveAfterMs
    return isLong ? maxSize + reserveSize : maxSize
  }

  /** More than this are never kept. */
  get most(): number {
    const { maxSize, reserveSize } = this.#options.limits
    return maxSize + reserveSize
  }

  /** How many of `total` may be lent to callers that hold nothing. */
  lendable(total: number): number {
    const { reservedForHolders } = this.#options.limits
    return Math.max(this.openable, Math.min(total, this.most)) - reservedForHolders
  }
}
