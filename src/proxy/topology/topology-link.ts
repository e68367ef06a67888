/**
 * A proxy's own line to the first shard of one database: reads the epoch there, and says that it lives.
 * Kept open while the tables are there; a lost one is opened again at the next look.
 */
import type { ServerConnection } from '../../server/server-connection.js'
import { quoteLiteral } from '../../server/settings.js'
import {
  hasTopologySql,
  readTopologyRow,
  type TopologyRow,
  topologySql,
} from '../../topology/epoch.js'

/** What a proxy says of itself. */
export interface ProxyMark {
  readonly id: string
  readonly host: string
  readonly port: number
  readonly processId: number
  readonly version: string
}

export class TopologyLink {
  readonly #open: () => Promise<ServerConnection>
  readonly #mark: () => ProxyMark
  #server: ServerConnection | undefined
  #last: Promise<unknown> = Promise.resolve()
  /** The name under which this proxy has registered. */
  #registeredAs: string | undefined
  /** Why the heartbeat was refused, once. */
  refusal: string | undefined

  constructor(open: () => Promise<ServerConnection>, mark: () => ProxyMark) {
    this.#open = open
    this.#mark = mark
  }

  /** The row as it stands now; undefined when the tables are not there. Rejects when the server cannot be asked. */
  read(): Promise<TopologyRow | undefined> {
    return this.#inTurn(async () => {
      const isKnown = this.#server !== undefined && !this.#server.closed
      if (!isKnown) {
        const server = await this.#opened()
        const [found] = await server.query(hasTopologySql)
        if (found?.rows[0]?.[0] !== 't') {
          this.#drop()
          return undefined
        }
      }
      const [result] = await (await this.#opened()).query(topologySql)
      const json = result?.rows[0]?.[0]
      return json === null || json === undefined ? undefined : readTopologyRow(json)
    })
  }

  /**
   * Says that this proxy serves the database under `name`, and which epoch it follows. `neighbours`: all names under which
   * it serves from here. True when that was not known before.
   */
  beat(name: string, epoch: number, neighbours: readonly string[] = [name]): Promise<boolean> {
    return this.#inTurn(async () => {
      const { id, host, port, processId, version } = this.#mark()
      const key = quoteLiteral(`${id}:${name}`)
      const server = await this.#opened()
      // A row of the time when the database had another name would speak for a proxy that is not there.
      const keys = neighbours.map((one) => quoteLiteral(`${id}:${one}`))
      const isNew = this.#registeredAs !== name
      const others = isNew
        ? `DELETE FROM pgshard.proxy WHERE (starts_with(id, ${quoteLiteral(`${id}:`)}) AND id NOT IN (${keys.join(', ')})) OR heartbeat_at < now() - interval '1 day';`
        : ''
      try {
        await server.query(
          `SET synchronous_commit = off; ${others} INSERT INTO pgshard.proxy (id, host, port, process_id, version, database, epoch)
           VALUES (${key}, ${quoteLiteral(host)}, ${port}, ${processId}, ${quoteLiteral(version)}, ${quoteLiteral(name)}, ${epoch})
           ON CONFLICT (id) DO UPDATE SET heartbeat_at = now(), epoch = excluded.epoch, host = excluded.host, port = excluded.port`,
        )
        this.#registeredAs = name
        this.refusal = undefined
        return isNew
      } catch (error) {
        if (server.closed) throw error
        this.refusal = error instanceof Error ? error.message : String(error)
        return false
      }
    })
  }

  /** Takes the mark of a proxy away that ends. */
  leave(): Promise<void> {
    return this.#inTurn(async () => {
      const server = this.#server
      const name = this.#registeredAs
      if (!server || server.closed || name === undefined) return
      const key = quoteLiteral(`${this.#mark().id}:${name}`)
      await server.query(`DELETE FROM pgshard.proxy WHERE id = ${key}`)
      this.#registeredAs = undefined
    })
  }

  /** Ends what waits for a server that does not answer. */
  cut(): void {
    this.#server?.destroy()
    this.#server = undefined
  }

  close(): void {
    this.#drop()
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const answer = this.#last.then(work)
    this.#last = answer.catch(() => this.#drop())
    return answer
  }

  async #opened(): Promise<ServerConnection> {
    if (this.#server && !this.#server.closed) return this.#server
    this.#registeredAs = undefined
    this.#server = await this.#open()
    return this.#server
  }

  #drop(): void {
    this.#server?.close()
    this.#server = undefined
  }
}
