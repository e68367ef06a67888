/** How many resources of a pool are lent, and to whom: holders of other resources, or callers that hold nothing. */
import type { Entry } from './pool-entry.js'

export class LentCount {
  total = 0
  /** Lent to callers that held nothing. */
  toOthers = 0
  #whenNone: (() => void)[] = []

  take(entry: Entry<unknown>, isHolder: boolean): void {
    entry.isLent = true
    entry.isHolder = isHolder
    this.total++
    if (!isHolder) this.toOthers++
  }

  untake(entry: Entry<unknown>): void {
    entry.isLent = false
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
