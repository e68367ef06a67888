/** Which host first: puts the candidates of a read into the order in which they are tried. Knows weights and loads, no sockets. */

export type BalancingStrategy =
  | 'random'
  | 'round_robin'
  | 'weighted_round_robin'
  | 'least_active_connections'
  | 'best_response_time'
  | 'server_affinity'

export interface Candidate {
  /** Relative share of reads. */
  readonly weight: number
  /** Servers lent now. */
  readonly lent: number
  /** How long servers were kept lately, on average; 0: not known. */
  readonly heldMs: number
  /** Broken hosts are tried last. */
  readonly isHealthy: boolean
}

/** One choice in so many goes to the host that was not chosen for the longest: what was slow once may have become fast. */
const EXPLORE_EVERY = 16

export class Balancer {
  readonly #strategy: BalancingStrategy
  readonly #random: () => number
  #turn = 0
  /** Smooth weighted round robin: what each candidate has saved up. */
  readonly #credit = new WeakMap<Candidate, number>()
  /** Turns at which each was chosen last. */
  readonly #chosenAt = new WeakMap<Candidate, number>()

  constructor(strategy: BalancingStrategy, random: () => number) {
    this.#strategy = strategy
    this.#random = random
  }

  /** All candidates, the chosen one first; healthy ones before the others. */
  order<C extends Candidate>(candidates: readonly C[]): C[] {
    const ordered = this.#order(candidates)
    if (ordered.every((candidate) => candidate.isHealthy)) return ordered
    return [...ordered.filter((one) => one.isHealthy), ...ordered.filter((one) => !one.isHealthy)]
  }

  #order<C extends Candidate>(candidates: readonly C[]): C[] {
    if (candidates.length < 2) return [...candidates]
    switch (this.#strategy) {
      case 'random':
        return this.#shuffle(candidates)
      case 'round_robin':
        return rotate(candidates, this.#turn++ % candidates.length)
      case 'weighted_round_robin':
        return rotate(candidates, this.#weighted(candidates))
      case 'least_active_connections':
        // Equal loads are spread by chance, not always on the first.
        return this.#shuffle(candidates).sort((a, b) => a.lent - b.lent)
      case 'best_response_time':
        return this.#fastest(candidates)
      case 'server_affinity':
        // Always the first in the order of the configuration; the others stand in for it.
        return [...candidates]
    }
  }

  #fastest<C extends Candidate>(candidates: readonly C[]): C[] {
    this.#turn++
    const since = (one: C) => this.#chosenAt.get(one) ?? 0
    const explores = this.#turn % EXPLORE_EVERY === 0
    const ordered = this.#shuffle(candidates).sort((a, b) =>
      explores ? since(a) - since(b) : a.heldMs - b.heldMs,
    )
    this.#chosenAt.set(ordered[0] as C, this.#turn)
    return ordered
  }

  #shuffle<C>(candidates: readonly C[]): C[] {
    const left = [...candidates]
    for (let i = left.length - 1; i > 0; i--) {
      const j = Math.floor(this.#random() * (i + 1))
      ;[left[i], left[j]] = [left[j] as C, left[i] as C]
    }
    return left
  }

  /** Every candidate saves its weight; the richest is chosen and pays what all saved. */
  #weighted(candidates: readonly Candidate[]): number {
    const usable = candidates.filter((one) => one.isHealthy && one.weight > 0)
    const taking = usable.length > 0 ? usable : candidates
    const total = taking.reduce((sum, one) => sum + one.weight, 0)
    let best = taking[0] as Candidate
    for (const one of taking) {
      const saved = (this.#credit.get(one) ?? 0) + one.weight
      this.#credit.set(one, saved)
      if (saved > (this.#credit.get(best) ?? 0)) best = one
    }
    this.#credit.set(best, (this.#credit.get(best) ?? 0) - total)
    return candidates.indexOf(best)
  }
}

function rotate<C>(candidates: readonly C[], by: number): C[] {
  return [...candidates.slice(by), ...candidates.slice(0, by)]
}
