/** The lines of a process to the first shards of its databases, by where these are: names may change, places do not. */
import type { Clock } from '../../base/clock.js'
import type { LoadedConfig } from '../../config/loaded-config.js'
import type { OpenServer, PoolDefinition } from '../../pool/definition.js'
import type { ServerConnection } from '../../server/server-connection.js'
import { isOwnRow, type TopologyRow } from '../../topology/epoch.js'
import type { Host } from '../../topology/topology.js'
import { definePools } from '../databases/define-pools.js'
import { firstThatAnswers } from '../databases/first-that-answers.js'
import { type ProxyMark, TopologyLink } from './topology-link.js'

const OPEN_MS = 3000
/** A server that does not answer must not hold up a start, a reload or a RESUME. */
const READ_MS = 5000

interface TopologyLinksOptions {
  readonly openServer: OpenServer
  readonly clock: Clock
  readonly mark: () => ProxyMark
  /** Of users that no file names. */
  readonly guests: (database: string) => PoolDefinition | undefined
}

/** Where the shards of a database are: two may have the first one in common. */
export function placesOf(config: LoadedConfig, name: string): string {
  const shards = config.databases.find((one) => one.name === name)?.shards ?? []
  return JSON.stringify(shards.map(({ hosts }) => writtenPlaces(hosts)))
}

/** Where one shard of a database is. */
export function placeOfShard(config: LoadedConfig, name: string, shard: number): string {
  const database = config.databases.find((one) => one.name === name)
  return JSON.stringify(writtenPlaces(database?.shards[shard]?.hosts ?? []))
}

const writtenPlaces = (hosts: readonly Host[]): readonly unknown[] =>
  hosts
    .filter((host) => !host.reshardingOnly && host.role !== 'replica')
    .map((host) => [host.host, host.port, host.database])

interface PlacedLink {
  readonly link: TopologyLink
  readonly shard: number
  /** Who knows it last, and how it calls the database: for the next opening. */
  config: LoadedConfig
  name: string
}

export class TopologyLinks {
  readonly #options: TopologyLinksOptions
  readonly #links = new Map<string, PlacedLink>()

  constructor(options: TopologyLinksOptions) {
    this.#options = options
  }

  /** The line to the first shard of a database as `config` has it. */
  of(config: LoadedConfig, name: string): TopologyLink {
    return this.#ofShard(config, name, 0)
  }

  #ofShard(config: LoadedConfig, name: string, shard: number): TopologyLink {
    const place = `${shard} ${placesOf(config, name)}`
    const known = this.#links.get(place)
    if (known) {
      known.config = config
      known.name = name
      return known.link
    }
    const entry: PlacedLink = {
      ...{ config, name, shard },
      link: new TopologyLink(() => this.#open(entry), this.#options.mark),
    }
    this.#links.set(place, entry)
    return entry.link
  }

  /** The row of one database; undefined when it has none, or its server does not answer in time. */
  async read(config: LoadedConfig, name: string): Promise<TopologyRow | undefined> {
    const row = await this.#readFrom(this.of(config, name))
    if (!row?.isShared) return row
    // The first shard speaks for the side that has it alone; shards that a move adds are the last.
    const { length = 1 } = config.databases.find((one) => one.name === name)?.shards ?? []
    for (let shard = length - 1; shard > 0; shard--) {
      const other = await this.#readFrom(this.#ofShard(config, name, shard)).catch(() => undefined)
      if (other && isOwnRow(row, other)) return other
    }
    return row
  }

  async #readFrom(link: TopologyLink): Promise<TopologyRow | undefined> {
    const over = new AbortController()
    const late = this.#options.clock.sleep(READ_MS, over.signal).then(() => {
      if (!over.signal.aborted) link.cut()
      return undefined
    })
    try {
      return await Promise.race([link.read(), late])
    } finally {
      over.abort()
    }
  }

  /** Rows of all databases that can be asked now. */
  async readAll(config: LoadedConfig): Promise<Map<string, TopologyRow>> {
    const rows = new Map<string, TopologyRow>()
    await Promise.all(
      config.databases.map(async ({ name }) => {
        const row = await this.read(config, name).catch(() => undefined)
        if (row) rows.set(name, row)
      }),
    )
    return rows
  }

  /** Ends the lines to places that `config` does not have. */
  keepOnly(config: LoadedConfig): void {
    const places = new Set(config.databases.map(({ name }) => placesOf(config, name)))
    for (const [place, { link }] of this.#links) {
      if (places.has(place.slice(place.indexOf(' ') + 1))) continue
      this.#links.delete(place)
      void link
        .leave()
        .catch(() => undefined)
        .then(() => link.close())
    }
  }

  async close(): Promise<void> {
    const all = [...this.#links.values()]
    this.#links.clear()
    await Promise.all(
      all.map(async ({ link }) => {
        await link.leave().catch(() => undefined)
        link.close()
      }),
    )
  }

  /** Names of databases of which a first shard is where that of `name` is. */
  neighbours(config: LoadedConfig, name: string): string[] {
    const place = placeOfShard(config, name, 0)
    return config.databases
      .map((one) => one.name)
      .filter((other) => placeOfShard(config, other, 0) === place)
  }

  async #open({ config, name, shard }: PlacedLink): Promise<ServerConnection> {
    const definition =
      definePools(config).find(({ database }) => database === name) ?? this.#options.guests(name)
    const hosts = definition?.shards[shard]?.hosts.filter(({ role }) => role !== 'replica') ?? []
    return firstThatAnswers(
      name,
      hosts.map(({ target }) => target),
      async (target) => {
        const parameters = { ...target.parameters, application_name: 'pgshard topology' }
        const how = { timeoutMs: OPEN_MS }
        const server = await this.#options.openServer({ ...target, parameters }, how)
        if (server.parameters.get('in_hot_standby') !== 'on') return server
        server.close()
        throw new Error('it is a standby')
      },
    )
  }
}
