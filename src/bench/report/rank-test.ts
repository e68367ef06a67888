/** Mann–Whitney's rank test: whether one of two samples tends to be larger, whatever their distribution. */
import { upperGamma } from './chi-square.js'

export interface RankTest {
  /** Probability that a value of the second sample is above one of the first; ties count half. */
  readonly above: number
  /** Two-sided, by the normal approximation with correction for ties and continuity; 1 when nothing can be said. */
  readonly p: number
}

/** Tests `a` against `b`; each needs a handful of values to say anything. */
export function rankTest(a: readonly number[], b: readonly number[]): RankTest {
  const [n, m] = [a.length, b.length]
  if (n === 0 || m === 0) return { above: 0.5, p: 1 }
  const all = [
    ...a.map((value) => ({ value, isB: false })),
    ...b.map((value) => ({ value, isB: true })),
  ].sort((one, other) => one.value - other.value)
  let rankSum = 0
  let ties = 0
  for (let from = 0; from < all.length; ) {
    let to = from
    while (to < all.length && all[to]?.value === all[from]?.value) to++
    const count = to - from
    const rank = (from + 1 + to) / 2
    for (let i = from; i < to; i++) if (all[i]?.isB) rankSum += rank
    ties += count ** 3 - count
    from = to
  }
  const u = rankSum - (m * (m + 1)) / 2
  const size = n + m
  const variance = ((n * m) / 12) * (size + 1 - ties / (size * (size - 1)))
  const above = u / (n * m)
  if (variance <= 0) return { above, p: 1 }
  const distance = Math.max(0, Math.abs(u - (n * m) / 2) - 0.5)
  // both tails of the normal distribution beyond z are Q(1/2, z² / 2)
  return { above, p: upperGamma(0.5, distance ** 2 / variance / 2) }
}
