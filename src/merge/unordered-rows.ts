/** Rows of several shards as they come. They are held only while the client has all rows that it asked for so far. */
import type { RowStage } from './row-stage.js'
import { frameEnd } from './rows/row-frame.js'
import { RowQueue } from './rows/row-queue.js'

export class UnorderedRows {
  readonly #next: RowStage
  readonly #queues: RowQueue[]
  readonly #hasEnded: boolean[]
  #left: number

  constructor(shards: number, next: RowStage) {
    this.#next = next
    this.#queues = Array.from({ length: shards }, () => new RowQueue())
    this.#hasEnded = new Array(shards).fill(false)
    this.#left = shards
  }

  get isExhausted(): boolean {
    return this.#left === 0 && this.#queues.every((queue) => !queue.hasHead)
  }

  waitsFor(shard: number): boolean {
    return !this.#hasEnded[shard] && this.#next.takes
  }

  queuedBytes(shard: number): number {
    return this.#queues[shard]!.queuedBytes
  }

  push(shard: number, buffer: Buffer, start: number, end: number): void {
    const queue = this.#queues[shard]!
    let at = start
    while (!queue.hasHead && at < end && this.#next.takes) {
      const next = frameEnd(buffer, at)
      this.#next.row(buffer, at, next, -1)
      at = next
    }
    if (!this.#next.isFull) queue.push(buffer, at, end)
  }

  ended(shard: number): void {
    if (this.#hasEnded[shard]) return
    this.#hasEnded[shard] = true
    this.#left--
  }

  run(): void {
    for (const queue of this.#queues) {
      while (queue.hasHead && this.#next.takes) {
        this.#next.row(queue.bytes, queue.start, queue.end, -1)
        queue.next()
      }
    }
  }

  clear(): void {
    for (const queue of this.#queues) queue.clear()
  }
}
