/** What is wrong, in words: the banner of the page. Remembers since when. */
import type { PoolView, ProxyView, TransactionView } from '../admin/proxy-view.js'
import { type HostRow, hostRows } from './hosts.js'

export interface Problem {
  readonly level: 'bad' | 'warn'
  /** `Shard 2 of "app" cannot be reached`; the page adds since when. */
  readonly what: string
  readonly detail: string
  /** Since the epoch. */
  readonly sinceMs: number
}

type Found = Omit<Problem, 'sinceMs'>

const LONG_WAIT_MS = 1000
const LONG_LAG_MS = 10_000
const OLD_TRANSACTION_MS = 60_000
const NEARLY_FULL = 0.95

const many = (count: number, one: string, several = `${one}s`): string =>
  `${count} ${count === 1 ? one : several}`

const seconds = (ms: number): string =>
  ms >= 10_000 ? `${Math.round(ms / 1000)} s` : `${(ms / 1000).toFixed(1)} s`

export class Problems {
  #since = new Map<string, number>()

  /** The worst first. */
  look(view: ProxyView, reach: readonly Found[] = []): Problem[] {
    const nowMs = view.nowMs()
    const found = [...reach, ...findProblems(view)]
    const seen = new Map<string, number>()
    const problems = found.map((one) => {
      const sinceMs = this.#since.get(one.what) ?? nowMs
      seen.set(one.what, sinceMs)
      return { ...one, sinceMs }
    })
    this.#since = seen
    return problems.sort((a, b) => a.level.localeCompare(b.level) || a.sinceMs - b.sinceMs)
  }
}

/** As they are now, without their history. */
export function findProblems(view: ProxyView): Found[] {
  const hosts = hostRows(view.pools())
  return [
    ...hosts.flatMap((host) => ofHost(host, hosts)),
    ...ofQueues(view.pools()),
    ...ofWorkers(view),
    ...ofTransactions(view.transactions()),
    ...ofTopology(view),
    ...ofClients(view),
  ]
}

const placeOf = (host: HostRow): string => `${host.role} ${host.address}`

function ofHost(host: HostRow, all: readonly HostRow[]): Found[] {
  const shard = `shard ${host.shard} of "${host.database}"`
  if (host.isPaused)
    return [{ level: 'warn', what: `PAUSE holds ${shard}`, detail: 'clients wait until RESUME' }]
  if (host.isManuallyBanned)
    return [
      {
        level: 'warn',
        what: `${placeOf(host)} of ${shard} is banned by hand`,
        detail: 'until UNBAN',
      },
    ]
  if (host.banReason === 'replica lag')
    return [
      {
        level: 'warn',
        what: `${placeOf(host)} of ${shard} is too far behind`,
        detail: 'it takes no reads until it has caught up',
      },
    ]
  if (!host.isHealthy || host.banReason !== undefined) return [unreachable(host, all, shard)]
  const { lagMs } = host
  if (lagMs !== null && lagMs > LONG_LAG_MS)
    return [
      { level: 'warn', what: `${placeOf(host)} of ${shard} is behind`, detail: seconds(lagMs) },
    ]
  return []
}

function unreachable(host: HostRow, all: readonly HostRow[], shard: string): Found {
  const reason = host.banReason === undefined ? '' : ` (${host.banReason})`
  const others = all.filter(
    (one) => one.database === host.database && one.shard === host.shard && one !== host,
  )
  const standIn = others.some((one) => one.isHealthy && one.banReason === undefined)
  if (host.role === 'replica' && standIn)
    return {
      level: 'warn',
      what: `${placeOf(host)} of ${shard} cannot be reached`,
      detail: `reads go to the other hosts${reason}`,
    }
  const whole = shard.replace('shard', 'Shard')
  return standIn
    ? {
        level: 'bad',
        what: `${whole} takes no writes`,
        detail: `its ${placeOf(host)} cannot be reached${reason}`,
      }
    : {
        level: 'bad',
        what: `${whole} cannot be reached`,
        detail: `its ${placeOf(host)} does not answer${reason}`,
      }
}

function ofQueues(pools: readonly PoolView[]): Found[] {
  return pools
    .filter((pool) => pool.clientsWaiting > 0 && pool.maxWaitMs > LONG_WAIT_MS && !pool.isPaused)
    .map((pool) => ({
      level: 'warn',
      what: `Clients of ${pool.user} wait for servers of shard ${pool.shard} of "${pool.database}"`,
      detail: `${many(pool.clientsWaiting, 'client')}, the longest for ${seconds(pool.maxWaitMs)}; ${pool.total - pool.idle} of ${pool.maxSize} servers are in use`,
    }))
}

function ofWorkers(view: ProxyView): Found[] {
  return view
    .workers()
    .filter(({ state }) => state === 'silent' || state === 'starting')
    .map(({ worker, processId, state }) =>
      state === 'silent'
        ? {
            level: 'bad',
            what: `Worker ${worker} does not answer`,
            detail: `process ${processId}; its clients wait, and it is missing from these figures`,
          }
        : { level: 'warn', what: `Worker ${worker} is starting`, detail: 'its place was empty' },
    )
}

function ofTransactions(rows: readonly TransactionView[]): Found[] {
  const old = rows.filter(
    (row) => row.state === 'prepared' && (row.ageMs ?? 0) > OLD_TRANSACTION_MS,
  )
  if (old.length === 0) return []
  const oldest = Math.max(...old.map(({ ageMs }) => ageMs ?? 0))
  return [
    {
      level: 'warn',
      what:
        old.length === 1
          ? 'A prepared transaction waits for its end'
          : `${old.length} prepared transactions wait for their end`,
      detail: `the oldest for ${seconds(oldest)}; their locks are held`,
    },
  ]
}

function ofTopology(view: ProxyView): Found[] {
  const fenced = view.topology().filter(({ state }) => state === 'fenced' || state === 'held')
  const databases = [...new Set(fenced.map(({ database }) => database))]
  return databases.map((database) => ({
    level: 'bad',
    what: `Nobody knows which side serves "${database}"`,
    detail: 'clients are held until the databases say it',
  }))
}

function ofClients(view: ProxyView): Found[] {
  return view
    .workers()
    .filter(
      ({ clients, maxClients }) =>
        Number.isFinite(maxClients) && clients >= maxClients * NEARLY_FULL,
    )
    .map(({ worker, clients, maxClients }) => ({
      level: 'warn',
      what: `Worker ${worker} has nearly all the clients that it may have`,
      detail: `${clients} of ${maxClients} (max_client_conn)`,
    }))
}
