/** A worker: a proxy whose connections, cancels of strangers and console commands go through its primary. */
import { mergeViews, takeSnapshot } from '../admin/merge-views.js'
import type { ProxyControl } from '../admin/proxy-control.js'
import { systemClock } from '../base/clock.js'
import { type Deferred, deferred } from '../base/deferred.js'
import { type AcceptedHandle, adoptHandle, closeHandle } from '../net/adopt-accepted.js'
import type { ByteSocket } from '../net/byte-socket.js'
import { type Listener, listen } from '../net/listener.js'
import { keepAliveOf } from '../proxy/clients/open-listeners.js'
import type { Fleet } from '../proxy/fleet.js'
import type { PreparedReload, ServingProxy } from '../proxy/proxy.js'
import { openProxyLog } from '../proxy/serve.js'
import { type NewestConfig, startServing } from '../proxy/start-serving.js'
import type { Link } from './link.js'
import type {
  ConsoleOrder,
  FleetLook,
  Order,
  ToPrimary,
  ToWorker,
  WorkerStart,
} from './messages.js'
import { toRemote } from './remote-error.js'

/** Closed connections are told together. */
const LEFT_MS = 5

interface Prepared {
  readonly reload: PreparedReload
  readonly before: NewestConfig
}

export class Worker {
  readonly #link: Link<ToPrimary, ToWorker>
  readonly #start: WorkerStart
  readonly #config: NewestConfig
  readonly #running: Deferred<ServingProxy> = deferred()
  #accept: ((socket: ByteSocket) => void) | undefined
  #prepared: Prepared | undefined
  #isStopping = false
  #left = 0

  constructor(link: Link<ToPrimary, ToWorker>, start: WorkerStart) {
    this.#link = link
    this.#start = start
    this.#config = { newest: start.config }
    this.#running.promise.catch(() => undefined)
  }

  /** Resolves when it has drained, or was cut. Rejects when it cannot start; the primary has been told why. */
  async run(): Promise<void> {
    try {
      const proxy = await this.#serve()
      for (const order of this.#start.orders) void obey(proxy, order)
      this.#running.resolve(proxy)
      this.#link.tell({ kind: 'ready' })
      const isDrained = await proxy.ended
      this.#link.tell({ kind: 'ended', isDrained })
    } catch (error) {
      this.#running.reject(error)
      this.#link.tell({ kind: 'failed', error: toRemote(error) })
      throw error
    }
  }

  told(what: ToWorker['tell'], handle: AcceptedHandle | undefined): void {
    switch (what.kind) {
      case 'connection':
        return this.#take(what.n, handle)
      case 'shutdown':
        this.#isStopping = true
        return this.#whenRunning((proxy) => proxy.shutdown(what.now))
      case 'schema':
        return this.#whenRunning((proxy) => proxy.schemaChanged(what.database))
      case 'start':
    }
  }

  async asked(what: Exclude<ToWorker['ask'], { kind: 'beat' }>): Promise<unknown> {
    const proxy = await this.#running.promise
    switch (what.kind) {
      case 'look':
        return takeSnapshot(proxy.view)
      case 'cancel':
        return proxy.cancels.ours(what.processId, what.key)
      case 'order':
        return obey(proxy, what.order)
      case 'prepare': {
        const before = { newest: this.#config.newest }
        this.#config.newest = what.config
        try {
          this.#prepared = { reload: await proxy.prepareReload(what.config), before }
        } catch (error) {
          this.#config.newest = before.newest
          throw error
        }
        return undefined
      }
      case 'commit':
        return this.#finishReload(({ reload }) => reload.commit())
      case 'abort':
        return this.#finishReload(({ reload, before }) => {
          this.#config.newest = before.newest
          reload.abort()
        })
    }
  }

