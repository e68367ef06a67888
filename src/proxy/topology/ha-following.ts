/** Follows HA groups: looks at ha_config on a beat, and puts a configuration in force in which each group's shard is its current node. */
import type { Clock, Timer } from '../../base/clock.js'
import type { Log } from '../../base/log.js'
import type { LoadedConfig } from '../../config/loaded-config.js'
import { toEngineError } from '../../errors/engine-error.js'
import { readGroups } from '../../ha/ha-store.js'
import { openLinks } from '../../ha/links.js'
import { type HaRoutes, withHaRoutes } from './ha-routes.js'

/** A switch is seen so long after it at the latest, whatever the heartbeats are. */
const LOOK_MS = 1000

export interface HaFollowingOptions {
  readonly clock: Clock
  readonly log: Log
  /** In force; asked only after the start. */
  readonly config: () => LoadedConfig
  /** Puts another configuration in force. */
  readonly follow: (config: LoadedConfig) => Promise<void>
}

export class HaFollowing {
  readonly #options: HaFollowingOptions
  #routes: HaRoutes = new Map()
  #timer: Timer | undefined
  #isStarted = false
  #isStopped = false
  /** The state database cannot be read: said once. */
  #isBlind = false

  constructor(options: HaFollowingOptions) {
    this.#options = options
  }

  /** A configuration that was just read, as the groups say it; as the file says it when the state cannot be read yet. */
  async asGroupsSay(config: LoadedConfig): Promise<LoadedConfig> {
    if (!follows(config)) return config
    await this.#look(config)
    if (this.#isStarted) this.#arm()
    return withHaRoutes(config, this.#routes)
  }

  start(): void {
    this.#isStarted = true
    if (follows(this.#options.config())) this.#arm()
  }

  /** The next beat. Where no group is followed there is none, until a configuration with one is read. */
  #arm(): void {
    if (this.#isStopped || this.#timer !== undefined) return
    this.#timer = this.#options.clock.after(LOOK_MS, () => void this.#beat())
  }

  stop(): void {
    this.#isStopped = true
    this.#timer?.cancel()
  }

  async #beat(): Promise<void> {
    const config = this.#options.config()
    if (follows(config)) {
      const before = this.#routes
      await this.#look(config)
      const changed = [...this.#routes].filter(([id, route]) => before.get(id) !== route)
      if (changed.length > 0 && !this.#isStopped) await this.#follow(changed, before)
    }
    this.#timer = undefined
    if (follows(this.#options.config())) this.#arm()
  }

  /** What could not be put in force is tried again at the next beat. */
  async #follow(changed: readonly (readonly [number, string])[], before: HaRoutes): Promise<void> {
    const { log, follow } = this.#options
    const config = this.#options.config()
    try {
      await follow(withHaRoutes(config, this.#routes))
      for (const [id, route] of changed)
        log.info('an HA group was switched', {
          group: config.ha?.groups.find((one) => one.id === id)?.name,
          route,
        })
    } catch (error) {
      this.#routes = before
      log.warn('the switch of an HA group could not be followed', {
        reason: toEngineError(error).message,
      })
    }
  }

  async #look({ ha }: LoadedConfig): Promise<void> {
    if (ha === undefined) return
    const { clock, log } = this.#options
    try {
      const link = await openLinks(ha, clock)(undefined)
      try {
        this.#routes = new Map((await readGroups(link)).map(({ id, current }) => [id, current]))
      } finally {
        await link.close()
      }
      this.#isBlind = false
    } catch (error) {
      if (!this.#isBlind)
        log.warn('the state of the HA groups could not be read; routes stay as they are', {
          reason: toEngineError(error).message,
        })
      this.#isBlind = true
    }
  }
}

const follows = (config: LoadedConfig): boolean =>
  config.ha?.groups.some(({ database }) => database !== undefined) ?? false
