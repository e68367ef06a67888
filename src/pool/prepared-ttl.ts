/** Prepared statements of a server are closed when they have been there for long, and made again when they are asked for (`prepared_statements_ttl`). */
import type { Clock } from '../base/clock.js'
import type { ServerConnection } from '../server/server-connection.js'
import type { PoolDefinition } from './definition.js'

interface Parts {
  readonly clock: Clock
  readonly random: () => number
}

export class PreparedTtl {
  readonly #ttlMs: number
  readonly #jitterMs: number
  readonly #parts: Parts
  /** When the statements of a server are closed. */
  readonly #due = new WeakMap<ServerConnection, number>()

  private constructor(ttlMs: number, jitterMs: number, parts: Parts) {
    this.#ttlMs = ttlMs
    this.#jitterMs = jitterMs
    this.#parts = parts
  }

  /** Undefined: they stay. */
  static of(
    { preparedTtlMs, preparedTtlJitterMs }: PoolDefinition,
    { clock, random }: Parts,
  ): PreparedTtl | undefined {
    if (preparedTtlMs === Number.POSITIVE_INFINITY) return undefined
    return new PreparedTtl(preparedTtlMs, preparedTtlJitterMs, { clock, random })
  }

  expireIdle(
    all: Iterable<{ readonly resource: ServerConnection; readonly isLent: boolean }>,
  ): void {
    for (const { resource, isLent } of all) if (!isLent) this.expire(resource)
  }

  /** The server must be idle: what it forgets is closed on it before the next request. */
  expire(server: ServerConnection): void {
    if (!server.isIdle || server.prepared.size === 0) return
    const now = this.#parts.clock.monotonicMs()
    const due = this.#due.get(server)
    if (due === undefined) return this.#setDue(server, now)
    if (now < due) return
    server.closing.push(...server.prepared.drain())
    this.#due.delete(server)
  }

  #setDue(server: ServerConnection, now: number): void {
    const jitter = (this.#parts.random() * 2 - 1) * this.#jitterMs
    this.#due.set(server, now + Math.max(0, this.#ttlMs + jitter))
  }
}
