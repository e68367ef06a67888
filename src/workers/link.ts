/** One end of the channel between a primary and a worker: things told, questions asked, answers. In order, as the channel is. */
import { type Deferred, deferred } from '../base/deferred.js'
import type { AcceptedHandle } from '../net/adopt-accepted.js'
import { fromRemote, type RemoteError, toRemote } from './remote-error.js'

/** What may be said in one direction. */
interface Traffic {
  tell: unknown
  ask: unknown
}

type Envelope =
  | { readonly tell: unknown }
  | { readonly ask: unknown; readonly n: number }
  | { readonly answer: number; readonly value?: unknown; readonly error?: RemoteError }

export interface LinkEnds<In extends Traffic> {
  send(message: object, handle?: AcceptedHandle): void
  told(what: In['tell'], handle: AcceptedHandle | undefined): void
  /** The answer, or its failure, is sent back. */
  asked(what: In['ask']): unknown
}

export class Link<Out extends Traffic, In extends Traffic> {
  readonly #ends: LinkEnds<In>
  readonly #asked = new Map<number, Deferred<unknown>>()
  #n = 0
  #gone: Error | undefined

  constructor(ends: LinkEnds<In>) {
    this.#ends = ends
  }

  tell(what: Out['tell'], handle?: AcceptedHandle): void {
    if (!this.#gone) this.#ends.send({ tell: what }, handle)
  }

  /** The caller says of which type the answer is. Rejects as the other side fails, or with the reason of `close`. */
  ask<T>(what: Out['ask']): Promise<T> {
    if (this.#gone) return Promise.reject(this.#gone)
    const n = ++this.#n
    const waits: Deferred<unknown> = deferred()
    this.#asked.set(n, waits)
    this.#ends.send({ ask: what, n })
    return waits.promise as Promise<T>
  }

  receive(message: unknown, handle?: AcceptedHandle): void {
    const envelope = message as Envelope
    if ('tell' in envelope) this.#ends.told(envelope.tell, handle)
    else if ('ask' in envelope) void this.#answer(envelope.n, envelope.ask)
    else this.#settle(envelope)
  }

  /** The other side has gone: nothing is sent any more, and who waits hears why. */
  close(reason: Error): void {
    this.#gone = reason
    for (const waits of this.#asked.values()) waits.reject(reason)
    this.#asked.clear()
  }

  async #answer(n: number, what: In['ask']): Promise<void> {
    try {
      this.#reply({ answer: n, value: await this.#ends.asked(what) })
    } catch (error) {
      this.#reply({ answer: n, error: toRemote(error) })
    }
  }

  #reply(envelope: Envelope): void {
    if (!this.#gone) this.#ends.send(envelope)
  }

  #settle(envelope: Extract<Envelope, { answer: number }>): void {
    const waits = this.#asked.get(envelope.answer)
    this.#asked.delete(envelope.answer)
    if (envelope.error) waits?.reject(fromRemote(envelope.error))
    else waits?.resolve(envelope.value)
  }
}
