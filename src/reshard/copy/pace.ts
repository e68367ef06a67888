/** A bound on bytes a second that several readers share. It can be changed while they read. */
import type { Clock } from '../../base/clock.js'
import { type Deferred, deferred } from '../../base/deferred.js'

/** Debts below this are not slept off: timers are coarse. */
const MIN_SLEEP_MS = 5

export class Pace {
  readonly #clock: Clock
  #bytesPerSec: number
  /** When all that was taken has been paid for, on the monotonic clock. */
  #paidMs: number
  #held: Deferred<void> | undefined

  /** 0: no bound. */
  constructor(clock: Clock, bytesPerSec: number) {
    this.#clock = clock
    this.#bytesPerSec = bytesPerSec
    this.#paidMs = clock.monotonicMs()
  }

  get bytesPerSec(): number {
    return this.#bytesPerSec
  }

  set bytesPerSec(rate: number) {
    this.#bytesPerSec = rate
    this.#paidMs = this.#clock.monotonicMs()
  }

  /** Nobody takes more until `letGo`. */
  hold(): void {
    this.#held ??= deferred()
  }

  letGo(): void {
    this.#held?.resolve()
    this.#held = undefined
  }

  /** Counts bytes; a promise when the caller must wait before it takes more. */
  take(bytes: number): Promise<void> | undefined {
    if (this.#held) return this.#held.promise.then(() => this.take(bytes))
    if (this.#bytesPerSec <= 0) return undefined
    const nowMs = this.#clock.monotonicMs()
    this.#paidMs = Math.max(this.#paidMs, nowMs) + (bytes * 1000) / this.#bytesPerSec
    const waitMs = this.#paidMs - nowMs
    return waitMs < MIN_SLEEP_MS ? undefined : this.#clock.sleep(waitMs)
  }
}
