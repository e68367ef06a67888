/** Cancel requests: those of clients of this process, and those that belong to another worker, which are passed on once. */

import type { ProcessIds, WorkerPlace } from '../fleet.js'
import type { ClientRegistry } from './client-registry.js'

export interface CancelParts {
  readonly clients: ClientRegistry
  readonly processIds: ProcessIds
  readonly place: WorkerPlace
  /** To the worker that has the client; absent: there is no other. */
  readonly forward?: (worker: number, processId: number, key: Buffer) => Promise<void>
}

export class Cancels {
  readonly #parts: CancelParts
  received = 0
  forwarded = 0

  constructor(parts: CancelParts) {
    this.#parts = parts
  }

  /** Of a connection; what nobody knows is ignored. */
  byKey(processId: number, key: Buffer): void | Promise<void> {
    const { processIds, place, forward } = this.#parts
    this.received++
    const owner = processIds.ownerOf(processId)
    if (owner === place.number) return this.ours(processId, key)
    if (owner === undefined || !forward) return undefined
    this.forwarded++
    return forward(owner, processId, key)
  }

  /** Of another worker: never passed on again. */
  ours(processId: number, key: Buffer): void | Promise<void> {
    return this.#parts.clients.byKey(processId, key)?.cancel()
  }
}
