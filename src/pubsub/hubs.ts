/** The hubs of a process: one for each database, because any login of a database may listen to any of its channels. */
import type { Clock } from '../base/clock.js'
import type { Log } from '../base/log.js'
import { engineError } from '../errors/engine-error.js'
import type { OpenServerOptions } from '../server/open-server.js'
import type { ServerConnection } from '../server/server-connection.js'
import type { ServerTarget } from '../server/server-target.js'
import { Hub } from './hub.js'

/** How a hub's connection is made, as the pools of the database make theirs. */
export interface HubConnects {
  readonly timeoutMs: number
  readonly attempts: number
  readonly attemptDelayMs: number
  /** For a primary to be known, when a promotion is under way. */
  readonly waitMs: number
  readonly answerMs: number
}

export interface HubPlace {
  /** False: all are taken; it may be asked again. */
  take(): boolean
  /** Gives it back, when it was taken. */
  leave(): void
  /** Wants it no more. */
  giveUp(): void
}

export interface HubsOptions {
  readonly clock: Clock
  readonly log: Log
  readonly openServer: (
    target: ServerTarget,
    options: OpenServerOptions,
  ) => Promise<ServerConnection>
  /** The primary of shard 0 as `user` (or, when it is gone, as another user) reaches it; undefined: not known now. */
  primary(database: string, user: string): ServerTarget | undefined
  /** A place under the limits that pools share. */
  place(database: string, user: string): HubPlace
  connects(): HubConnects
}

const LOOK_MS = 100

export class Hubs {
  readonly #options: HubsOptions
  readonly #hubs = new Map<string, Hub>()
  #isClosed = false

  constructor(options: HubsOptions) {
    this.#options = options
  }

  of(database: string): Hub {
    const known = this.#hubs.get(database)
    if (known) return known
    const { clock, log, primary, connects } = this.#options
    const hub = new Hub({
      database,
      clock,
      log,
      open: (user) => this.#open(database, user),
      isCurrent: ({ target }, user) => {
        const now = primary(database, user)
        return now === undefined || placeOf(now) === placeOf(target)
      },
      answerMs: () => connects().answerMs,
    })
    this.#hubs.set(database, hub)
    return hub
  }

  all(): Iterable<Hub> {
    return this.#hubs.values()
  }

  close(): void {
    this.#isClosed = true
    for (const hub of this.#hubs.values()) hub.close()
  }

  async #open(database: string, user: string): Promise<ServerConnection> {
    const { clock, openServer } = this.#options
    const { attempts, attemptDelayMs, timeoutMs } = this.#options.connects()
    for (let attempt = 1; ; attempt++) {
      const target = await this.#primary(database, user)
      const place = await this.#place(database, user)
      try {
        const server = await withoutTimeouts(await openServer(asListener(target), { timeoutMs }))
        server.onClose = () => place.leave()
        return server
      } catch (error) {
        place.leave()
        if (attempt >= attempts || this.#isClosed) throw error
        await clock.sleep(attemptDelayMs)
      }
    }
  }

  /** @throws PUBSUB_NO_ROOM */
  async #place(database: string, user: string): Promise<HubPlace> {
    const place = this.#options.place(database, user)
    const taken = await this.#until(() => (place.take() ? place : undefined))
    if (taken) return taken
    place.giveUp()
    const limit = this.#options.connects().waitMs
    throw engineError('PUBSUB_NO_ROOM', { database, limit })
  }

  /** @throws PUBSUB_NO_PRIMARY */
  async #primary(database: string, user: string): Promise<ServerTarget> {
    const target = await this.#until(() => this.#options.primary(database, user))
    if (!target) throw engineError('PUBSUB_NO_PRIMARY', { database })
    return target
  }

  /** What `look` finds, looked for again and again; undefined when it found nothing for as long as clients wait. */
  async #until<T>(look: () => T | undefined): Promise<T | undefined> {
    const { clock, connects } = this.#options
    const untilMs = clock.monotonicMs() + connects().waitMs
    for (;;) {
      const found = look()
      if (found !== undefined || this.#isClosed || clock.monotonicMs() >= untilMs) return found
      await clock.sleep(LOOK_MS)
    }
  }
}

const placeOf = ({ host, port, database }: ServerTarget): string =>
  JSON.stringify([host, port, database])

/** The same login with parameters of its own: payloads come as UTF-8. */
const asListener = (target: ServerTarget): ServerTarget => ({
  ...target,
  parameters: { application_name: 'pgshard listener', client_encoding: 'UTF8' },
})

const IDLE_TIMEOUT_SINCE = 140_000

/** What ends idle sessions must not end this one, which is idle by its nature. */
async function withoutTimeouts(server: ServerConnection): Promise<ServerConnection> {
  if (server.serverVersion >= IDLE_TIMEOUT_SINCE) await server.query('SET idle_session_timeout = 0')
  return server
}
