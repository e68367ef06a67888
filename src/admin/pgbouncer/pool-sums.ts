/** Pools and use as PgBouncer has them: all workers, shards and hosts of a user or of a database as one. Pure. */
import type {
  PoolTotals,
  PoolView,
  ProxyView,
  TrafficView,
  UsageTotals,
  UsageView,
} from '../proxy-view.js'
import type { StatsRow } from '../stats-figures.js'

function addTraffic(one: TrafficView, other: TrafficView): TrafficView {
  const sum: Record<string, number> = { ...one }
  for (const [name, value] of Object.entries(other)) sum[name] = (sum[name] ?? 0) + value
  return sum as unknown as TrafficView
}

const addTotals = (one: PoolTotals, other: PoolTotals): PoolTotals => ({
  errors: one.errors + other.errors,
  checkouts: one.checkouts + other.checkouts,
  waitMs: one.waitMs + other.waitMs,
  connectMs: one.connectMs + other.connectMs,
  connects: one.connects + other.connects,
  connectAttempts: one.connectAttempts + other.connectAttempts,
  traffic: addTraffic(one.traffic, other.traffic),
})

const addUsage = (one: UsageTotals, other: UsageTotals): UsageTotals => ({
  queries: one.queries + other.queries,
  transactions: one.transactions + other.transactions,
  twoPhase: one.twoPhase + other.twoPhase,
  errors: one.errors + other.errors,
  bytesReceived: one.bytesReceived + other.bytesReceived,
  bytesSent: one.bytesSent + other.bytesSent,
  waitMs: one.waitMs + other.waitMs,
  queryMs: one.queryMs + other.queryMs,
  transactionMs: one.transactionMs + other.transactionMs,
  idleTransactionMs: one.idleTransactionMs + other.idleTransactionMs,
})

/** Of the last period, over the longest of them; absent while none has one. */
function addRecent<T>(
  one: (T & { readonly seconds: number }) | undefined,
  other: (T & { readonly seconds: number }) | undefined,
  add: (one: T, other: T) => T,
): { readonly recent?: T & { readonly seconds: number } } {
  if (!one || !other)
    return one || other ? { recent: (one ?? other) as NonNullable<typeof one> } : {}
  return { recent: { ...add(one, other), seconds: Math.max(one.seconds, other.seconds) } }
}

const addPools = (one: PoolView, other: PoolView): PoolView => ({
  ...one,
  ...addTotals(one, other),
  ...addRecent<PoolTotals>(one.recent, other.recent, addTotals),
  clientsWaiting: one.clientsWaiting + other.clientsWaiting,
  idle: one.idle + other.idle,
  active: one.active + other.active,
  idleInTransaction: one.idleInTransaction + other.idleInTransaction,
  opening: one.opening + other.opening,
  total: one.total + other.total,
  maxWaitMs: Math.max(one.maxWaitMs, other.maxWaitMs),
})

function sumsOf<R>(
  rows: readonly R[],
  keyOf: (row: R) => string,
  add: (a: R, b: R) => R,
): Map<string, R> {
  const sums = new Map<string, R>()
  for (const row of rows) {
    const key = keyOf(row)
    const sum = sums.get(key)
    sums.set(key, sum === undefined ? row : add(sum, row))
  }
  return sums
}

/** Of a pool as PgBouncer has it, and of a client whose servers come from it. */
export const userPoolKey = ({ database, user }: { database: string; user: string }): string =>
  JSON.stringify([database, user])

/** One pool for each user of a database. */
export const userPools = (view: ProxyView): PoolView[] => [
  ...sumsOf(view.pools(), userPoolKey, addPools).values(),
]

/** One row for each database: what its pools and its clients did. */
export function databaseStats(view: ProxyView): StatsRow[] {
  const addUse = (one: UsageView, other: UsageView): UsageView => ({
    ...one,
    ...addUsage(one, other),
    ...addRecent<UsageTotals>(one.recent, other.recent, addUsage),
  })
  const usage = sumsOf(view.usage(), ({ database }) => database, addUse)
  const pools = sumsOf(view.pools(), ({ database }) => database, addPools)
  return [...pools].map(([database, pool]) => ({ pool, usage: usage.get(database) }))
}
