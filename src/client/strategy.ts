/**
 * Which host a connection is taken from: libpq's shuffle and the strategies of MySQL Connector/J, behind one interface.
 * A strategy sees copies and read-only views, and answers with the index of a host; it opens nothing.
 */
import { engineError } from '../errors/engine-error.js'
import { shuffleInPlace, type Uint64Source } from '../topology/prng.js'

/** What a strategy may look at. */
export interface StrategyView {
  /** Names of the hosts as `host:port`, by index. A removed host keeps its index and is never a candidate. */
  readonly hosts: readonly string[]
  /** Indexes that may be answered: not removed, not on the blocklist, not tried in vain by this pick. Never empty. */
  readonly candidates: readonly number[]
  /** How often each host stood in the connection string; 1 unless it was repeated. */
  readonly weights: readonly number[]
  /** Connections that are open now, by index. */
  readonly open: readonly number[]
  /** Those of them that are in use. */
  readonly inUse: readonly number[]
  /** Response time by index, ms; 0: not measured yet. */
  readonly responseTimesMs: readonly number[]
  /** How many rounds over all hosts a pick may make. */
  readonly retriesAllDown: number
  /** Index of the host used last, if any. */
  readonly current: number | undefined
  readonly random: Uint64Source
}

export interface BalanceStrategy {
  /** One of `view.candidates`. */
  pick(view: StrategyView): number
}

export const strategyNames = [
  'random',
  'round_robin',
  'best_response_time',
  'server_affinity',
] as const
export type StrategyName = (typeof strategyNames)[number]

/** A candidate by weight: libpq shuffles the list as written, so that a host named twice comes twice as often. */
class RandomStrategy implements BalanceStrategy {
  pick({ candidates, weights, random }: StrategyView): number {
    const list = candidates.flatMap((index) => Array<number>(weights[index] ?? 1).fill(index))
    shuffleInPlace(list, random)
    return list[0] as number
  }
}

/** In the order of the list, a host of weight n n times; starts anywhere, so that many clients do not start together. */
class RoundRobinStrategy implements BalanceStrategy {
  #next: number | undefined

  pick({ hosts, candidates, weights, random }: StrategyView): number {
    const turns = hosts.flatMap((_, index) => Array<number>(weights[index] ?? 1).fill(index))
    const start = this.#next ?? Number(random.nextUint64() % BigInt(turns.length))
    for (let step = 0; step < turns.length; step++) {
      const index = turns[(start + step) % turns.length] as number
      if (!candidates.includes(index)) continue
      this.#next = (start + step + 1) % turns.length
      return index
    }
    return candidates[0] as number
  }
}

/** The host that answered quickest; one that was not measured yet comes first. */
class BestResponseTimeStrategy implements BalanceStrategy {
  pick({ candidates, responseTimesMs, inUse }: StrategyView): number {
    let best = candidates[0] as number
    for (const index of candidates) {
      const [one, other] = [responseTimesMs[index] ?? 0, responseTimesMs[best] ?? 0]
      const isBetter = one < other || (one === other && (inUse[index] ?? 0) < (inUse[best] ?? 0))
      if (isBetter) best = index
    }
    return best
  }
}

/** The first host of an order that can be had. */
class ServerAffinityStrategy implements BalanceStrategy {
  readonly #order: readonly string[]

  constructor(order: readonly string[]) {
    this.#order = order
  }

  pick({ hosts, candidates }: StrategyView): number {
    for (const name of this.#order) {
      const found = candidates.find((index) => hosts[index] === name)
      if (found !== undefined) return found
    }
    return candidates[0] as number
  }
}

const isStrategy = (value: unknown): value is BalanceStrategy =>
  typeof (value as Partial<BalanceStrategy> | undefined)?.pick === 'function'

/** `affinity`: host names in order of preference; absent: the order of the connection string. */
export function builtInStrategy(
  name: StrategyName,
  affinity: readonly string[] = [],
): BalanceStrategy {
  switch (name) {
    case 'random':
      return new RandomStrategy()
    case 'round_robin':
      return new RoundRobinStrategy()
    case 'best_response_time':
      return new BestResponseTimeStrategy()
    case 'server_affinity':
      return new ServerAffinityStrategy(affinity)
  }
}

/** A strategy by name, as an object, or from a module. @throws CLIENT_STRATEGY */
export async function loadStrategy(
  given: StrategyName | BalanceStrategy | string | undefined,
  affinity?: readonly string[],
): Promise<BalanceStrategy> {
  if (isStrategy(given)) return given
  const name = given ?? 'random'
  const known = strategyNames.find((one) => one === name)
  if (known !== undefined) return builtInStrategy(known, affinity)
  const made = await defaultOf(name).catch((cause: unknown) => {
    throw engineError('CLIENT_STRATEGY', { name, reason: reasonOf(cause) }, { cause })
  })
  const strategy = typeof made === 'function' ? new (made as new () => unknown)() : made
  if (isStrategy(strategy)) return strategy
  throw engineError('CLIENT_STRATEGY', { name, reason: 'its default export has no pick()' })
}

/** The default export of a module, named by path, URL or package. */
export async function defaultOf(name: string): Promise<unknown> {
  const { pathToFileURL } = await import('node:url')
  const { resolve } = await import('node:path')
  const isPath = /^[./]/.test(name)
  const module = (await import(isPath ? pathToFileURL(resolve(name)).href : name)) as {
    default?: unknown
  }
  return module.default
}

export const reasonOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error)
