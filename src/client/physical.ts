/** One physical connection of a balanced pool or connection: a pg client, its host, and what its server says of transactions. */
import type pg from 'pg'
import { connectPg } from '../pg/connect.js'
import type { Balance } from './options.js'

/** Status of a session, from ReadyForQuery: idle, in a transaction, in a failed one. */
export type TransactionStatus = 'I' | 'T' | 'E'

interface WireEvents {
  readonly connection: {
    on(event: 'readyForQuery', hear: (message: { status: TransactionStatus }) => void): void
    once(event: 'end', hear: () => void): void
  }
}

export class Physical {
  readonly client: pg.Client
  readonly index: number
  status: TransactionStatus = 'I'
  isGone = false
  /** Check-outs. */
  uses = 0
  readonly openedAtMs: number
  readonly #balance: Balance
  #askedAtMs: number | undefined

  private constructor(client: pg.Client, index: number, balance: Balance) {
    this.client = client
    this.index = index
    this.#balance = balance
    this.openedAtMs = balance.clock.monotonicMs()
    const { connection } = client as unknown as WireEvents
    connection.on('readyForQuery', ({ status }) => this.#ready(status))
    const gone = () => {
      if (this.isGone) return
      this.isGone = true
      balance.book.closed(index)
    }
    connection.once('end', gone)
    client.once('end', gone)
  }

  /** Connects to the host of that index. */
  static async open(balance: Balance, index: number): Promise<Physical> {
    const { book, clock, applicationName } = balance
    const from = clock.monotonicMs()
    const client = await connectPg(
      book.conninfo(index),
      applicationName === undefined ? {} : { applicationName },
    )
    book.opened(index, clock.monotonicMs() - from)
    return new Physical(client, index, balance)
  }

  /** The response time of its host counts from now to the next time that the session is idle. */
  asks(): void {
    this.#askedAtMs ??= this.#balance.clock.monotonicMs()
  }

  #ready(status: TransactionStatus): void {
    this.status = status
    if (this.#askedAtMs === undefined || status !== 'I') return
    this.#balance.book.answered(this.index, this.#balance.clock.monotonicMs() - this.#askedAtMs)
    this.#askedAtMs = undefined
  }

  async end(): Promise<void> {
    await this.client.end().catch(() => undefined)
  }
}
