/**
 * The k-way merge: rows of shards that each come in order, handed on in the order of all. A row leaves as soon as every
 * shard that has not ended has one; equal rows leave by the number of their shard, so the merge is stable.
 */
import type { RowKeys } from './keys/row-keys.js'
import type { RowStage } from './row-stage.js'
import { RowQueue } from './rows/row-queue.js'

export class OrderedRows {
  readonly #keys: RowKeys
  readonly #next: RowStage
  readonly #queues: RowQueue[]
  readonly #hasEnded: boolean[]
  /** Shards with a head row; the first of them all on top. */
  readonly #heap: Int32Array
  #size = 0
  /** Shards of which neither a row nor the end is there. */
  #missing: number

  constructor(keys: RowKeys, shards: number, next: RowStage) {
    this.#keys = keys
    this.#next = next
    this.#queues = Array.from({ length: shards }, () => new RowQueue())
    this.#hasEnded = new Array(shards).fill(false)
    this.#heap = new Int32Array(shards)
    this.#missing = shards
  }

  /** All rows of all shards were handed on. */
  get isExhausted(): boolean {
    return this.#missing === 0 && this.#size === 0
  }

  /** The merge cannot go on without a row of this shard. */
  waitsFor(shard: number): boolean {
    return !this.#hasEnded[shard] && !this.#queues[shard]!.hasHead
  }

  queuedBytes(shard: number): number {
    return this.#queues[shard]!.queuedBytes
  }

  push(shard: number, buffer: Buffer, start: number, end: number): void {
    const queue = this.#queues[shard]!
    const hadHead = queue.hasHead
    queue.push(buffer, start, end)
    if (!hadHead && queue.hasHead) this.#enter(shard, queue)
  }

  ended(shard: number): void {
    if (this.#hasEnded[shard]) return
    this.#hasEnded[shard] = true
    if (!this.#queues[shard]!.hasHead) this.#missing--
  }

  /** Hands on what can be. */
  run(): void {
    const next = this.#next
    while (this.#missing === 0 && this.#size > 0 && next.takes) {
      const shard = this.#heap[0] as number
      const queue = this.#queues[shard]!
      next.row(queue.bytes, queue.start, queue.end, shard)
      if (queue.next()) {
        this.#keys.read(queue.bytes, queue.start, queue.end, shard)
        this.#sink(0, shard)
        continue
      }
      if (!this.#hasEnded[shard]) this.#missing++
      const last = this.#heap[--this.#size] as number
      if (this.#size > 0) this.#sink(0, last)
    }
  }

  /** Forgets the rows that wait. */
  clear(): void {
    for (const queue of this.#queues) queue.clear()
    this.#size = 0
  }

  #enter(shard: number, queue: RowQueue): void {
    this.#missing--
    this.#keys.read(queue.bytes, queue.start, queue.end, shard)
    let at = this.#size++
    while (at > 0) {
      const parent = (at - 1) >> 1
      const above = this.#heap[parent] as number
      if (this.#isBefore(above, shard)) break
      this.#heap[at] = above
      at = parent
    }
    this.#heap[at] = shard
  }

  #sink(from: number, shard: number): void {
    const heap = this.#heap
    const size = this.#size
    let at = from
    for (;;) {
      let child = 2 * at + 1
      if (child >= size) break
      if (child + 1 < size && this.#isBefore(heap[child + 1] as number, heap[child] as number))
        child++
      const below = heap[child] as number
      if (this.#isBefore(shard, below)) break
      heap[at] = below
      at = child
    }
    heap[at] = shard
  }

  #isBefore(a: number, b: number): boolean {
    const difference = this.#keys.compare(a, b)
    return difference === 0 ? a < b : difference < 0
  }
}
