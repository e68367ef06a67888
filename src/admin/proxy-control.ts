/** What the console may ask of the proxy. Names are checked by the proxy, which throws ADMIN_NO_SUCH. */
import type { PoolSelector } from './admin-command.js'
import type { PeerView } from './proxy-view.js'

export interface ProxyControl {
  /** Resolves when all servers of these pools have come back. */
  pause(pools: PoolSelector): Promise<void>
  resume(pools: PoolSelector): void | Promise<void>
  reconnect(pools: PoolSelector): void | Promise<void>
  /** @throws ADMIN_RELOAD_FAILED, and keeps the old configuration */
  reload(): Promise<void>
  /** Begins to drain; returns at once. */
  shutdown(): void
  /** Reads the files, then replaces all servers. @throws ADMIN_RELOAD_FAILED */
  forceReload(): Promise<void>
  /** A key of [general], until the next RELOAD. @throws ADMIN_RELOAD_FAILED */
  set(name: string, value: string): Promise<void>
  /** Ends the clients of a database, or of all, and pauses it. */
  kill(database: string | undefined): void | Promise<void>
  /** As PAUSE of everything; SHOW STATE says so until RESUME. */
  suspend(): Promise<void>
  /** Lends no servers of a database, or of all, or lends them again; does not wait. */
  maintenance(isOn: boolean, database: string | undefined): void | Promise<void>
  /** Resolves when no server is left that RECONNECT or RELOAD wants to be replaced. */
  waitClose(database: string | undefined): Promise<void>
  /** New clients of the database are refused, or let in again. */
  disable(database: string): void | Promise<void>
  enable(database: string): void | Promise<void>
  /** Looks at hosts now; undefined: all. Resolves when they have answered, or have not. */
  healthcheck(poolId: number | undefined): Promise<void>
  /** Prepared statements, or plans, are made anew. */
  reset(what: 'prepared' | 'query_cache'): void | Promise<void>
  /** Milliseconds until a server at a postgres:// URL has let us in. @throws why it did not */
  probe(url: string): Promise<number>
  /** Other proxies of the same databases, as they say themselves. */
  peers(): Promise<readonly PeerView[]>
  killClient(id: number): void | Promise<void>
  /** undefined: all pools. */
  ban(poolId: number | undefined): void | Promise<void>
  unban(poolId: number | undefined): void | Promise<void>
  /** Replaces one worker after the other; resolves when all are new. @throws ADMIN_UNSUPPORTED in a proxy of one process */
  restartWorkers(): Promise<void>
}
