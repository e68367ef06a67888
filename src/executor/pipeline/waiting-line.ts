/**
 * Requests that found every lane full and no server free, in their order. They stand in the pool's queue as one, so that
 * the server that comes serves many of them: each with a place of its own would get a server for one statement, and
 * while they wait no lane could start.
 */
import { RingQueue } from '../../base/ring-queue.js'
import type { Carrier, PipelinedClient } from './pipelined-client.js'

interface Waiting {
  readonly client: PipelinedClient
  readonly sinceMs: number
}

export class WaitingLine implements Carrier {
  readonly isWaiting = true
  #waiting = new RingQueue<Waiting>()

  get size(): number {
    return this.#waiting.size
  }

  /** Who has waited longest. */
  get first(): Waiting | undefined {
    return this.#waiting.peek()
  }

  push(client: PipelinedClient, nowMs: number): void {
    this.#waiting.push({ client, sinceMs: nowMs })
  }

  shift(): PipelinedClient | undefined {
    return this.#waiting.shift()?.client
  }

  takeAll(): PipelinedClient[] {
    const clients = [...this.#waiting].map(({ client }) => client)
    this.#waiting.clear()
    return clients
  }

  /** True: no server was told. */
  cancel(client: PipelinedClient): boolean {
    this.leave(client)
    return true
  }

  leave(client: PipelinedClient): void {
    const left = [...this.#waiting].filter((one) => one.client !== client)
    this.#waiting.clear()
    for (const one of left) this.#waiting.push(one)
  }

  resume(): void {
    // Nothing is on its way to a client that waits.
  }
}
