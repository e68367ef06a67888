/** A clock that stands still until a test moves it. */
import type { Clock, Timer } from '../../src/base/clock.js'

export class FakeClock implements Clock {
  #nowMs = 1_000_000
  #timers: { atMs: number; run: () => void }[] = []

  nowMs(): number {
    return this.#nowMs
  }

  monotonicMs(): number {
    return this.#nowMs
  }

  after(delayMs: number, run: () => void): Timer {
    const timer = { atMs: this.#nowMs + delayMs, run }
    this.#timers.push(timer)
    return {
      cancel: () => {
        this.#timers = this.#timers.filter((other) => other !== timer)
      },
    }
  }

  sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        timer.cancel()
        signal?.removeEventListener('abort', end)
        resolve()
      }
      const timer = this.after(delayMs, end)
      signal?.addEventListener('abort', end)
    })
  }

  get pendingTimers(): number {
    return this.#timers.length
  }

  /** Time passes unseen, as when the machine sleeps: what was due meanwhile runs at the next `advance`. */
  jump(byMs: number): void {
    this.#nowMs += byMs
  }

  /** Moves time, runs what is due in order, and lets promises settle after each. */
  async advance(byMs: number): Promise<void> {
    const untilMs = this.#nowMs + byMs
    for (;;) {
      const next = this.#timers
        .filter((timer) => timer.atMs <= untilMs)
        .sort((a, b) => a.atMs - b.atMs)[0]
      if (!next) break
      this.#timers = this.#timers.filter((timer) => timer !== next)
      this.#nowMs = Math.max(this.#nowMs, next.atMs)
      next.run()
      await settled()
    }
    this.#nowMs = untilMs
    await settled()
  }
}

/** Lets all promise reactions that are ready run. */
export async function settled(): Promise<void> {
  for (let i = 0; i < 10; i++) await Promise.resolve()
}
