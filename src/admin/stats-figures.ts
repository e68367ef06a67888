/**
 * The figures of pools that SHOW STATS and the metrics give as totals and averages. What the clients of a database did,
 * queries' times above all, is known for the database and stands with its first pool; the sums over pools are right.
 */
import type { PoolTotals, PoolView, ProxyView, UsageTotals, UsageView } from './proxy-view.js'

export interface StatsRow {
  readonly pool: PoolView
  readonly usage: UsageView | undefined
}

interface Totals {
  readonly pool: PoolTotals
  readonly usage: UsageTotals | undefined
}

export interface StatsFigure {
  readonly name: string
  readonly of: (totals: Totals) => number
  /** What an average is taken over. */
  readonly per: 'second' | 'query' | 'transaction'
  /** For metrics and people. */
  readonly help: string
}

const perSecond = (name: string, help: string, of: StatsFigure['of']): StatsFigure => ({
  name,
  help,
  of,
  per: 'second',
})

const MICROS = 1000

export const statsFigures: readonly StatsFigure[] = [
  perSecond('xact_count', 'Transactions that ended.', (t) => t.pool.traffic.transactions),
  perSecond('xact_2pc_count', 'Of them, ended by two-phase commit.', (t) => t.usage?.twoPhase ?? 0),
  perSecond('query_count', 'Queries sent to servers.', (t) => t.pool.traffic.queries),
  perSecond('server_assignment_count', 'Times a server was lent.', (t) => t.pool.checkouts),
  perSecond('received', 'Bytes from servers.', (t) => t.pool.traffic.received),
  perSecond('sent', 'Bytes to servers.', (t) => t.pool.traffic.sent),
  {
    name: 'xact_time',
    help: 'Microseconds of transactions.',
    of: (t) => (t.usage?.transactionMs ?? 0) * MICROS,
    per: 'transaction',
  },
  {
    name: 'idle_xact_time',
    help: 'Microseconds that transactions waited for their clients.',
    of: (t) => (t.usage?.idleTransactionMs ?? 0) * MICROS,
    per: 'transaction',
  },
  {
    name: 'query_time',
    help: 'Microseconds of queries.',
    of: (t) => (t.usage?.queryMs ?? 0) * MICROS,
    per: 'query',
  },
  perSecond(
    'wait_time',
    'Microseconds that clients waited for servers.',
    (t) => t.pool.waitMs * MICROS,
  ),
  perSecond(
    'server_parse_count',
    'Statements prepared on servers.',
    (t) => t.pool.traffic.preparedMisses,
  ),
  perSecond(
    'bind_count',
    'Uses of prepared statements.',
    (t) => t.pool.traffic.preparedHits + t.pool.traffic.preparedMisses,
  ),
  perSecond(
    'close_count',
    'Prepared statements closed on servers.',
    (t) => t.pool.traffic.preparedCloses,
  ),
  perSecond('errors', 'Connections that failed.', (t) => t.pool.errors),
  perSecond('cleaned', 'Servers made clean for the next client.', (t) => t.pool.traffic.cleaned),
  perSecond('rollbacks', 'Transactions rolled back.', (t) => t.pool.traffic.rollbacks),
  perSecond('connect_time', 'Microseconds spent in connecting.', (t) => t.pool.connectMs * MICROS),
  perSecond('connect_count', 'Connections opened.', (t) => t.pool.connects),
  perSecond('reads', 'Statements of clients that read.', (t) => t.pool.traffic.reads),
  perSecond('writes', 'Statements of clients that write.', (t) => t.pool.traffic.writes),
  perSecond('auth_attempts', 'Logins tried on servers.', (t) => t.pool.connectAttempts),
  perSecond('rows_inserted', 'Rows inserted.', (t) => t.pool.traffic.rowsInserted),
  perSecond('rows_updated', 'Rows updated, by MERGE too.', (t) => t.pool.traffic.rowsUpdated),
  perSecond('rows_deleted', 'Rows deleted.', (t) => t.pool.traffic.rowsDeleted),
]

/** Behind PgDog's. */
export const ownFigures: readonly StatsFigure[] = [
  perSecond(
    'prepared_hits',
    'Uses of a prepared statement that the server had.',
    (t) => t.pool.traffic.preparedHits,
  ),
  perSecond(
    'prepared_misses',
    'Uses for which it was prepared.',
    (t) => t.pool.traffic.preparedMisses,
  ),
  perSecond(
    'prepared_evictions',
    'Prepared statements closed to make room.',
    (t) => t.pool.traffic.preparedEvictions,
  ),
  perSecond('server_errors', 'Errors that servers answered.', (t) => t.pool.traffic.errors),
]

/** Of the last whole `stats_period`: a second, or a piece where time is counted. 0 before the first has ended. */
export function averageOf(figure: StatsFigure, { pool, usage }: StatsRow): number {
  const recent = pool.recent
  if (!recent) return 0
  const totals = { pool: recent, usage: usage?.recent }
  const over = {
    second: recent.seconds,
    query: usage?.recent?.queries ?? 0,
    transaction: usage?.recent?.transactions ?? 0,
  }[figure.per]
  return over > 0 ? figure.of(totals) / over : 0
}

export function statsRows(view: ProxyView): StatsRow[] {
  const keyOf = (one: { worker: number; user: string; database: string }) =>
    JSON.stringify([one.worker, one.user, one.database])
  const usage = new Map(view.usage().map((one) => [keyOf(one), one]))
  return view.pools().map((pool) => {
    const key = keyOf(pool)
    const ofFirst = usage.get(key)
    usage.delete(key)
    return { pool, usage: ofFirst }
  })
}
