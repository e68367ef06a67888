/** The requests on one lane, in the order in which the server answers them; the last of them may not be written yet. Pure. */
import { RingQueue } from '../../base/ring-queue.js'
import type { SharedStatement } from '../../server/shared-statement.js'
import type { PipelinedClient } from './pipelined-client.js'
import type { Slot } from './slot.js'

export class LaneQueue {
  /** Expected time until all are answered. */
  costMs = 0
  readonly #slots = new RingQueue<Slot>()
  #unwritten: Slot[] = []
  /** Slots with a Parse that is not confirmed. */
  #parsing = 0

  get size(): number {
    return this.#slots.size
  }

  get head(): Slot | undefined {
    return this.#slots.peek()
  }

  /** True when the statement is parsed by a request that is not answered that far. */
  isPreparing(statement: SharedStatement): boolean {
    if (this.#parsing === 0) return false
    for (const slot of this.#slots) if (slot.isParsing && slot.prepares === statement) return true
    return false
  }

  push(slot: Slot): void {
    this.#slots.push(slot)
    this.costMs += slot.costMs
    if (slot.isParsing) this.#parsing++
  }

  shift(): Slot | undefined {
    const slot = this.#slots.shift()
    if (!slot) return undefined
    this.costMs = this.#slots.size === 0 ? 0 : Math.max(0, this.costMs - slot.costMs)
    this.parsed(slot)
    return slot
  }

  /** The slot's Parse was answered. */
  parsed(slot: Slot): void {
    if (!slot.isParsing) return
    slot.isParsing = false
    this.#parsing--
  }

  /** Keeps the slot, which was pushed, for a write that is joined; true when it is the first. */
  join(slot: Slot): boolean {
    return this.#unwritten.push(slot) === 1
  }

  /** What was joined. */
  takeJoined(): readonly Slot[] {
    const slots = this.#unwritten
    if (slots.length > 0) this.#unwritten = []
    return slots
  }

  /** Takes requests off: unwritten ones whole, of others the answer will be dropped when it comes. Returns whose they are. */
  withdraw(isMeant: (slot: Slot) => boolean): PipelinedClient[] {
    const clients: PipelinedClient[] = []
    let hasUnwritten = false
    for (const slot of this.#slots) {
      if (!slot.client || !isMeant(slot)) continue
      clients.push(slot.client)
      slot.client = undefined
      slot.kept = undefined
      hasUnwritten ||= !slot.isWritten
    }
    if (hasUnwritten) this.#dropUnwritten()
    return clients
  }

  takeAll(): Slot[] {
    const slots = [...this.#slots]
    this.#slots.clear()
    this.#unwritten = []
    this.costMs = 0
    this.#parsing = 0
    return slots
  }

  #dropUnwritten(): void {
    const isLeft = (slot: Slot) => slot.isWritten || slot.client !== undefined
    const unwritten = this.#unwritten.filter(isLeft)
    const left = this.takeAll().filter(isLeft)
    for (const slot of left) this.push(slot)
    this.#unwritten = unwritten
  }
}
