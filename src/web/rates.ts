/** From one look at the proxy to the next: what was done meanwhile, by shard and by pool. Keeps the counters of the last look. */
import type { PoolView, ProxyView, TimesView } from '../admin/proxy-view.js'
import { quantileMs } from './quantile.js'

/** Transactions and queries a second; median and 99th percentile of its requests in milliseconds, null when there was none. */
export type Figures = readonly [
  tps: number,
  qps: number,
  p50Ms: number | null,
  p99Ms: number | null,
]

/** One moment of the charts. */
export interface Point {
  /** Seconds since the epoch. */
  readonly at: number
  readonly clients: number
  readonly active: number
  readonly waiting: number
  readonly errors: number
  readonly all: Figures
  /** The busiest of them, by what they are called on the page. */
  readonly shards: Readonly<Record<string, Figures>>
  readonly pools: Readonly<Record<string, Figures>>
}

/** More lines in one chart say nothing, and all of this is kept for a quarter of an hour. */
const MOST_GROUPS = 16

export const shardName = (database: string, shard: number): string =>
  shard < 0 ? `${database} over shards` : `${database} shard ${shard}`

const poolName = (row: { user: string; database: string; shard: number }): string =>
  `${row.user}@${shardName(row.database, row.shard)}`

/** What was counted of one group since the last look. */
class Counted {
  transactions = 0
  queries = 0
  times: number[] = []

  addTimes(counts: readonly number[]): void {
    for (const [i, count] of counts.entries()) this.times[i] = (this.times[i] ?? 0) + count
  }

  figures(seconds: number): Figures {
    return [
      this.transactions / seconds,
      this.queries / seconds,
      quantileMs(this.times, 0.5),
      quantileMs(this.times, 0.99),
    ]
  }
}

class Groups {
  readonly #known = new Map<string, Counted>()

  of(name: string): Counted {
    const known = this.#known.get(name) ?? new Counted()
    this.#known.set(name, known)
    return known
  }

  busiest(seconds: number): Record<string, Figures> {
    const weight = ({ queries, times }: Counted) => queries + times.reduce((a, b) => a + b, 0)
    const busy = [...this.#known]
      .sort(([, a], [, b]) => weight(b) - weight(a))
      .slice(0, MOST_GROUPS)
    const named = busy.map(([name, counted]) => [name, counted.figures(seconds)] as const)
    return Object.fromEntries(named.sort(([a], [b]) => a.localeCompare(b, 'en', { numeric: true })))
  }
}

interface Counters {
  readonly transactions: number
  readonly queries: number
}

export class Rates {
  #lastMs: number | undefined
  #pools = new Map<string, Counters>()
  #times = new Map<string, readonly number[]>()
  #errors = new Map<string, number>()

  /** What was done since the last call; the first call knows nothing of before. */
  next(view: ProxyView): Point {
    const nowMs = view.nowMs()
    const isFirst = this.#lastMs === undefined
    const seconds = Math.max((nowMs - (this.#lastMs ?? nowMs)) / 1000, 0.001)
    this.#lastMs = nowMs
    const [all, shards, pools] = [new Counted(), new Groups(), new Groups()]
    this.#countPools(view.pools(), (row, done) => {
      for (const one of [
        all,
        shards.of(shardName(row.database, row.shard)),
        pools.of(poolName(row)),
      ]) {
        one.transactions += isFirst ? 0 : done.transactions
        one.queries += isFirst ? 0 : done.queries
      }
    })
    this.#countTimes(view.times(), (row, counts) => {
      if (isFirst || row.requestClass === 'control') return
      all.addTimes(counts)
      shards.of(shardName(row.database, row.shard)).addTimes(counts)
      pools.of(poolName(row)).addTimes(counts)
    })
    const errors = this.#countErrors(view)
    const clients = view.clients()
    return {
      at: nowMs / 1000,
      clients: clients.length,
      active: clients.filter(({ state }) => state === 'active').length,
      waiting: clients.filter(({ state }) => state === 'waiting').length,
      errors: isFirst ? 0 : errors / seconds,
      all: all.figures(seconds),
      shards: shards.busiest(seconds),
      pools: pools.busiest(seconds),
    }
  }

  #countPools(rows: readonly PoolView[], tell: (row: PoolView, done: Counters) => void): void {
    const seen = new Map<string, Counters>()
    for (const row of rows) {
      const { transactions, queries } = row.traffic
      const key = `${row.worker}:${row.poolId}`
      const before = this.#pools.get(key)
      seen.set(key, { transactions, queries })
      tell(row, {
        transactions: since(transactions, before?.transactions),
        queries: since(queries, before?.queries),
      })
    }
    this.#pools = seen
  }

  #countTimes(
    rows: readonly TimesView[],
    tell: (row: TimesView, counts: readonly number[]) => void,
  ): void {
    const seen = new Map<string, readonly number[]>()
    for (const row of rows) {
      const key = JSON.stringify([row.worker, row.database, row.user, row.requestClass, row.shard])
      const before = this.#times.get(key)
      seen.set(key, row.counts)
      tell(
        row,
        row.counts.map((count, i) => since(count, before?.[i])),
      )
    }
    this.#times = seen
  }

  #countErrors(view: ProxyView): number {
    const seen = new Map<string, number>()
    let sum = 0
    for (const { worker, database, user, errors } of view.usage()) {
      const key = JSON.stringify([worker, database, user])
      sum += since(errors, this.#errors.get(key))
      seen.set(key, errors)
    }
    this.#errors = seen
    return sum
  }
}

/** A worker that was replaced counts from 0 again. */
const since = (now: number, before = 0): number => (now < before ? now : now - before)
