/**
 * LISTEN for many clients on one server connection: the union of their channels is listened to on the primary of shard 0,
 * each notification goes to every client that has joined its channel, in the order in which PostgreSQL sent them.
 * A channel is joined before the client's LISTEN commits, so nothing that commits later can be missed; when the
 * connection is lost, everyone who listened is told, because what was missed cannot be known.
 */
import type { Clock, Timer } from '../base/clock.js'
import type { Log } from '../base/log.js'
import { type EngineError, engineError, toEngineError } from '../errors/engine-error.js'
import type { ServerConnection } from '../server/server-connection.js'
import { HubConnection } from './hub-connection.js'
import type { Notification } from './notification.js'

export interface Subscriber {
  /** As whom the connection may be opened when there is none. */
  readonly user: string
  /** A notification of a channel that it has joined, in commit order; before `settled`. False: it has no room, and goes. */
  notified(notification: Notification): boolean
  /** All notifications that came together were handed over. */
  settled(): void
  /** Nothing more will come, and something may have been missed. It has left all channels. */
  lost(error: EngineError): void
}

export interface HubOptions {
  /** As clients call it. */
  readonly database: string
  readonly clock: Clock
  readonly log: Log
  /** A connection to the primary of shard 0. */
  open(user: string): Promise<ServerConnection>
  /** False: notifications come from another server now. */
  isCurrent(server: ServerConnection, user: string): boolean
  /** How long the server may take to answer. */
  answerMs(): number
}

interface Channel {
  readonly name: string
  readonly subscribers: Set<Subscriber>
  /** The server has confirmed LISTEN. */
  isHeard: boolean
  /** Monotonic; since when nobody listens. */
  emptySinceMs: number
  received: number
  dropped: number
}

/** What the console shows of a channel. */
export interface ChannelView {
  readonly channel: string
  readonly listeners: number
  readonly received: number
  /** Clients that did not read and were disconnected. */
  readonly dropped: number
}

const BEAT_MS = 1000
/** A channel that nobody listens to is kept for the next one who does. */
const CHANNEL_LINGER_MS = 10_000
const CONNECTION_LINGER_MS = 5000
const PING_MS = 30_000

export class Hub {
  readonly #options: HubOptions
  readonly #channels = new Map<string, Channel>()
  readonly #dirty = new Set<Subscriber>()
  #connection: HubConnection | undefined
  #user = ''
  #openedAtMs = 0
  #pumping: Promise<void> | undefined
  #beat: Timer | undefined
  #idleSinceMs = 0
  #pingedAtMs = 0
  #isClosed = false

  constructor(options: HubOptions) {
    this.#options = options
  }

  get database(): string {
    return this.#options.database
  }

