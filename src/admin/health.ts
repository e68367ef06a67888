/** Whether a load balancer should send clients here. */
import type { ProxyView } from './proxy-view.js'

export interface Health {
  readonly isUp: boolean
  /** `up`, or why not. */
  readonly reason: string
}

/** Down while all processes drain, or while no host of any shard can be used. Bans by hand count as the operator meant them. */
export function healthOf(view: ProxyView): Health {
  const workers = view.workers()
  if (workers.length > 0 && workers.every(({ state }) => state !== 'ready'))
    return { isUp: false, reason: 'down: shutting down' }
  const pools = view.pools()
  const isUsable = pools.some((pool) => pool.isOnline && pool.isHealthy && !pool.isBanned)
  if (pools.length > 0 && !isUsable) return { isUp: false, reason: 'down: no shard can be reached' }
  return { isUp: true, reason: 'up' }
}
