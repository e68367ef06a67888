/** How many resources of a pool are lent, and to whom: holders of other resources, or callers that hold nothing. */
import type { Clock } from '../base/clock.js'
import type { Entry } from './pool-entry.js'
import type { Owner } from './pool-types.js'

export class LentCount {
  readonly #clock: Clock
  /** Hears how long each was kept; without it no clock is read. */
  readonly #onReturned: ((heldMs: number) => void) | undefined
  total = 0
  /** Lent to callers that held nothing. */
  toOthers = 0
  #whenNone: (() => void)[] = []

  constructor(clock: Clock, onReturned: ((heldMs: number) => void) | undefined) {
    this.#clock = clock
    this.#onReturned = onReturned
  }

  take(entry: Entry<unknown>, isHolder: boolean, owner?: Owner): void {
    entry.isLent = true
    entry.isHolder = isHolder
    entry.owner = owner
    if (this.#onReturned) entry.lentAtMs = this.#clock.monotonicMs()
    this.total++
    if (!isHolder) this.toOthers++
  }

  untake(entry: Entry<unknown>): void {
    entry.isLent = false
    entry.owner = undefined
    if (this.#onReturned && entry.lentAtMs > 0)
      this.#onReturned(this.#clock.monotonicMs() - entry.lentAtMs)
    this.total--
    if (!entry.isHolder) this.toOthers--
    if (this.total === 0) for (const tell of this.#whenNone.splice(0)) tell()
  }

  /** Resolves when nothing is lent. */
  whenNone(): Promise<void> {
    if (this.total === 0) return Promise.resolve()
    return new Promise((resolve) => this.#whenNone.push(resolve))
  }

  /** A reload: what is lent comes back to the other pool, which those who wait must then wait for. */
  moveTo(heir: LentCount): void {
    heir.total += this.total
    heir.toOthers += this.toOthers
    heir.#whenNone.push(...this.#whenNone.splice(0))
    this.total = 0
    this.toOthers = 0
  }
}
