/** What a proxy remembers of its work for those who look: times of requests, and what its pools did in the last period. */
import type { PoolTotals, UsageTotals } from '../../admin/proxy-view.js'
import type { Clock } from '../../base/clock.js'
import type { Pools } from '../../pool/pool-map.js'
import type { ServerPool } from '../../pool/server-pool.js'
import type { ClientRegistry } from '../clients/client-registry.js'
import { type CountedTotals, RecentTotals } from './recent-totals.js'
import { StatementBooks } from './statement-books.js'
import { TimesBook } from './times-book.js'

export interface ObservedSources {
  readonly clock: Clock
  readonly pools: Pools
  readonly clients: ClientRegistry
  general(): { readonly statsPeriodMs: number }
}

export class Observed {
  readonly times = new TimesBook()
  readonly statements = new StatementBooks()
  readonly recent: RecentTotals

  constructor({ clock, pools, clients, general }: ObservedSources) {
    const periodMs = () => general().statsPeriodMs
    this.recent = new RecentTotals({ clock, periodMs, count: () => countAll(pools, clients) })
  }

  stop(): void {
    this.recent.stop()
  }
}

/** The same after a reload, which makes pools anew. */
export const poolKey = ({ definition, shard, host }: ServerPool): string =>
  JSON.stringify([definition.user, definition.database, shard, host.target.host, host.target.port])

export const usageKey = ({ user, database }: { user: string; database: string }): string =>
  JSON.stringify([user, database])

export function totalsOf(pool: ServerPool): PoolTotals {
  const { counters } = pool.pool
  return {
    errors: counters.failed + counters.openFailed + counters.checksFailed,
    checkouts: counters.checkouts,
    waitMs: counters.waitMs,
    connectMs: pool.connectMs,
    connects: counters.opened,
    connectAttempts: counters.opened + counters.openFailed,
    traffic: pool.traffic(),
  }
}

function countAll(pools: Pools, clients: ClientRegistry): CountedTotals {
  return {
    pools: new Map([...pools.all()].map((pool) => [poolKey(pool), totalsOf(pool)])),
    usage: new Map(
      clients
        .usage()
        .map(({ user, database, ...totals }) => [
          usageKey({ user, database }),
          totals satisfies UsageTotals,
        ]),
    ),
  }
}
