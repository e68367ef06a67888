/** What waits of a portal over several servers, whose rows the client reads in portions. */
import { completeFrame, portalSuspendedFrame } from '../answers.js'

/** Rows of an answer that the client has not asked for yet. */
export class StoredRows {
  #rows: Buffer[] = []
  #at = 0

  push(row: Buffer): void {
    this.#rows.push(row)
  }

  /** The next `limit` rows (0: all), and how the portion ends. */
  take(limit: number): Buffer {
    const end = limit > 0 ? Math.min(this.#at + limit, this.#rows.length) : this.#rows.length
    const rows = this.#rows.slice(this.#at, end)
    this.#at = end
    if (this.#at === this.#rows.length) {
      this.#rows = []
      this.#at = 0
    }
    // as PostgreSQL, which does not look whether another row would come
    const isFull = limit > 0 && rows.length === limit
    return Buffer.concat([
      ...rows,
      isFull ? portalSuspendedFrame : completeFrame(`SELECT ${rows.length}`),
    ])
  }
}
