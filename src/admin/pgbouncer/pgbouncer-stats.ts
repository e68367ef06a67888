/** SHOW STATS and its kin as PgBouncer has them: one row for each database, NULL for what is not counted here. */
import type { ProxyView } from '../proxy-view.js'
import { type ColumnOf, type ShowTable, table, text } from '../show-table.js'
import { averageOf, type StatsFigure, type StatsRow, statsFigures } from '../stats-figures.js'
import { databaseStats } from './pool-sums.js'

const numeric = <R>(name: string, value: (row: R) => number | null): ColumnOf<R> => ({
  name,
  type: 'numeric',
  value: (row) => {
    const known = value(row)
    return known === null ? null : Math.trunc(known)
  },
})

/** A figure of PgBouncer's STATS: its word there, that of STATS_TOTALS, its value; without one it is not counted here. */
interface Figure {
  readonly name: string
  readonly bare: string
  /** In STATS, where the average is called otherwise. */
  readonly average?: string
  /** In STATS_AVERAGES. */
  readonly bareAverage?: string
  /** In TOTALS. */
  readonly total?: string
  readonly of?: StatsFigure
}

const known = (name: string): StatsFigure => {
  const figure = statsFigures.find((one) => one.name === name)
  if (!figure) throw new Error(`no figure ${name}`)
  return figure
}

/** Of clients, where pgshard's own figures are of servers. */
const fromClients: StatsFigure = {
  name: 'received',
  help: 'Bytes from clients.',
  of: ({ usage }) => usage?.bytesReceived ?? 0,
  per: 'second',
}

const simple = (name: string): Figure => ({ name, bare: name, of: known(name) })
const ofStatements = (name: string): Figure => ({
  name,
  bare: name,
  bareAverage: `avg_${name}`,
  total: `ps_${name}`,
})

const figures: readonly Figure[] = [
  simple('server_assignment_count'),
  simple('xact_count'),
  simple('query_count'),
  {
    name: 'received',
    bare: 'bytes_received',
    average: 'recv',
    total: 'client_bytes',
    of: fromClients,
  },
  { name: 'sent', bare: 'bytes_sent', total: 'server_bytes', of: known('received') },
  simple('xact_time'),
  simple('query_time'),
  simple('wait_time'),
  ofStatements('client_parse_count'),
  { ...ofStatements('server_parse_count'), of: known('server_parse_count') },
  { ...ofStatements('bind_count'), of: known('bind_count') },
  { name: 'client_login_count', bare: 'client_login_count', bareAverage: 'avg_client_login_count' },
]

const totalOf = ({ of }: Figure, row: StatsRow): number | null => (of ? of.of(row) : null)
const meanOf = ({ of }: Figure, row: StatsRow): number | null => (of ? averageOf(of, row) : null)

type Valued = (figure: Figure, row: StatsRow) => number | null

const columnsOf = (nameOfFigure: (figure: Figure) => string, value: Valued): ColumnOf<StatsRow>[] =>
  figures.map((figure) => numeric(nameOfFigure(figure), (row) => value(figure, row)))

const ofDatabase = text<StatsRow>('database', ({ pool }) => pool.database)

interface Total {
  readonly name: string
  readonly value: number | null
}

/** All databases together. */
function totalRows(view: ProxyView): Total[] {
  const rows = databaseStats(view)
  const sumOf = (figure: Figure, value: Valued): number | null =>
    figure.of ? rows.reduce((sum, row) => sum + (value(figure, row) ?? 0), 0) : null
  const named = (kind: string, value: Valued): Total[] =>
    figures.map((figure) => ({
      name: `${kind}_${figure.total ?? figure.name}`,
      value: sumOf(figure, value),
    }))
  return [...named('total', totalOf), ...named('avg', meanOf)]
}

export const statsTables: Readonly<Record<string, ShowTable>> = {
  stats: table(
    [
      ofDatabase,
      ...columnsOf(({ name }) => `total_${name}`, totalOf),
      ...columnsOf(({ name, average }) => `avg_${average ?? name}`, meanOf),
    ],
    databaseStats,
  ),
  stats_totals: table([ofDatabase, ...columnsOf(({ bare }) => bare, totalOf)], databaseStats),
  stats_averages: table(
    [ofDatabase, ...columnsOf(({ bare, bareAverage }) => bareAverage ?? bare, meanOf)],
    databaseStats,
  ),
  totals: table<Total>(
    [text('name', ({ name }) => name), numeric('value', ({ value }) => value)],
    totalRows,
  ),
}
