/** Times the steps of a cutover, and knows which one is under way. */
import type { Clock } from '../../base/clock.js'

export class StepTimer {
  readonly steps: { step: string; ms: number }[] = []
  current = 'preparing'
  readonly #clock: Clock

  constructor(clock: Clock) {
    this.#clock = clock
  }

  async run<T>(step: string, work: () => Promise<T>): Promise<T> {
    this.current = step
    const startedMs = this.#clock.monotonicMs()
    try {
      return await work()
    } catch (error) {
      // Others may have begun meanwhile: this is the one to name.
      this.current = step
      throw error
    } finally {
      this.steps.push({ step, ms: Math.round((this.#clock.monotonicMs() - startedMs) * 10) / 10 })
    }
  }
}
