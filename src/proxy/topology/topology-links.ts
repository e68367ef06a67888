/** The lines of a process to the first shards of its databases, by where these are: names may change, places do not. */
import type { Clock } from '../../base/clock.js'
import type { LoadedConfig } from '../../config/loaded-config.js'
import type { OpenServer, PoolDefinition } from '../../pool/definition.js'
import type { ServerConnection } from '../../server/server-connection.js'
import type { TopologyRow } from '../../topology/epoch.js'
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

/** Where the first shard of a database is. */
export function placeOfFirst(config: LoadedConfig, name: string): string {
  const hosts = config.databases.find((one) => one.name === name)?.shards[0]?.hosts ?? []
  const written = hosts.filter((host) => !host.reshardingOnly && host.role !== 'replica')
  return JSON.stringify(written.map((host) => [host.host, host.port, host.database]))
}

interface PlacedLink {
  readonly link: TopologyLink
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
    const place = placeOfFirst(config, name)
    const known = this.#links.get(place)
    if (known) {
      known.config = config
      known.name = name
      return known.link
    }
    const entry: PlacedLink = {
      config,
      name,
      link: new TopologyLink(() => this.#open(entry.config, entry.name), this.#options.mark),
    }
    this.#links.set(place, entry)
    return entry.link
  }

  /** The row of one database; undefined when it has none, or its server does not answer in time. */
  async read(config: LoadedConfig, name: string): Promise<TopologyRow | undefined> {
    const link = this.of(config, name)
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
    const places = new Set(config.databases.map(({ name }) => placeOfFirst(config, name)))
    for (const [place, { link }] of this.#links) {
      if (places.has(place)) continue
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

  async #open(config: LoadedConfig, name: string): Promise<ServerConnection> {
    const definition =
      definePools(config).find(({ database }) => database === name) ?? this.#options.guests(name)
    const hosts = definition?.shards[0]?.hosts.filter(({ role }) => role !== 'replica') ?? []
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
