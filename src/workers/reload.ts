/** RELOAD of all workers: each makes everything ready that can fail; then all take the new configuration, or none. */
import type { Log } from '../base/log.js'
import { OneAtATime } from '../base/one-at-a-time.js'
import type { LoadedConfig } from '../config/loaded-config.js'
import { toEngineError } from '../errors/engine-error.js'
import { reportedReload } from '../proxy/reported-reload.js'
import { assertShareable, shareLimits } from './share-limits.js'
import type { WorkerProcess } from './worker-process.js'

export interface FleetReloadOptions {
  readonly config: LoadedConfig
  readonly count: number
  readonly loadAgain: (settings?: ReadonlyMap<string, string>) => LoadedConfig
  readonly log: Log
  readonly workers: () => readonly WorkerProcess[]
}

export class FleetReload {
  /** In force, limits not shared; a worker that starts gets it. */
  config: LoadedConfig
  readonly #options: FleetReloadOptions
  readonly #reloads = new OneAtATime()
  #settings: ReadonlyMap<string, string> = new Map()

  constructor(options: FleetReloadOptions) {
    this.#options = options
    this.config = options.config
  }

  /** One after the other: a second RELOAD reads files that may have changed since. @throws ADMIN_RELOAD_FAILED */
  run(): Promise<void> {
    return this.#reloads.run(() => this.#run(new Map()))
  }

  /** A key that stands above the files until the next RELOAD. @throws ADMIN_RELOAD_FAILED */
  set(name: string, value: string): Promise<void> {
    return this.#reloads.run(() => this.#run(new Map([...this.#settings, [name, value]])))
  }

  async #run(settings: ReadonlyMap<string, string>): Promise<void> {
    const { count } = this.#options
    const sources = { ...this.#options, loadAgain: () => this.#options.loadAgain(settings) }
    await reportedReload(sources, async (config) => {
      assertShareable(config, count)
      await this.#putInForce(config, shareLimits(config, count))
    })
    this.#settings = settings
  }

  async #putInForce(config: LoadedConfig, shared: LoadedConfig): Promise<void> {
    const workers = this.#options.workers()
    const prepared = await Promise.allSettled(
      workers.map((worker) => worker.ask({ kind: 'prepare', config: shared })),
    )
    const failure = prepared.find(
      (one) => one.status === 'rejected' && one.reason.code !== 'WORKER_GONE',
    )
    if (failure?.status === 'rejected') {
      await Promise.allSettled(workers.map((worker) => worker.ask({ kind: 'abort' })))
      throw failure.reason
    }
    this.config = config
    await Promise.allSettled(workers.map((worker) => this.#commit(worker, shared)))
    await this.#reachLate(shared, workers)
  }

  async #commit(worker: WorkerProcess, shared: LoadedConfig): Promise<void> {
    worker.config = shared
    await worker.ask({ kind: 'commit' })
  }

  /** Workers that were started with the old configuration while the others prepared. */
  async #reachLate(shared: LoadedConfig, reached: readonly WorkerProcess[]): Promise<void> {
    const late = this.#options.workers().filter((worker) => !reached.includes(worker))
    for (const worker of late) {
      if (worker.config === shared) continue
      try {
        await worker.ask({ kind: 'prepare', config: shared })
        await this.#commit(worker, shared)
      } catch (error) {
        // It cannot stay behind the others.
        this.#options.log.error('a worker did not take the new configuration and is replaced', {
          worker: worker.number,
          error: toEngineError(error).message,
        })
        worker.kill()
      }
    }
  }
}
