/**
 * SHOW STATS: totals since the start and averages a second (of times: a piece), for each pool.
 * Times are microseconds, as PgBouncer's exporters expect. What the clients of a database did, queries' times above all,
 * is known for the database and stands in the row of its first pool; the sums over rows are right.
 */
import type { PercentilesView, PoolView, ProxyView, UsageView } from './proxy-view.js'
import { type ColumnOf, count, micros, type ShowTable, table, text } from './show-table.js'

interface StatsRow {
  readonly pool: PoolView
  readonly usage: UsageView | undefined
  readonly uptimeMs: number
}

/** name, total, and what an average is taken over: seconds, queries or transactions. */
type Figure = readonly [string, (row: StatsRow) => number, 'second' | 'query' | 'transaction']

const figures: readonly Figure[] = [
  ['xact_count', (r) => r.pool.traffic.transactions, 'second'],
  ['xact_2pc_count', (r) => r.usage?.twoPhase ?? 0, 'second'],
  ['query_count', (r) => r.pool.traffic.queries, 'second'],
  ['server_assignment_count', (r) => r.pool.checkouts, 'second'],
  ['received', (r) => r.pool.traffic.received, 'second'],
  ['sent', (r) => r.pool.traffic.sent, 'second'],
  ['xact_time', (r) => (r.usage?.transactionMs ?? 0) * 1000, 'transaction'],
  ['query_time', (r) => (r.usage?.queryMs ?? 0) * 1000, 'query'],
  ['wait_time', (r) => r.pool.waitMs * 1000, 'second'],
  ['errors', (r) => r.pool.errors, 'second'],
  ['connect_time', (r) => r.pool.connectMs * 1000, 'second'],
  ['connect_count', (r) => r.pool.connects, 'second'],
  ['reads', (r) => r.pool.traffic.reads, 'second'],
  ['writes', (r) => r.pool.traffic.writes, 'second'],
  ['prepared_hits', (r) => r.pool.traffic.preparedHits, 'second'],
  ['prepared_misses', (r) => r.pool.traffic.preparedMisses, 'second'],
]

const per: Readonly<Record<Figure[2], (row: StatsRow) => number>> = {
  second: (row) => row.uptimeMs / 1000,
  query: (row) => row.usage?.queries ?? 0,
  transaction: (row) => row.usage?.transactions ?? 0,
}

/** Of those that waited at all. */
function percentiles(what: string, of: (row: StatsRow) => PercentilesView): ColumnOf<StatsRow>[] {
  return [
    micros(`${what}_time_p50`, (row) => of(row).p50Ms),
    micros(`${what}_time_p95`, (row) => of(row).p95Ms),
    micros(`${what}_time_p99`, (row) => of(row).p99Ms),
    micros(`${what}_time_max`, (row) => of(row).maxMs),
  ]
}

const columns: readonly ColumnOf<StatsRow>[] = [
  text('database', (r) => r.pool.database),
  text('user', (r) => r.pool.user),
  text('addr', (r) => r.pool.address),
  count('port', (r) => r.pool.port),
  count('shard', (r) => r.pool.shard),
  text('role', (r) => r.pool.role),
  ...figures.map(([name, total]) => count(`total_${name}`, total)),
  ...figures.map(([name, total, unit]) =>
    count<StatsRow>(`avg_${name}`, (row) => {
      const over = per[unit](row)
      return over > 0 ? total(row) / over : 0
    }),
  ),
  ...percentiles('wait', (row) => row.pool.waits),
  ...percentiles('connect', (row) => row.pool.connectTimes),
  count('worker', (row) => row.pool.worker),
]

function rowsOf(view: ProxyView): StatsRow[] {
  const keyOf = (one: { worker: number; user: string; database: string }) =>
    JSON.stringify([one.worker, one.user, one.database])
  const usage = new Map(view.usage().map((one) => [keyOf(one), one]))
  // A worker that was replaced counts from its own start.
  const uptimes = new Map(view.workers().map((one) => [one.worker, one.uptimeMs]))
  return view.pools().map((pool) => {
    const key = keyOf(pool)
    const ofFirst = usage.get(key)
    usage.delete(key)
    return { pool, usage: ofFirst, uptimeMs: uptimes.get(pool.worker) ?? view.uptimeMs() }
  })
}

export const stats: ShowTable = table(columns, rowsOf)
