/** What the console may ask of the proxy. Names are checked by the proxy, which throws ADMIN_NO_SUCH. */
import type { PoolSelector } from './admin-command.js'

export interface ProxyControl {
  /** Resolves when all servers of these pools have come back. */
  pause(pools: PoolSelector): Promise<void>
  resume(pools: PoolSelector): void | Promise<void>
  reconnect(pools: PoolSelector): void | Promise<void>
  /** @throws ADMIN_RELOAD_FAILED, and keeps the old configuration */
  reload(): Promise<void>
  /** Begins to drain; returns at once. */
  shutdown(): void
  /** Ends the clients of a database and pauses it. */
  kill(database: string): void | Promise<void>
  killClient(id: number): void | Promise<void>
  /** undefined: all pools. */
  ban(poolId: number | undefined): void | Promise<void>
  unban(poolId: number | undefined): void | Promise<void>
  /** Replaces one worker after the other; resolves when all are new. @throws ADMIN_UNSUPPORTED in a proxy of one process */
  restartWorkers(): Promise<void>
}
