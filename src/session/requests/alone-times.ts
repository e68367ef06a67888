/** How long statements take on a server of their own whose class might be pipelined: only so it is known when it may. */
import type { Clock } from '../../base/clock.js'
import { noteRunAlone } from '../../executor/pipeline/class-figures.js'
import type { ClassFigures } from '../../plan/plan.js'

export class AloneTimes {
  /** Of all clients: measured now. */
  static #underWay = 0
  readonly #clock: Clock
  #watched: ClassFigures | undefined
  #sentMs = 0
  #sentBytes = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** The next request sent is of this class. */
  watch(figures: ClassFigures): void {
    this.stop()
    this.#watched = figures
  }

  /** A request goes to a server; `bytes`: what the client was sent so far. */
  sent(bytes: number): void {
    if (!this.#watched || this.#sentMs > 0) return
    this.#sentMs = this.#clock.monotonicMs()
    this.#sentBytes = bytes
    AloneTimes.#underWay++
  }

  /** A request has ended; without `stallMs` it says nothing. */
  ended(bytes: number, stallMs: number | undefined): void {
    const figures = this.#watched
    if (!figures) return
    const sentMs = this.#sentMs
    const besides = this.stop()
    if (stallMs === undefined || sentMs === 0) return
    // those that ran at the same time shared the machine: behind one another they would have taken turns
    const elapsedMs = (this.#clock.monotonicMs() - sentMs) / besides
    noteRunAlone(figures, elapsedMs, bytes - this.#sentBytes, stallMs)
  }

  /** How many were measured at the same time, this one too. */
  stop(): number {
    const count = AloneTimes.#underWay
    if (this.#sentMs > 0) AloneTimes.#underWay--
    this.#watched = undefined
    this.#sentMs = 0
    return Math.max(1, count)
  }
}
