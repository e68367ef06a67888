/** All metrics of a proxy, from its view: PgDog's names first, then ours. */
import type { Family, HistogramSample, Labels, Sample, ValueFamily } from '../../metrics/family.js'
import type {
  ClientView,
  ListenerView,
  ProxyView,
  TimesView,
  UsageView,
  WorkerView,
} from '../proxy-view.js'
import { poolFamilies } from './pool-families.js'

const sum = <R>(rows: readonly R[], of: (row: R) => number): number =>
  rows.reduce((total, row) => total + of(row), 0)

const value = (
  name: string,
  help: string,
  samples: number | readonly Sample[],
  type: ValueFamily['type'] = 'gauge',
): ValueFamily => ({
  name,
  help,
  type,
  samples: typeof samples === 'number' ? [{ labels: {}, value: samples }] : samples,
})

/** Rows of equal labels as one. */
function grouped<R>(
  rows: readonly R[],
  labels: (row: R) => Labels,
): { labels: Labels; rows: R[] }[] {
  const groups = new Map<string, { labels: Labels; rows: R[] }>()
  for (const row of rows) {
    const own = labels(row)
    const key = JSON.stringify(own)
    const group = groups.get(key) ?? { labels: own, rows: [] }
    group.rows.push(row)
    groups.set(key, group)
  }
  return [...groups.values()]
}

const samples = <R>(
  rows: readonly R[],
  labels: (row: R) => Labels,
  of: (row: R) => number,
): Sample[] =>
  grouped(rows, labels).map((group) => ({ labels: group.labels, value: sum(group.rows, of) }))

const numberSetting = (view: ProxyView, name: string): number => {
  const found = view.config().find((one) => one.name === name)?.value
  return found === undefined || found === '' ? Number.POSITIVE_INFINITY : Number(found)
}

function clientFamilies(view: ProxyView): Family[] {
  const clients = view.clients()
  const ofClient = ({ user, database, state }: ClientView): Labels => ({ user, database, state })
  return [
    value('clients', 'Clients that are connected.', clients.length),
    value(
      'clients_locked',
      'Clients that keep their server.',
      sum(clients, (one) => Number(one.pins.length > 0)),
    ),
    value(
      'client_states',
      'Clients by what they do.',
      samples(clients, ofClient, () => 1),
    ),
    value(
      'max_connections',
      'Clients that may connect.',
      sum(view.workers(), (one) => one.maxClients),
    ),
    value(
      'prepared_statements_limit',
      'Prepared statements that one server keeps.',
      numberSetting(view, 'prepared_statements_limit'),
    ),
    value(
      'query_cache_limit',
      'Plans that one process keeps.',
      numberSetting(view, 'query_cache_limit'),
    ),
    value(
      'prepared_statements',
      'Prepared statements on servers.',
      sum(view.servers(), (one) => one.preparedStatements),
    ),
  ]
}

/** What clients were told and gave, apart from what went over servers (total_received and total_sent). */
function usageFamilies(view: ProxyView): Family[] {
  const usage = view.usage()
  const labels = ({ user, database }: UsageView): Labels => ({ user, database })
  const family = (name: string, help: string, of: (row: UsageView) => number): ValueFamily =>
    value(name, help, samples(usage, labels, of), 'counter')
  return [
    family('client_queries', 'Queries of clients.', (row) => row.queries),
    family('client_transactions', 'Transactions of clients.', (row) => row.transactions),
    family('client_errors', 'Errors that clients were told.', (row) => row.errors),
    family('client_received_bytes', 'Bytes from clients.', (row) => row.bytesReceived),
    family('client_sent_bytes', 'Bytes to clients.', (row) => row.bytesSent),
    family(
      'client_wait_seconds',
      'Time that clients waited for servers.',
      (row) => row.waitMs / 1000,
    ),
  ]
}

function listenerFamilies(listeners: readonly ListenerView[]): Family[] {
  const labels = ({ database, user, shard, channel }: ListenerView): Labels => ({
    database,
    user,
    shard: String(shard),
    channel,
  })
  const family = (name: string, help: string, of: (row: ListenerView) => number): ValueFamily =>
    value(
      name,
      help,
      samples(listeners, labels, of),
      name === 'pub_sub_listeners' ? 'gauge' : 'unknown',
    )
  return [
    family('pub_sub_listeners', 'Clients that listen.', (row) => row.listeners),
    family('pub_sub_listener_received', 'Notifications that came.', (row) => row.received),
    family(
      'pub_sub_listener_dropped',
      'Clients disconnected because they did not read.',
      (row) => row.dropped,
    ),
  ]
}

function workerFamilies(workers: readonly WorkerView[]): Family[] {
  const labels = ({ worker }: WorkerView): Labels => ({ worker: String(worker) })
  return [
    value(
      'worker_up',
      '1 while the process answers.',
      samples(workers, labels, (one) => Number(one.state === 'ready')),
    ),
    value(
      'worker_cpu_seconds',
      'Time of processors.',
      samples(workers, labels, (one) => one.cpuMs / 1000),
      'counter',
    ),
    value(
      'worker_memory_bytes',
      'Resident memory.',
      samples(workers, labels, (one) => one.memoryBytes),
    ),
    value(
      'worker_restarts',
      'Times that the process was replaced.',
      samples(workers, labels, (one) => one.replaced),
      'counter',
    ),
    value(
      'worker_cancels',
      'Cancel requests that came.',
      samples(workers, labels, (one) => one.cancels),
      'counter',
    ),
  ]
}

const addCounts = (sums: readonly number[], more: readonly number[]): number[] =>
  more.map((count, at) => count + (sums[at] ?? 0))

/** What requests took, by what was done for them: pools of several shards at once have no shard. */
function timeFamily(times: readonly TimesView[]): Family {
  const labels = (one: TimesView): Labels => ({
    user: one.user,
    database: one.database,
    shard: one.shard < 0 ? 'several' : String(one.shard),
    class: one.requestClass,
  })
  const histogram = ({
    labels: own,
    rows,
  }: {
    labels: Labels
    rows: readonly TimesView[]
  }): HistogramSample => ({
    labels: own,
    counts: rows.map(({ counts }) => counts).reduce(addCounts),
    sumSeconds: sum(rows, (row) => row.sumMs) / 1000,
  })
  return {
    name: 'request_duration_seconds',
    help: 'What requests of clients took, by pool, shard and class of statement.',
    type: 'histogram',
    samples: grouped(times, labels).map(histogram),
  }
}

export function familiesOf(view: ProxyView): Family[] {
  return [
    ...clientFamilies(view),
    ...poolFamilies(view),
    ...listenerFamilies(view.listeners()),
    ...usageFamilies(view),
    ...workerFamilies(view.workers()),
    timeFamily(view.times()),
  ]
}
