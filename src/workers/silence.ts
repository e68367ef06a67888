/** Workers that say nothing: one whose event loop stands still serves nobody, and its clients learn of it only when it ends. */
import type { Clock, Timer } from '../base/clock.js'

const BEAT_MS = 1000
/** A beat that comes so late was held up here (a stopped or frozen machine): nobody else is to blame for what was not heard. */
const OWN_DELAY_MS = 3 * BEAT_MS

/** What is watched. */
export interface Beating {
  /** True while an answer can be expected of it. */
  readonly mustAnswer: boolean
  /** Resolves when its event loop has turned. Called again only after that. */
  beat(): Promise<unknown>
  /** It has been silent for the time allowed. */
  silent(forMs: number): void
}

export interface SilenceOptions {
  readonly clock: Clock
  /** How long one may be silent, ms; 0: for ever. */
  readonly limitMs: number
  watched(): readonly Beating[]
}

export class SilenceWatch {
  readonly #options: SilenceOptions
  /** When the beat was sent that was not answered yet. */
  readonly #asked = new Map<Beating, number>()
  #last = 0
  #timer: Timer | undefined

  constructor(options: SilenceOptions) {
    this.#options = options
  }

  start(): void {
    if (this.#options.limitMs === 0) return
    this.#last = this.#options.clock.monotonicMs()
    this.#again()
  }

  stop(): void {
    this.#timer?.cancel()
  }

  #again(): void {
    this.#timer = this.#options.clock.after(BEAT_MS, () => this.#beat())
  }

  #beat(): void {
    const now = this.#options.clock.monotonicMs()
    const wasHeldUp = now - this.#last > OWN_DELAY_MS
    this.#last = now
    const watched = this.#options.watched()
    for (const one of this.#asked.keys()) if (!watched.includes(one)) this.#asked.delete(one)
    for (const one of watched) this.#look(one, now, wasHeldUp)
    this.#again()
  }

  #look(one: Beating, now: number, wasHeldUp: boolean): void {
    if (!one.mustAnswer) return
    const since = this.#asked.get(one)
    if (since === undefined) {
      this.#asked.set(one, now)
      const heard = () => this.#asked.delete(one)
      one.beat().then(heard, heard)
    } else if (wasHeldUp) this.#asked.set(one, now)
    else if (now - since >= this.#options.limitMs) {
      this.#asked.set(one, now)
      one.silent(now - since)
    }
  }
}
