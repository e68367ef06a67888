/** Unused connections of a balanced pool, by host; the one used last is lent first, so that the others can time out. */
import { systemClock, type Timer } from '../base/clock.js'
import type { Physical } from './physical.js'

interface Idle {
  readonly physical: Physical
  readonly timer: Timer | undefined
}

export class IdleConnections {
  readonly #timeoutMs: number
  readonly #expired: (physical: Physical) => void
  /** Oldest first. */
  #idle: Idle[] = []

  /** `timeoutMs` 0: none expires. */
  constructor(timeoutMs: number, expired: (physical: Physical) => void) {
    this.#timeoutMs = timeoutMs
    this.#expired = expired
  }

  get count(): number {
    return this.#idle.length
  }

  add(physical: Physical): void {
    const expire = () => {
      if (this.forget(physical)) this.#expired(physical)
    }
    const timer = this.#timeoutMs > 0 ? systemClock.after(this.#timeoutMs, expire) : undefined
    this.#idle.push({ physical, timer })
  }

  take(index: number): Physical | undefined {
    return this.#takeAt(this.#idle.findLastIndex(({ physical }) => physical.index === index))
  }

  takeOldest(): Physical | undefined {
    return this.#takeAt(this.#idle.length > 0 ? 0 : -1)
  }

  /** Of one host, or of all. */
  takeAll(index?: number): Physical[] {
    const taken = this.#idle.filter(
      ({ physical }) => index === undefined || physical.index === index,
    )
    for (const { physical } of taken) this.forget(physical)
    return taken.map(({ physical }) => physical)
  }

  /** True: it was here. */
  forget(physical: Physical): boolean {
    return this.#takeAt(this.#idle.findIndex((one) => one.physical === physical)) !== undefined
  }

  #takeAt(at: number): Physical | undefined {
    if (at < 0) return undefined
    const [one] = this.#idle.splice(at, 1)
    one?.timer?.cancel()
    return one?.physical
  }
}
