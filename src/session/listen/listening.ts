/**
 * The channels of one client in a transaction pool: joined at the hub before its LISTEN runs, heard from its COMMIT on,
 * and told between requests, as PostgreSQL tells them: never inside an answer, never inside a transaction.
 */
import type { Clock, Timer } from '../../base/clock.js'
import { type EngineError, engineError } from '../../errors/engine-error.js'
import type { Hub, Subscriber } from '../../pubsub/hub.js'
import { type Notification, withProcessId } from '../../pubsub/notification.js'
import type { ClientOutput } from '../client-output.js'
import type { SentNotice, Transaction } from '../state/transaction.js'

/** A client's own notification is waited for this long before its COMMIT is answered, as PostgreSQL tells it before. */
const OWN_WAIT_MS = 1000

/** Who listens for clients of transaction pools. */
export interface ListenSource {
  readonly hub: Hub
  /** Notifications that may wait for one client (`pub_sub_channel_size`). */
  readonly limit: number
}

/** The session around it. */
export interface ListeningHost {
  readonly environment: { readonly clock: Clock }
  readonly output: ClientOutput
  readonly transaction: Transaction
  readonly told: ReadonlyMap<string, string>
  /** Undefined: no request runs. */
  readonly running: unknown
  readonly identity: { readonly user: string; processId(): number }
  readonly hooks: { mustEnd(error: EngineError, now: boolean): void }
}

export class Listening implements Subscriber {
  readonly #hub: Hub
  readonly #limit: number
  readonly #host: ListeningHost
  readonly #joined = new Set<string>()
  /** Channels that the running request names. */
  #asked: readonly string[] = []
  #queue: Notification[] = []
  #isFull = false
  #isOver = false
  /** A request waits for the hub to hear its channels. */
  isHearing = false
  #own: { wanted: SentNotice[]; then: () => void; timer: Timer } | undefined
  /** Notifications of this very client. */
  readonly #mine = new WeakSet<Notification>()

  constructor(source: ListenSource, host: ListeningHost) {
    this.#hub = source.hub
    this.#limit = source.limit
    this.#host = host
  }

  get user(): string {
    return this.#host.identity.user
  }

  /** The client has gone. */
  get isOver(): boolean {
    return this.#isOver
  }

  /** Joins the channels that a request names; undefined: it may run at once. @throws (rejects with) why it may not */
  hear(channels: readonly string[]): Promise<void> | undefined {
    this.#asked = channels
    for (const channel of channels) this.#joined.add(channel)
    const joined = this.#hub.join(channels, this)
    // what has come until then was committed before the LISTEN
    return joined?.then(() => this.requestStarts())
  }

  /** What came for a channel whose LISTEN is not committed came before this request's COMMIT, and is not for the client. */
  requestStarts(): void {
    if (this.#queue.length === 0) return
    const { listening } = this.#host.transaction
    this.#queue = this.#queue.filter(({ channel }) => listening.has(channel))
  }

  /**
   * A request has ended outside a transaction and its ReadyForQuery comes next: hands over what waits. True: not yet,
   * the client's own notification is still on its way, and `then` is called when it is there.
   */
  holdsReady(then: () => void): boolean {
    const { transaction } = this.#host
    transaction.keepImplicit()
    this.#asked = []
    const own = transaction
      .takeSent()
      .filter(({ channel }) => transaction.listening.has(channel) && this.#joined.has(channel))
    const missing = own.filter((notice) => !this.#finds(notice))
    if (missing.length > 0) {
      const timer = this.#host.environment.clock.after(OWN_WAIT_MS, () => this.#ownCame())
      this.#own = { wanted: missing, then, timer }
      return true
    }
    this.tell()
    return false
  }

  /** Hands over what waits, before a ReadyForQuery outside a transaction. */
  tell(): void {
    this.#deliver()
    this.#leaveOld()
  }

  notified(notification: Notification): boolean {
    if (this.#isOver) return true
    this.#queue.push(notification)
    const own = this.#own
    if (own) own.wanted = own.wanted.filter((notice) => !this.#isMine(notice, notification))
    if (this.#queue.length <= this.#limit) return true
    this.#host.hooks.mustEnd(engineError('PUBSUB_BEHIND', { limit: this.#queue.length }), true)
    return false
  }

  settled(): void {
    if (this.#own?.wanted.length === 0) return this.#ownCame()
    const { running, transaction } = this.#host
    if (this.#isFull || this.#isOver || running !== undefined || transaction.isExplicit) return
    this.#deliver()
    this.#flush()
  }

  lost(error: EngineError): void {
    const { transaction } = this.#host
    this.#joined.clear()
    const hasPending = [...this.#asked, ...transaction.channels].some(
      (channel) => !transaction.listening.has(channel),
    )
    if (transaction.listening.size === 0 && !hasPending) return
    // a transaction whose LISTEN cannot be kept must not commit; one that only listens already may
    this.#host.hooks.mustEnd(error, hasPending)
  }

  /** The client has read what was written. */
  drained(): void {
    if (!this.#isFull) return
    this.#isFull = false
    this.settled()
  }

  /** DISCARD ALL. */
  discarded(): void {
    this.#queue = []
    this.#leaveOld()
  }

  close(): void {
    this.#isOver = true
    this.#own?.timer.cancel()
    this.#own = undefined
    this.#queue = []
    for (const channel of this.#joined) this.#hub.leave(channel, this)
    this.#joined.clear()
  }

  #finds(notice: SentNotice): boolean {
    return this.#queue.some((notification) => this.#isMine(notice, notification))
  }

  #isMine(notice: SentNotice, notification: Notification): boolean {
    const isMine =
      notification.processId === notice.processId &&
      notification.channel === notice.channel &&
      notification.payload === notice.payload
    if (isMine) this.#mine.add(notification)
    return isMine
  }

  #ownCame(): void {
    const own = this.#own
    this.#own = undefined
    own?.timer.cancel()
    own?.then()
  }

  #deliver(): void {
    if (this.#queue.length === 0) return
    const queue = this.#queue
    this.#queue = []
    const { listening } = this.#host.transaction
    for (const notification of queue) {
      if (!listening.has(notification.channel)) continue
      const frame = this.#frameOf(notification)
      if (!frame) return
      this.#host.output.append(frame)
    }
  }

  #flush(): void {
    if (!this.#isOver && !this.#host.output.flush()) this.#isFull = true
  }

  /** In the client's encoding; undefined when there is no such text in it, and the client ends. */
  #frameOf(notification: Notification): Buffer | undefined {
    const { channel, isAscii } = notification
    const encoding = this.#host.told.get('client_encoding') ?? 'UTF8'
    if (!isAscii && encoding !== 'UTF8' && encoding !== 'SQL_ASCII') {
      this.#host.hooks.mustEnd(engineError('PUBSUB_ENCODING', { channel, encoding }), true)
      return undefined
    }
    return this.#mine.has(notification)
      ? withProcessId(notification, this.#host.identity.processId())
      : notification.frame
  }

  /** Leaves the channels that are listened to no more, or whose LISTEN was rolled back. */
  #leaveOld(): void {
    if (this.#joined.size === this.#host.transaction.listening.size) return
    for (const channel of this.#joined) {
      if (this.#host.transaction.listening.has(channel)) continue
      this.#joined.delete(channel)
      this.#hub.leave(channel, this)
    }
  }
}
