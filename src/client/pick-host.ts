/** One pick: the strategy is asked until a host it names can be had, in rounds over all hosts. */
import type { Clock } from '../base/clock.js'
import { engineError } from '../errors/engine-error.js'
import type { Uint64Source } from '../topology/prng.js'
import { isCommunicationError } from './exception-checker.js'
import type { HostBook } from './host-book.js'
import { type BalanceStrategy, reasonOf, type StrategyView } from './strategy.js'

/** Between two rounds in which nobody answered, as Connector/J waits. */
const ROUND_PAUSE_MS = 250

export interface PickOptions {
  readonly book: HostBook
  readonly strategy: BalanceStrategy
  readonly random: Uint64Source
  readonly clock: Clock
  /** Rounds over all hosts, at least 1. */
  readonly retriesAllDown: number
  /** How long a host that failed is not asked, ms. */
  readonly blocklistTimeoutMs: number
}

export interface Picked<T> {
  readonly index: number
  readonly taken: T
}

function ask(strategy: BalanceStrategy, view: StrategyView): number {
  const index = strategy.pick(view)
  if (view.candidates.includes(index)) return index
  throw engineError('CLIENT_STRATEGY', {
    name: strategy.constructor.name,
    reason: `pick() gave ${String(index)}, which is none of ${view.candidates.join(', ')}`,
  })
}

/**
 * Takes something of the picked host with `take`. A host that cannot be reached goes on the blocklist and another is
 * picked; any other failure is thrown at once, since the next host would say the same.
 * @throws CLIENT_ALL_DOWN after the last round, with the last failure as its cause
 */
export async function pickHost<T>(
  options: PickOptions,
  take: (index: number) => Promise<T>,
): Promise<Picked<T>> {
  const { book, strategy, retriesAllDown, random, clock } = options
  let last: unknown
  for (let round = 1; ; round++) {
    const tried = new Set<number>()
    for (;;) {
      const view = book.view(tried, retriesAllDown, random)
      if (!view) break
      const index = ask(strategy, view)
      try {
        const taken = await take(index)
        book.picked(index)
        return { index, taken }
      } catch (error) {
        if (!isCommunicationError(error)) throw error
        last = error
        tried.add(index)
        book.failed(index, options.blocklistTimeoutMs)
      }
    }
    if (round >= retriesAllDown) {
      const reason = reasonOf(last)
      const values = { count: book.count, rounds: round, reason }
      throw engineError('CLIENT_ALL_DOWN', values, { cause: last })
    }
    await clock.sleep(ROUND_PAUSE_MS)
  }
}
