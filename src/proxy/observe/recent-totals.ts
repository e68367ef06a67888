/** What pools and users did in the last whole `stats_period`: the averages of SHOW STATS and of the metrics. */
import type { PoolTotals, UsageTotals } from '../../admin/proxy-view.js'
import type { Clock, Timer } from '../../base/clock.js'

/** What is counted, by a key of its own. */
export interface CountedTotals {
  readonly pools: ReadonlyMap<string, PoolTotals>
  readonly usage: ReadonlyMap<string, UsageTotals>
}

export type Recent<T> = T & { readonly seconds: number }

export interface RecentSources {
  readonly clock: Clock
  periodMs(): number
  count(): CountedTotals
}

export class RecentTotals {
  readonly #sources: RecentSources
  #begin: { atMs: number; totals: CountedTotals }
  #last: { seconds: number; from: CountedTotals; to: CountedTotals } | undefined
  #timer: Timer | undefined

  constructor(sources: RecentSources) {
    this.#sources = sources
    this.#begin = { atMs: sources.clock.monotonicMs(), totals: noTotals }
    this.#arm()
  }

  stop(): void {
    this.#timer?.cancel()
  }

  /** Undefined before the first period has ended. */
  pool(key: string): Recent<PoolTotals> | undefined {
    return this.#between((totals) => totals.pools.get(key))
  }

  usage(key: string): Recent<UsageTotals> | undefined {
    return this.#between((totals) => totals.usage.get(key))
  }

  #between<T extends object>(of: (totals: CountedTotals) => T | undefined): Recent<T> | undefined {
    const last = this.#last
    const to = last && of(last.to)
    if (!last || !to) return undefined
    return { ...difference(to, of(last.from)), seconds: last.seconds }
  }

  #arm(): void {
    const { clock, periodMs, count } = this.#sources
    this.#timer = clock.after(periodMs(), () => {
      const now = { atMs: clock.monotonicMs(), totals: count() }
      const seconds = (now.atMs - this.#begin.atMs) / 1000
      this.#last = { seconds, from: this.#begin.totals, to: now.totals }
      this.#begin = now
      this.#arm()
    })
  }
}

const noTotals: CountedTotals = { pools: new Map(), usage: new Map() }

/** Number by number, also inside. What was made meanwhile counts from nothing. */
function difference<T extends object>(to: T, from: T | undefined): T {
  const entries = Object.entries(to).map(([name, value]) => {
    const before = (from as Record<string, unknown> | undefined)?.[name]
    if (typeof value !== 'number')
      return [name, difference(value as object, before as object | undefined)]
    return [name, Math.max(0, value - ((before as number | undefined) ?? 0))]
  })
  return Object.fromEntries(entries) as T
}
