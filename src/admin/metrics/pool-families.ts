/** Metrics of pools, by PgDog's names and labels. Workers have pools of the same place: their figures are added. */
import type { Family, FamilyType, Labels, Sample, ValueFamily } from '../../metrics/family.js'
import type { PoolPlaceView, PoolView, ProxyView } from '../proxy-view.js'
import {
  averageOf,
  ownFigures,
  type StatsFigure,
  type StatsRow,
  statsFigures,
  statsRows,
} from '../stats-figures.js'

type Merge = (sum: number, more: number) => number

const add: Merge = (sum, more) => sum + more

const labelsOf = (pool: PoolPlaceView): Labels => ({
  user: pool.user,
  database: pool.database,
  host: pool.address,
  port: String(pool.port),
  shard: String(pool.shard),
  role: pool.role,
})

/** One sample a place. */
function samplesOf<R>(
  rows: readonly R[],
  labels: (row: R) => Labels,
  value: (row: R) => number,
  merge: Merge = add,
): Sample[] {
  const merged = new Map<string, Sample>()
  for (const row of rows) {
    const own = labels(row)
    const key = JSON.stringify(own)
    const known = merged.get(key)
    const sum = known ? merge(known.value, value(row)) : value(row)
    merged.set(key, { labels: own, value: sum })
  }
  return [...merged.values()]
}

interface PoolGauge {
  readonly name: string
  readonly help: string
  readonly type?: FamilyType
  readonly of: (pool: PoolView) => number
  readonly merge?: Merge
}

const gauges: readonly PoolGauge[] = [
  { name: 'cl_waiting', help: 'Clients that wait for a server.', of: (p) => p.clientsWaiting },
  { name: 'cl_active', help: 'Servers lent to clients.', of: (p) => p.clientsActive },
  { name: 'sv_active', help: 'Servers at work.', of: (p) => p.active },
  { name: 'sv_idle', help: 'Servers free to be lent.', of: (p) => p.idle },
  { name: 'sv_idle_xact', help: 'Servers idle in a transaction.', of: (p) => p.idleInTransaction },
  { name: 'sv_locked', help: 'Servers kept by clients across transactions.', of: (p) => p.locked },
  { name: 'sv_total', help: 'Servers.', of: (p) => p.total },
  { name: 'pool_size', help: 'Servers that may be open.', of: (p) => p.maxSize },
  {
    name: 'maxwait',
    help: 'Seconds that the first client in line has waited.',
    of: (p) => p.maxWaitMs / 1000,
    merge: Math.max,
  },
  {
    name: 'errors',
    help: 'Connections that failed.',
    type: 'unknown',
    of: (p) => p.errors,
  },
  {
    name: 'out_of_sync',
    help: 'Servers thrown away because they came back out of step.',
    type: 'unknown',
    of: (p) => p.outOfSync,
  },
  {
    name: 'banned',
    help: '1 while the host takes no reads.',
    of: (p) => Number(p.isBanned),
    merge: Math.max,
  },
  {
    name: 'healthy',
    help: '1 while the host answers its checks.',
    of: (p) => Number(p.isHealthy),
    merge: Math.min,
  },
]

const gaugeFamily = (
  { name, help, type = 'gauge', of, merge }: PoolGauge,
  pools: readonly PoolView[],
): ValueFamily => ({
  name,
  help,
  type: type as ValueFamily['type'],
  samples: samplesOf(pools, labelsOf, of, merge),
})

const rowLabels = (row: StatsRow): Labels => labelsOf(row.pool)

/** Averages over a piece of time cannot be added over workers; those of the busier one count. */
const averageMerge = (figure: StatsFigure): Merge => (figure.per === 'second' ? add : Math.max)

/** PgDog calls them total_…, a name that OpenMetrics keeps from counters. */
const statFamilies = (figure: StatsFigure, rows: readonly StatsRow[]): ValueFamily[] => [
  {
    name: `total_${figure.name}`,
    help: figure.help,
    type: 'unknown',
    samples: samplesOf(rows, rowLabels, figure.of),
  },
  {
    name: `avg_${figure.name}`,
    help: `${figure.help} Average of the last stats_period.`,
    type: 'gauge',
    samples: samplesOf(rows, rowLabels, (row) => averageOf(figure, row), averageMerge(figure)),
  },
]

export function poolFamilies(view: ProxyView): Family[] {
  const pools = view.pools()
  const rows = statsRows(view)
  return [
    ...gauges.map((gauge) => gaugeFamily(gauge, pools)),
    ...[...statsFigures, ...ownFigures].flatMap((figure) => statFamilies(figure, rows)),
  ]
}
