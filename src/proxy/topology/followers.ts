/** What a proxy follows beside its files: epochs of databases that are moved, and routes of HA groups. */
import type { LoadedConfig } from '../../config/loaded-config.js'
import { HaFollowing } from './ha-following.js'
import { TopologyWatch, type TopologyWatchOptions } from './topology-watch.js'

export class Followers {
  readonly topology: TopologyWatch
  readonly #groups: HaFollowing

  constructor(options: TopologyWatchOptions) {
    this.topology = new TopologyWatch(options)
    this.#groups = new HaFollowing(options)
  }

  /** A configuration that was just read, as epochs and groups say it. */
  async asTold(config: LoadedConfig): Promise<LoadedConfig> {
    return this.#groups.asGroupsSay(await this.topology.asEpochsSay(config))
  }

  /** Resolves when it is known which databases must not be served yet. */
  start(): Promise<void> {
    this.#groups.start()
    return this.topology.start()
  }

  async stop(): Promise<void> {
    this.#groups.stop()
    await this.topology.stop()
  }
}
