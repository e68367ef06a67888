/**
 * SHOW STATS: totals since the start and averages of the last `stats_period`, for each pool. Times are microseconds, as
 * PgBouncer's exporters expect.
 */
import type { PercentilesView } from './proxy-view.js'
import { type ColumnOf, count, micros, type ShowTable, table, text } from './show-table.js'
import {
  averageOf,
  ownFigures,
  type StatsFigure,
  type StatsRow,
  statsFigures,
  statsRows,
} from './stats-figures.js'

/** Of those that waited at all. */
function percentiles(what: string, of: (row: StatsRow) => PercentilesView): ColumnOf<StatsRow>[] {
  return [
    micros(`${what}_time_p50`, (row) => of(row).p50Ms),
    micros(`${what}_time_p95`, (row) => of(row).p95Ms),
    micros(`${what}_time_p99`, (row) => of(row).p99Ms),
    micros(`${what}_time_max`, (row) => of(row).maxMs),
  ]
}

const place: readonly ColumnOf<StatsRow>[] = [
  text('database', (r) => r.pool.database),
  text('user', (r) => r.pool.user),
  text('addr', (r) => r.pool.address),
  count('port', (r) => r.pool.port),
  count('shard', (r) => r.pool.shard),
  text('role', (r) => r.pool.role),
]

const totals = (figures: readonly StatsFigure[]): ColumnOf<StatsRow>[] =>
  figures.map(({ name, of }) => count(`total_${name}`, of))

const averages = (figures: readonly StatsFigure[]): ColumnOf<StatsRow>[] =>
  figures.map((figure) => count(`avg_${figure.name}`, (row) => averageOf(figure, row)))

const worker = count<StatsRow>('worker', (row) => row.pool.worker)

export const statsTables: Readonly<Record<string, ShowTable>> = {
  stats: table(
    [
      ...place,
      ...totals(statsFigures),
      ...averages(statsFigures),
      ...totals(ownFigures),
      ...averages(ownFigures),
      ...percentiles('wait', (row) => row.pool.waits),
      ...percentiles('connect', (row) => row.pool.connectTimes),
      worker,
    ],
    statsRows,
  ),
  stats_totals: table([...place, ...totals(statsFigures), worker], statsRows),
  stats_averages: table([...place, ...averages(statsFigures), worker], statsRows),
}
