/** The limits of time that one client has for a request, and between two. */
import type { Clock, Timer } from '../base/clock.js'
import type { DatabaseAccess } from './environment.js'

/** What happens when one has passed. */
interface TimerHooks {
  requestIsLate(limitMs: number): void
  isIdle(isInTransaction: boolean): void
}

export class RequestTimers {
  /** There are none but those of open transactions. */
  readonly areOff: boolean
  readonly #clock: Clock
  readonly #limits: DatabaseAccess['limits']
  readonly #hooks: TimerHooks
  #idle: Timer | undefined
  #query: Timer | undefined

  constructor(clock: Clock, limits: DatabaseAccess['limits'], hooks: TimerHooks) {
    this.#clock = clock
    this.#limits = limits
    this.#hooks = hooks
    const { queryTimeoutMs, clientIdleTimeoutMs } = limits
    this.areOff = !Number.isFinite(queryTimeoutMs) && !Number.isFinite(clientIdleTimeoutMs)
  }

  requestStarts(): void {
    this.#idle?.cancel()
    const limitMs = this.#limits.queryTimeoutMs
    if (!Number.isFinite(limitMs)) return
    this.#query = this.#clock.after(limitMs, () => this.#hooks.requestIsLate(limitMs))
  }

  requestEnded(): void {
    this.#query?.cancel()
  }

  /** The client has nothing to wait for. */
  rests(isInTransaction: boolean): void {
    this.#idle?.cancel()
    const { clientIdleInTransactionTimeoutMs, clientIdleTimeoutMs } = this.#limits
    const limitMs = isInTransaction ? clientIdleInTransactionTimeoutMs : clientIdleTimeoutMs
    if (!Number.isFinite(limitMs)) return
    this.#idle = this.#clock.after(limitMs, () => this.#hooks.isIdle(isInTransaction))
  }

  stop(): void {
    this.#idle?.cancel()
    this.#query?.cancel()
  }
}
