/** Memory that slow readers hold: each has its limit, and all together one (hard-parts §1.4). */

/** All clients of the process together. */
const TOTAL_BYTES = 67_108_864

export class ReplyBudget {
  readonly #held = new Map<object, number>()
  readonly #limit: number
  #total = 0

  constructor(limit = TOTAL_BYTES) {
    this.#limit = limit
  }

  /** Notes that `bytes` wait for a client; false when that is more than it may have. */
  hold(client: object, bytes: number, limit: number): boolean {
    this.#total += bytes - (this.#held.get(client) ?? 0)
    this.#held.set(client, bytes)
    return bytes <= limit && this.#total <= this.#limit
  }

  /** The client has read all, or has gone. */
  release(client: object): void {
    const bytes = this.#held.get(client)
    if (bytes === undefined) return
    this.#held.delete(client)
    this.#total -= bytes
  }
}

/** One for the process. */
export const replyBudget = new ReplyBudget()
