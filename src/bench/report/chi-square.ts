/** Pearson's chi-square of counts against expected shares, and its p-value by the regularised incomplete gamma function. */

export interface ChiSquare {
  readonly statistic: number
  readonly degreesOfFreedom: number
  /** Probability of a deviation at least this large by chance alone. */
  readonly p: number
}

/** Lanczos' approximation with g = 7 and nine terms (Godfrey's coefficients). */
const lanczosG = 7
const lanczos = [
  0.9999999999998099, 676.5203681218851, -1259.1392167224028, 771.3234287776531, -176.6150291621406,
  12.507343278686905, -0.13857109526572012, 0.000009984369578019572, 1.5056327351493116e-7,
]

/** ln Γ(x) for x > 0. */
export function logGamma(x: number): number {
  const shifted = x - 1
  const t = shifted + lanczosG + 0.5
  const sum = lanczos.reduce((total, term, i) => total + (i === 0 ? term : term / (shifted + i)), 0)
  return 0.5 * Math.log(2 * Math.PI) + (shifted + 0.5) * Math.log(t) - t + Math.log(sum)
}

/** Lower regularised P(a, x) by its series; good for x < a + 1. */
function gammaSeries(a: number, x: number): number {
  let term = 1 / a
  let sum = term
  for (let n = 1; n < 1000 && Math.abs(term) > Math.abs(sum) * 1e-15; n++) {
    term *= x / (a + n)
    sum += term
  }
  return sum * Math.exp(-x + a * Math.log(x) - logGamma(a))
}

/** Upper regularised Q(a, x) by Lentz's continued fraction; good for x ≥ a + 1. */
function gammaFraction(a: number, x: number): number {
  const tiny = 1e-300
  let b = x + 1 - a
  let c = 1 / tiny
  let d = 1 / b
  let h = d
  for (let i = 1; i < 1000; i++) {
    const an = -i * (i - a)
    b += 2
    d = an * d + b
    if (Math.abs(d) < tiny) d = tiny
    c = b + an / c
    if (Math.abs(c) < tiny) c = tiny
    d = 1 / d
    const delta = d * c
    h *= delta
    if (Math.abs(delta - 1) < 1e-15) break
  }
  return h * Math.exp(-x + a * Math.log(x) - logGamma(a))
}

/** Upper regularised incomplete gamma function Q(a, x). */
export function upperGamma(a: number, x: number): number {
  if (x <= 0) return 1
  return x < a + 1 ? 1 - gammaSeries(a, x) : gammaFraction(a, x)
}

/** Undefined when there are fewer than two categories or nothing was counted. */
export function chiSquare(
  counts: readonly number[],
  shares: readonly number[],
): ChiSquare | undefined {
  const total = counts.reduce((sum, count) => sum + count, 0)
  const shareSum = shares.reduce((sum, share) => sum + share, 0)
  if (counts.length < 2 || total === 0 || shareSum === 0) return undefined
  let statistic = 0
  for (const [i, count] of counts.entries()) {
    const expected = (total * (shares[i] as number)) / shareSum
    statistic += (count - expected) ** 2 / expected
  }
  const degreesOfFreedom = counts.length - 1
  return { statistic, degreesOfFreedom, p: upperGamma(degreesOfFreedom / 2, statistic / 2) }
}