  /** The connection, for the console; undefined while there is none. */
  get connection(): { server: ServerConnection; user: string; openedAtMs: number } | undefined {
    const server = this.#connection?.server
    return server && { server, user: this.#user, openedAtMs: this.#openedAtMs }
  }

  channels(): ChannelView[] {
    return [...this.#channels.values()].map(({ name, subscribers, received, dropped }) => ({
      channel: name,
      listeners: subscribers.size,
      received,
      dropped,
    }))
  }

  /**
   * Joins channels: when this is done, everything that was committed before it was asked for has been handed over, and
   * nothing that commits later can be missed. Undefined: it has joined them already.
   * @throws (rejects with) why the server could not be reached or refused; the channels must be left then
   */
  join(names: readonly string[], subscriber: Subscriber): Promise<void> | undefined {
    const wasHeard = this.#hears(names)
    const isNew = names.filter((name) => {
      const { subscribers } = this.#channelOf(name)
      return !subscribers.has(subscriber) && subscribers.add(subscriber)
    })
    if (!wasHeard) return this.#hear(names)
    return isNew.length > 0 ? this.#connection?.run('') : undefined
  }

  leave(name: string, subscriber: Subscriber): void {
    const channel = this.#channels.get(name)
    if (!channel?.subscribers.delete(subscriber) || channel.subscribers.size > 0) return
    channel.emptySinceMs = this.#options.clock.monotonicMs()
    if (!channel.isHeard && !this.#pumping) this.#channels.delete(name)
  }

  /** For ever; who still listens is not told. */
  close(): void {
    this.#isClosed = true
    this.#beat?.cancel()
    this.#connection?.close(engineError('SESSION_SHUTDOWN'))
    this.#connection = undefined
    this.#channels.clear()
  }

  #channelOf(name: string): Channel {
    const known = this.#channels.get(name)
    if (known) return known
    const emptySinceMs = this.#options.clock.monotonicMs()
    const channel: Channel = {
      name,
      subscribers: new Set(),
      isHeard: false,
      emptySinceMs,
      received: 0,
      dropped: 0,
    }
    this.#channels.set(name, channel)
    return channel
  }

  #hears(names: readonly string[]): boolean {
    return names.every((name) => this.#channels.get(name)?.isHeard === true)
  }

  async #hear(names: readonly string[]): Promise<void> {
    while (!this.#hears(names)) {
      if (this.#isClosed) throw engineError('SESSION_SHUTDOWN')
      // lost meanwhile, and its subscribers with it: not made again for nobody
      if (names.some((name) => !this.#channels.has(name))) {
        throw engineError('PUBSUB_NOT_HEARD', { database: this.database })
      }
      this.#pumping ??= this.#pump().finally(() => {
        this.#pumping = undefined
      })
      await this.#pumping
    }
  }

  /** Tells the server of channels until it knows all that are wanted. */
  async #pump(): Promise<void> {
    const connection = this.#connection ?? (await this.#open())
    for (;;) {
      const fresh = [...this.#channels.values()].filter((channel) => !channel.isHeard)
      if (fresh.length === 0) return
      await connection.run(fresh.map(({ name }) => `LISTEN ${quoted(name)}`).join('; '))
      for (const channel of fresh) channel.isHeard = true
    }
  }

  async #open(): Promise<HubConnection> {
    const { clock, log } = this.#options
    const [channel] = this.#channels.values()
    const [subscriber] = channel?.subscribers ?? []
    const user = subscriber?.user ?? this.#user
    const server = await this.#options.open(user)
    if (this.#isClosed) {
      server.close()
      throw engineError('SESSION_SHUTDOWN')
    }
    const connection = new HubConnection(server, {
      clock,
      answerMs: this.#options.answerMs(),
      events: {
        notified: (notification) => this.#notified(notification),
        settled: () => this.#settled(),
        lost: (reason) => this.#lost(reason),
      },
    })
    this.#connection = connection
    this.#user = user
    this.#openedAtMs = clock.monotonicMs()
    this.#pingedAtMs = this.#openedAtMs
    this.#idleSinceMs = this.#openedAtMs
    log.info('listening for clients', { database: this.database, server: server.label, user })
    this.#arm()
    return connection
  }

  #notified(notification: Notification): void {
    const channel = this.#channels.get(notification.channel)
    if (!channel) return
    channel.received++
    for (const subscriber of channel.subscribers) {
      if (!subscriber.notified(notification)) channel.dropped++
      this.#dirty.add(subscriber)
    }
  }

  #settled(): void {
    if (this.#dirty.size === 0) return
    const dirty = [...this.#dirty]
    this.#dirty.clear()
    for (const subscriber of dirty) subscriber.settled()
  }

  #lost(reason: EngineError): void {
    const { database, log } = this.#options
    this.#settled()
    this.#beat?.cancel()
    this.#connection = undefined
    const subscribers = new Set<Subscriber>()
    for (const channel of this.#channels.values())
      for (const subscriber of channel.subscribers) subscribers.add(subscriber)
    this.#channels.clear()
    log.warn('the connection that listened for clients was lost', {
      database,
      listeners: subscribers.size,
      reason: reason.message,
    })
    const error = engineError('PUBSUB_LOST', { reason: reason.message }, { cause: reason })
    for (const subscriber of subscribers) subscriber.lost(error)
  }

  #arm(): void {
    this.#beat = this.#options.clock.after(BEAT_MS, () => {
      this.#look()
      if (this.#connection) this.#arm()
    })
  }

  /** Once a beat: is this still the right server, does it answer, is anyone still there. */
  #look(): void {
    const connection = this.#connection
    if (!connection) return
    if (!this.#options.isCurrent(connection.server, this.#user)) {
      const moved = engineError('PUBSUB_MOVED', { server: connection.server.label })
      connection.close(moved)
      return this.#lost(moved)
    }
    const now = this.#options.clock.monotonicMs()
    this.#forget(connection, now)
    if (this.#channels.size > 0) this.#idleSinceMs = now
    else if (now - this.#idleSinceMs >= CONNECTION_LINGER_MS && !this.#pumping) {
      this.#connection = undefined
      return connection.close(engineError('PUBSUB_NOT_HEARD', { database: this.database }))
    }
    if (now - this.#pingedAtMs < PING_MS) return
    this.#pingedAtMs = now
    // a connection that is dead without a word says so by not answering
    connection.run('').catch(() => undefined)
  }

  /** UNLISTEN of channels that nobody wants any more. */
  #forget(connection: HubConnection, now: number): void {
    if (this.#pumping !== undefined) return
    const stale = [...this.#channels.values()].filter(
      ({ subscribers, emptySinceMs }) =>
        subscribers.size === 0 && now - emptySinceMs >= CHANNEL_LINGER_MS,
    )
    if (stale.length === 0) return
    // who joins meanwhile makes the channel anew, and its LISTEN comes behind this
    for (const { name } of stale) this.#channels.delete(name)
    connection
      .run(stale.map(({ name }) => `UNLISTEN ${quoted(name)}`).join('; '))
      .catch((error: unknown) =>
        this.#options.log.warn('channels could not be given up', {
          database: this.database,
          reason: toEngineError(error).message,
        }),
      )
  }
}

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`