  /** One that cannot start has said so. */
  #whenRunning(then: (proxy: ServingProxy) => void): void {
    this.#running.promise.then(then, () => undefined)
  }

  async #finishReload(finish: (prepared: Prepared) => void | Promise<void>): Promise<void> {
    const prepared = this.#prepared
    this.#prepared = undefined
    if (prepared) await finish(prepared)
  }

  #serve(): Promise<ServingProxy> {
    const { number, version, isTraced, host, port } = this.#start
    const log = openProxyLog(this.#start, this.#start.config).child({ worker: number })
    return startServing({
      config: this.#config,
      loadAgain: () => this.#config.newest,
      version,
      log,
      host,
      port,
      fleet: this.#fleet(),
      ...(isTraced ? { trace: (line: string) => void process.stderr.write(`${line}\n`) } : {}),
    })
  }

  #fleet(): Fleet {
    const link = this.#link
    const { number, count, keySecret, saltSecret } = this.#start
    return {
      number,
      count,
      keySecret,
      saltSecret,
      openListeners: (accept) => this.#openListeners(accept),
      cancel: (worker, processId, key) => link.ask({ kind: 'cancel', worker, processId, key }),
      look: async () => {
        const { snapshots, workers } = await link.ask<FleetLook>({ kind: 'look' })
        return mergeViews(snapshots, workers)
      },
      control: controlThrough(link, async () => (await this.#running.promise).control),
      schemaChanged: (database) => link.tell({ kind: 'schema', database }),
    }
  }

  async #openListeners(accept: (socket: ByteSocket) => void): Promise<Listener[]> {
    this.#accept = accept
    const { host, port, listens, config } = this.#start
    if (!listens) return [{ host, port, close: async () => undefined }]
    const backlog = config.general.listenBacklog
    const shared = { host, port, backlog, ...keepAliveOf(config.tcp), reusePort: true }
    return [await listen(shared, accept)]
  }

  #take(n: number, handle: AcceptedHandle | undefined): void {
    const isTaken = handle !== undefined && this.#accept !== undefined && !this.#isStopping
    this.#link.tell({ kind: 'taken', n, isTaken })
    if (isTaken) this.#accept?.(adoptHandle(handle, () => this.#noteLeft()))
    else if (handle) closeHandle(handle)
  }

  #noteLeft(): void {
    if (this.#left++ > 0) return
    systemClock.after(LEFT_MS, () => {
      this.#link.tell({ kind: 'left', count: this.#left })
      this.#left = 0
    })
  }
}

/** Carries out a command in this worker alone. @throws ADMIN_NO_SUCH */
async function obey(proxy: ServingProxy, order: Order): Promise<void> {
  const { control } = proxy
  switch (order.verb) {
    case 'pause':
    case 'resume':
    case 'reconnect':
      return control[order.verb](order.pools)
    case 'kill':
      return control.kill(order.database)
    case 'wait_close':
      return control.waitClose(order.database)
    case 'maintenance':
      return control.maintenance(order.isOn, order.database)
    case 'disable':
    case 'enable':
      return control[order.verb](order.database)
    case 'suspend':
      return control.suspend()
    case 'reset':
      return control.reset(order.what)
    case 'kill_client':
      return control.killClient(order.id)
    case 'healthcheck':
    case 'ban':
    case 'unban': {
      const { place } = order
      if (!place) return control[order.verb](undefined)
      const own = proxy.view
        .pools()
        .find(
          (pool) =>
            pool.user === place.user &&
            pool.database === place.database &&
            pool.shard === place.shard &&
            pool.address === place.address &&
            pool.port === place.port,
        )
      if (own) await control[order.verb](own.poolId)
    }
  }
}

/** The console's commands, carried out by the primary in every worker. */
function controlThrough(
  link: Link<ToPrimary, ToWorker>,
  own: () => Promise<ProxyControl>,
): ProxyControl {
  const ask = (order: ConsoleOrder) => link.ask<void>({ kind: 'order', order })
  return {
    pause: (pools) => ask({ verb: 'pause', pools }),
    resume: (pools) => ask({ verb: 'resume', pools }),
    reconnect: (pools) => ask({ verb: 'reconnect', pools }),
    reload: () => ask({ verb: 'reload' }),
    forceReload: () => ask({ verb: 'force_reload' }),
    set: (name, value) => ask({ verb: 'set', name, value }),
    suspend: () => ask({ verb: 'suspend' }),
    maintenance: (isOn, database) => ask({ verb: 'maintenance', isOn, database }),
    waitClose: (database) => ask({ verb: 'wait_close', database }),
    disable: (database) => ask({ verb: 'disable', database }),
    enable: (database) => ask({ verb: 'enable', database }),
    healthcheck: (poolId) => ask({ verb: 'healthcheck', poolId }),
    reset: (what) => ask({ verb: 'reset', what }),
    // What one process can say for all.
    probe: async (url) => (await own()).probe(url),
    peers: async () => (await own()).peers(),
    shutdown: () => void ask({ verb: 'shutdown' }).catch(() => undefined),
    kill: (database) => ask({ verb: 'kill', database }),
    killClient: (id) => ask({ verb: 'kill_client', id }),
    ban: (poolId) => ask({ verb: 'ban', poolId }),
    unban: (poolId) => ask({ verb: 'unban', poolId }),
    restartWorkers: () => ask({ verb: 'restart' }),
  }
}
