/**
 * `auth_query`: what a server keeps of a user's password, asked by a configured user on a connection of its own. Never on
 * a pooled one: settings that a client left there, such as a search_path, would decide what the query reads.
 */
import { type Clock, systemClock } from '../../base/clock.js'
import type { Log } from '../../base/log.js'
import { OneAtATime } from '../../base/one-at-a-time.js'
import type { User } from '../../config/loaded-config.js'
import { engineError, toEngineError } from '../../errors/engine-error.js'
import type { OpenServer } from '../../pool/definition.js'
import { type Pools, userKeyOf } from '../../pool/pool-map.js'
import { queryParameters } from '../../server/query-parameters.js'
import type { ServerConnection } from '../../server/server-connection.js'
import { firstThatAnswers } from '../databases/first-that-answers.js'
import type { InForce } from '../in-force.js'

/** For one look-up. */
const LIMIT_MS = 5000
/** Names kept, known and unknown; who tries many names makes room for them among themselves. */
const CACHE_LIMIT = 10_000

interface Found {
  readonly secrets: Promise<readonly string[]>
  readonly sinceMs: number
}

export interface AuthQueryParts {
  readonly pools: Pools
  readonly openServer: OpenServer
  readonly clock: Clock
  readonly log: Log
  inForce(): InForce
}

export class AuthQueries {
  readonly #parts: AuthQueryParts
  readonly #found = new Map<string, Found>()
  /** One connection and one question at a time for each database. */
  readonly #lines = new Map<string, AuthLine>()

  constructor(parts: AuthQueryParts) {
    this.#parts = parts
  }

  /** Whether a user of the database has a query. */
  serves(database: string): boolean {
    return this.#asker(database) !== undefined
  }

  /** Verifier, md5 hash or password of a user; empty when the query knows none. @throws AUTH_QUERY_FAILED */
  async secretsOf(user: string, database: string): Promise<readonly string[]> {
    const { clock, log } = this.#parts
    const key = userKeyOf(user, database)
    const known = this.#found.get(key)
    const nowMs = clock.monotonicMs()
    const ttlMs = this.#parts.inForce().config.general.authQueryTtlMs
    if (known && nowMs - known.sinceMs < ttlMs) return await known.secrets
    const secrets = this.#ask(user, database)
    if (this.#found.size >= CACHE_LIMIT) {
      this.#found.delete(this.#found.keys().next().value as string)
    }
    this.#found.delete(key)
    this.#found.set(key, { secrets, sinceMs: nowMs })
    try {
      return await secrets
    } catch (error) {
      this.#found.delete(key)
      const { message, hint } = toEngineError(error)
      log.warn('auth_query failed', { database, reason: message, hint })
      // Strangers need not hear what is wrong between us and the servers.
      throw engineError('AUTH_QUERY_FAILED', { user }, { cause: error })
    }
  }

  /** A proof was wrong: the password may have changed, so the next login looks again. */
  forget(user: string, database: string): void {
    this.#found.delete(userKeyOf(user, database))
  }

  /** After RELOAD: queries and their users may be others. */
  reset(): void {
    this.#found.clear()
    for (const line of this.#lines.values()) line.close()
    this.#lines.clear()
  }

  #asker(database: string): User | undefined {
    const { users } = this.#parts.inForce().config
    return users.find(
      ({ authQuery, databases }) => authQuery !== undefined && databases.includes(database),
    )
  }

  #ask(user: string, database: string): Promise<readonly string[]> {
    const asker = this.#asker(database)
    const line = this.#lines.get(database) ?? new AuthLine(() => this.#open(database))
    this.#lines.set(database, line)
    return line.ask(asker?.authQuery ?? '', user)
  }

  async #open(database: string): Promise<ServerConnection> {
    const asker = this.#asker(database)
    const pools = asker && this.#parts.pools.shardPools(asker.name, database)
    const targets = (pools?.definition.shards[0]?.hosts ?? []).map(({ target }) => target)
    const { openServer } = this.#parts
    return firstThatAnswers(database, targets, (target) =>
      openServer(target, { timeoutMs: LIMIT_MS }),
    )
  }
}

class AuthLine {
  readonly #open: () => Promise<ServerConnection>
  #server: ServerConnection | undefined
  readonly #questions = new OneAtATime()
  #isClosed = false

  constructor(open: () => Promise<ServerConnection>) {
    this.#open = open
  }

  ask(query: string, user: string): Promise<readonly string[]> {
    return this.#questions.run(() => this.#askNow(query, user))
  }

  close(): void {
    this.#isClosed = true
    this.#server?.close()
    this.#server = undefined
  }

  async #askNow(query: string, user: string): Promise<readonly string[]> {
    const server = this.#server?.isIdle ? this.#server : await this.#open()
    this.#server = server
    const timer = systemClock.after(LIMIT_MS, () => server.destroy())
    try {
      const [result] = await queryParameters(server, query, [user])
      const rows = result?.rows ?? []
      if (rows.length > 1) {
        throw engineError('USAGE', { message: `it gave ${rows.length} rows for one user` })
      }
      const secret = rows[0]?.[1]
      return secret ? [secret] : []
    } finally {
      timer.cancel()
      if (this.#isClosed) server.close()
    }
  }
}
