/**
 * The primary: starts the workers, deals connections out to them, replaces one that has ended, and carries commands to all.
 * It routes nothing itself and holds no connection to PostgreSQL.
 */
import { randomBytes } from 'node:crypto'
import { mergeViews, type ViewSnapshot } from '../admin/merge-views.js'
import type { ProxyView, WorkerView } from '../admin/proxy-view.js'
import type { Clock } from '../base/clock.js'
import { type Deferred, deferred } from '../base/deferred.js'
import type { Log, LogLevel } from '../base/log.js'
import type { LoadedConfig } from '../config/loaded-config.js'
import { engineError } from '../errors/engine-error.js'
import type { AcceptedHandle } from '../net/adopt-accepted.js'
import {
  canReusePort,
  type Listener,
  type ListenOptions,
  listenForHandles,
} from '../net/listener.js'
import { openListeners } from '../proxy/clients/open-listeners.js'
import { Dispatcher } from './dispatcher.js'
import type { ConsoleOrder, FleetLook, Order, PoolVerb, ToPrimary } from './messages.js'
import { FleetReload } from './reload.js'
import { shareLimits } from './share-limits.js'
import { SilenceWatch } from './silence.js'
import { StandingOrders } from './standing-orders.js'
import { type WorkerEnd, type WorkerEvents, WorkerProcess } from './worker-process.js'

/** A worker that lived so long did not fail at its start. */
const SETTLED_MS = 10_000
const FIRST_DELAY_MS = 100
const LONGEST_DELAY_MS = 5000
/** SHOW leaves out a worker that does not answer. */
const LOOK_MS = 3000
const ANSWER_MS = 20

export interface FleetOptions {
  readonly count: number
  readonly config: LoadedConfig
  readonly loadAgain: (settings?: ReadonlyMap<string, string>) => LoadedConfig
  readonly version: string
  readonly log: Log
  readonly clock: Clock
  readonly host?: string
  readonly port?: number
  readonly logLevel?: LogLevel
  readonly logFormat?: 'text' | 'json'
  readonly isTraced: boolean
}

/** What stays when a process in a place is replaced. */
interface Place {
  worker: WorkerProcess | undefined
  replaced: number
  /** Ends soon after the start, in a row. */
  failures: number
}

export class WorkerFleet {
  /** Resolves with true when all have drained, false when clients had to be cut. */
  readonly ended: Promise<boolean>
  readonly #options: FleetOptions
  readonly #places: Place[]
  readonly #dispatcher: Dispatcher
  readonly #standing = new StandingOrders()
  readonly #reload: FleetReload
  readonly #silence: SilenceWatch
  readonly #secrets = { keySecret: randomBytes(32), saltSecret: randomBytes(32) }
  readonly #end: Deferred<boolean> = deferred()
  #listeners: Listener[] = []
  #isStarted = false
  #isStopping = false
  #isDrained = true
  #restarting: Promise<void> | undefined

