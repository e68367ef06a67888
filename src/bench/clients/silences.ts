/**
 * When a node finished nothing, and which errors came meanwhile. Kept per thread in times of day (threads have
 * clocks of their own), then brought together: a node was silent when no thread had anything from it.
 */

/** From the last good transaction, or the start of the run, to the next good one; Infinity when none came. */
export interface Silence {
  readonly fromMs: number
  readonly toMs: number
}

/** Errors of one SQLSTATE that came close together. */
export interface Faults {
  readonly sqlstate: string
  readonly firstMs: number
  lastMs: number
  count: number
}

/** Shorter ones are the pauses between the transactions of a node. */
const SHORTEST_MS = 10
/** Errors within it are one entry. */
const TOGETHER_MS = 50

export class SilenceBook {
  readonly silences: Silence[] = []
  readonly faults: Faults[] = []
  readonly #lastOf = new Map<string, Faults>()
  #goodMs: number

  constructor(startMs: number) {
    this.#goodMs = startMs
  }

  good(atMs: number): void {
    if (atMs - this.#goodMs >= SHORTEST_MS) this.silences.push({ fromMs: this.#goodMs, toMs: atMs })
    this.#goodMs = atMs
  }

  fault(sqlstate: string, atMs: number): void {
    const last = this.#lastOf.get(sqlstate)
    if (last !== undefined && atMs - last.firstMs < TOGETHER_MS) {
      last.count++
      last.lastMs = atMs
      return
    }
    const faults = { sqlstate, firstMs: atMs, lastMs: atMs, count: 1 }
    this.faults.push(faults)
    this.#lastOf.set(sqlstate, faults)
  }

  /** Nothing more comes. */
  end(): void {
    this.silences.push({ fromMs: this.#goodMs, toMs: Number.POSITIVE_INFINITY })
  }
}

/** When both were silent. */
export function commonSilences(a: readonly Silence[], b: readonly Silence[]): Silence[] {
  const common: Silence[] = []
  let i = 0
  let j = 0
  while (i < a.length && j < b.length) {
    const [one, other] = [a[i] as Silence, b[j] as Silence]
    const fromMs = Math.max(one.fromMs, other.fromMs)
    const toMs = Math.min(one.toMs, other.toMs)
    if (toMs - fromMs >= SHORTEST_MS) common.push({ fromMs, toMs })
    if (one.toMs < other.toMs) i++
    else j++
  }
  return common
}

/** How many errors of each SQLSTATE came in that time. */
export function faultsIn(
  { fromMs, toMs }: Silence,
  faults: readonly Faults[],
): Map<string, number> {
  const counts = new Map<string, number>()
  for (const { sqlstate, firstMs, lastMs, count } of faults) {
    if (lastMs >= fromMs && firstMs <= toMs)
      counts.set(sqlstate, (counts.get(sqlstate) ?? 0) + count)
  }
  return counts
}
