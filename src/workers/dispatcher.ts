/** Deals connections out: to the ready worker that has the fewest, in turn among equals. While none is ready they wait. */
import { type AcceptedHandle, closeHandle } from '../net/adopt-accepted.js'

export interface Taker {
  readonly isReady: boolean
  /** Given to it and not closed. */
  readonly connections: number
  give(handle: AcceptedHandle): void
}

/** As many as the kernel lets wait for one process. */
const MAX_WAITING = 4096

export class Dispatcher {
  readonly #takers: () => readonly Taker[]
  #waiting: AcceptedHandle[] = []
  #turn = 0
  #isClosed = false

  constructor(takers: () => readonly Taker[]) {
    this.#takers = takers
  }

  deal(handle: AcceptedHandle): void {
    const taker = this.#choose()
    if (taker) taker.give(handle)
    else if (this.#isClosed || this.#waiting.length >= MAX_WAITING) closeHandle(handle)
    else this.#waiting.push(handle)
  }

  /** A worker has become ready. */
  dealWaiting(): void {
    for (const handle of this.#waiting.splice(0)) this.deal(handle)
  }

  /** Nobody will come any more. */
  close(): void {
    this.#isClosed = true
    for (const handle of this.#waiting.splice(0)) closeHandle(handle)
  }

  #choose(): Taker | undefined {
    const takers = this.#takers().filter(({ isReady }) => isReady)
    if (takers.length === 0) return undefined
    const least = Math.min(...takers.map(({ connections }) => connections))
    const first = this.#turn++ % takers.length
    return [...takers.slice(first), ...takers.slice(0, first)].find(
      ({ connections }) => connections === least,
    )
  }
}