  constructor(options: FleetOptions) {
    this.#options = options
    this.ended = this.#end.promise
    this.#places = Array.from({ length: options.count }, () => ({
      worker: undefined,
      replaced: 0,
      failures: 0,
    }))
    this.#dispatcher = new Dispatcher(() => this.#workers())
    this.#reload = new FleetReload({
      config: options.config,
      count: options.count,
      loadAgain: options.loadAgain,
      log: options.log,
      workers: () => this.#workers(),
    })
    this.#silence = new SilenceWatch({
      clock: options.clock,
      limitMs: options.config.general.workerTimeoutMs,
      watched: () => this.#workers(),
    })
  }

  get host(): string {
    return this.#listeners[0]?.host ?? ''
  }

  get port(): number {
    return this.#listeners[0]?.port ?? 0
  }

  /** In force. */
  get config(): LoadedConfig {
    return this.#reload.config
  }

  /** All workers together. */
  async view(): Promise<ProxyView> {
    const { snapshots, workers } = await this.#look()
    return mergeViews(snapshots, workers)
  }

  /** Resolves when all are ready. @throws NET_LISTEN_FAILED, or why a worker could not start */
  async start(): Promise<void> {
    const { config, log } = this.#options
    for (const warning of config.warnings) log.warn(warning)
    this.#listeners = await openListeners(config, this.#options, (where) => this.#listen(where))
    try {
      await Promise.all(this.#places.map((_, number) => this.#spawn(number).ready))
    } catch (error) {
      this.#isStopping = true
      for (const worker of this.#workers()) worker.kill()
      await this.#close()
      throw error
    }
    // From now on the kernel deals out what comes to the port; a Unix socket stays here.
    if (canReusePort()) await this.#listeners[0]?.close()
    this.#isStarted = true
    this.#silence.start()
  }

  /** Where Node can share a port, workers listen there too. */
  async #listen(where: ListenOptions): Promise<Listener> {
    const deal = (handle: AcceptedHandle) => this.#dispatcher.deal(handle)
    if (where.path !== undefined || !canReusePort()) return listenForHandles(where, deal)
    // Another program that shares its port too would not be noticed later.
    const { host, port, close } = await listenForHandles(where, deal)
    await close()
    return listenForHandles({ ...where, host, port, reusePort: true }, deal)
  }

  /** Stops accepting and drains all; a second call, or `now`, cuts. */
  shutdown(now = false): void {
    const isSecond = this.#isStopping
    this.#isStopping = true
    if (!isSecond) {
      this.#options.log.info('shutting down', { workers: this.#workers().length })
      void this.#close()
    }
    for (const worker of this.#workers()) worker.stop(isSecond || now)
    this.#endWhenEmpty()
  }

  /** @throws ADMIN_RELOAD_FAILED; then no worker has the new configuration */
  reload(): Promise<void> {
    return this.#reload.run()
  }

  /** One worker after the other is drained and replaced, `last` at the end, without waiting for it: who asks may be its client. */
  restart(last?: number): Promise<void> {
    this.#restarting ??= this.#restartAll(last).finally(() => {
      this.#restarting = undefined
    })
    return this.#restarting
  }

  #workers(): WorkerProcess[] {
    return this.#places.flatMap(({ worker }) => worker ?? [])
  }

  #spawn(number: number): WorkerProcess {
    const { count, clock, version, logLevel, logFormat, isTraced, log } = this.#options
    const start = {
      ...this.#secrets,
      number,
      count,
      config: shareLimits(this.#reload.config, count),
      version,
      isTraced,
      ...(logLevel === undefined ? {} : { logLevel }),
      ...(logFormat === undefined ? {} : { logFormat }),
      orders: this.#standing.all,
      host: this.host,
      port: this.port,
      listens: canReusePort(),
    }
    const worker = new WorkerProcess(start, clock.monotonicMs(), this.#events)
    const place = this.#places[number] as Place
    place.worker = worker
    const began = () => {
      log.info('worker ready', { worker: number, pid: worker.processId })
      this.#dispatcher.dealWaiting()
    }
    worker.ready.then(began, () => undefined)
    void worker.ended.then((end) => this.#onEnd(place, worker, end))
    return worker
  }

  readonly #events: WorkerEvents = {
    asked: (worker, what) => this.#asked(worker, what),
    refused: (handle) => this.#dispatcher.deal(handle),
    silent: (worker, forMs) => {
      const { number, processId: pid } = worker
      this.#options.log.error('a worker stands still and is ended', { worker: number, pid, forMs })
      worker.kill()
    },
    schemaChanged: (teller, database) => {
      for (const worker of this.#workers())
        if (worker !== teller) worker.tellSchemaChanged(database)
    },
  }

  #onEnd(place: Place, worker: WorkerProcess, end: WorkerEnd): void {
    place.worker = undefined
    for (const handle of worker.takeBack()) this.#dispatcher.deal(handle)
    if (this.#isStopping) {
      this.#isDrained &&= end.isDrained === true
      this.#endWhenEmpty()
      return
    }
    if (!this.#isStarted || end.isDrained !== undefined) return
    const { clock, log } = this.#options
    place.failures = clock.monotonicMs() - worker.startedAtMs > SETTLED_MS ? 0 : place.failures + 1
    const delayMs =
      place.failures < 2
        ? 0
        : Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** (place.failures - 2))
    log.error('a worker ended and is replaced', {
      worker: worker.number,
      pid: worker.processId,
      code: end.code,
      signal: end.signal,
      error: end.failure?.message,
      delayMs,
    })
    void clock.sleep(delayMs).then(() => this.#replace(worker.number))
  }

  #replace(number: number): WorkerProcess | undefined {
    const place = this.#places[number] as Place
    if (this.#isStopping || place.worker) return place.worker
    place.replaced++
    return this.#spawn(number)
  }

  async #restartAll(last?: number): Promise<void> {
    this.#options.log.info('restarting workers')
    const order = this.#places.map((_, number) => number).filter((number) => number !== last)
    for (const number of order) await this.#restartOne(number)
    if (last === undefined) return
    // Its client hears the answer first.
    void this.#options.clock
      .sleep(ANSWER_MS)
      .then(() => this.#restartOne(last))
      .catch(() => undefined)
  }

  async #restartOne(number: number): Promise<void> {
    const worker = this.#places[number]?.worker
    worker?.stop(false)
    await worker?.ended
    // A worker that ends by itself is replaced elsewhere; the place is taken then.
    await this.#replace(number)?.ready
  }

  #asked(worker: WorkerProcess, what: ToPrimary['ask']): unknown {
    switch (what.kind) {
      case 'look':
        return this.#look()
      case 'cancel': {
        const owner = this.#places[what.worker]?.worker
        const { processId, key } = what
        return owner?.ask({ kind: 'cancel', processId, key }).catch(() => undefined)
      }
      case 'order':
        return this.#command(what.order, worker.number)
    }
  }

  async #command(order: ConsoleOrder, from: number): Promise<void> {
    switch (order.verb) {
      case 'reload':
        return this.reload()
      case 'force_reload':
        await this.reload()
        return this.#everywhere({ verb: 'reconnect', pools: {} })
      case 'set':
        return this.#reload.set(order.name, order.value)
      case 'shutdown':
        return this.shutdown()
      case 'restart':
        return this.restart(from)
      case 'kill_client': {
        const owner = this.#places[order.id % this.#places.length]?.worker
        if (owner) return owner.ask({ kind: 'order', order })
        throw noSuch('client', order.id, 'SHOW CLIENTS')
      }
      case 'ban':
      case 'unban':
      case 'healthcheck':
        return this.#everywhere(await this.#withPlace(order.verb, order.poolId))
      default:
        return this.#everywhere(order)
    }
  }

  /** Ids of pools differ between workers: the order names the pool by what it is. @throws ADMIN_NO_SUCH */
  async #withPlace(verb: PoolVerb, poolId: number | undefined): Promise<Order> {
    if (poolId === undefined) return { verb }
    const { snapshots } = await this.#look()
    const pool = snapshots.flatMap(({ pools }) => pools).find((one) => one.poolId === poolId)
    if (!pool) throw noSuch('pool', poolId, 'SHOW POOLS')
    const { user, database, address, port, shard, role } = pool
    return { verb, place: { user, database, address, port, shard, role } }
  }

  /** Resolves when every worker has done it; one that ended meanwhile is replaced by one that hears it at its start. */
  async #everywhere(order: Order): Promise<void> {
    this.#standing.note(order)
    const done = await Promise.allSettled(
      this.#workers().map((worker) => worker.ask({ kind: 'order', order })),
    )
    const refused = done.flatMap((one) =>
      one.status === 'rejected' && one.reason.code !== 'WORKER_GONE' ? [one.reason] : [],
    )
    if (refused.length === 0) return
    this.#standing.forget(order)
    throw refused[0]
  }

  async #look(): Promise<FleetLook> {
    const { clock } = this.#options
    const found = await Promise.all(
      this.#places.map(async ({ worker, replaced }, number) => {
        const late = new AbortController()
        const snapshot = await Promise.race([
          worker && worker.state !== 'starting'
            ? worker.ask<ViewSnapshot>({ kind: 'look' }).catch(() => undefined)
            : undefined,
          clock.sleep(LOOK_MS, late.signal).then(() => undefined),
        ])
        late.abort()
        return { snapshot, row: this.#rowOf(number, worker, replaced, snapshot) }
      }),
    )
    return {
      snapshots: found.flatMap(({ snapshot }) => snapshot ?? []),
      workers: found.map(({ row }) => row),
    }
  }

  #rowOf(
    worker: number,
    process: WorkerProcess | undefined,
    replaced: number,
    snapshot: ViewSnapshot | undefined,
  ): WorkerView {
    const own = snapshot?.workers[0]
    if (own) return { ...own, replaced }
    const isBegun = process === undefined || process.state === 'starting'
    return {
      worker,
      processId: process?.processId ?? 0,
      state: isBegun ? 'starting' : 'silent',
      uptimeMs: 0,
      replaced,
      clients: 0,
      maxClients: Number.POSITIVE_INFINITY,
      maxServers: Number.POSITIVE_INFINITY,
      cancels: 0,
      cancelsForwarded: 0,
      cpuMs: 0,
      memoryBytes: 0,
      isSuspended: false,
    }
  }

  async #close(): Promise<void> {
    this.#dispatcher.close()
    await Promise.all(this.#listeners.map((listener) => listener.close()))
  }

  #endWhenEmpty(): void {
    if (this.#workers().length > 0) return
    this.#silence.stop()
    this.#options.log.info('ended', { drained: this.#isDrained })
    this.#end.resolve(this.#isDrained)
  }
}

const noSuch = (kind: string, name: number, where: string) =>
  engineError('ADMIN_NO_SUCH', { kind, name, where })
