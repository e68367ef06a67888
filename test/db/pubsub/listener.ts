/** A client that listens, and what it has heard. */
import pg from 'pg'
import type { Served } from '../../support/serve.js'
import { waitFor } from '../../support/wait-for.js'

export interface Heard {
  readonly channel: string
  readonly payload: string
  readonly processId: number
}

export class Listener {
  readonly client: pg.Client
  readonly heard: Heard[] = []
  /** Set when the connection has ended, and why. */
  ended: (Error & { code?: string }) | undefined

  constructor(client: pg.Client) {
    this.client = client
    client.on('notification', ({ channel, payload = '', processId }) => {
      this.heard.push({ channel, payload, processId })
    })
    client.on('error', (error: Error & { code?: string }) => {
      this.ended ??= error
    })
  }

  static async at(served: Pick<Served, 'connect'>, ...statements: string[]): Promise<Listener> {
    const listener = new Listener(await served.connect())
    for (const statement of statements) await listener.client.query(statement)
    return listener
  }

  static async atUrl(url: string, ...statements: string[]): Promise<Listener> {
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    return Listener.at({ connect: async () => client }, ...statements)
  }

  get payloads(): string[] {
    return this.heard.map(({ payload }) => payload)
  }

  /** Waits for the payload, and gives all that came up to now. */
  async until(payload: string): Promise<string[]> {
    await waitFor(() => this.payloads.includes(payload), { what: `notification "${payload}"` })
    return this.payloads
  }

  async query(sql: string): Promise<pg.QueryResult> {
    return this.client.query(sql)
  }

  async end(): Promise<void> {
    await this.client.end().catch(() => undefined)
  }
}
