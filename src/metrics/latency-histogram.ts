/** Times of one kind of event, for percentiles. An instrument: it is handed to whoever measures and read by whoever shows. */
import { build, type Histogram } from 'hdr-histogram-js'

export interface LatencySummary {
  readonly count: number
  readonly p50Ms: number
  readonly p95Ms: number
  readonly p99Ms: number
  readonly maxMs: number
}

/** An hour; longer times count as this. */
const HIGHEST_MICROS = 3_600_000_000

/** Errors of at most 1 % of the value, whatever the value: two significant digits, about 20 kB. */
export class LatencyHistogram {
  readonly #histogram: Histogram = build({
    lowestDiscernibleValue: 1,
    highestTrackableValue: HIGHEST_MICROS,
    numberOfSignificantValueDigits: 2,
    bitBucketSize: 32,
    useWebAssembly: false,
  })

  record(elapsedMs: number): void {
    const micros = Math.round(elapsedMs * 1000)
    this.#histogram.recordValue(Math.min(Math.max(micros, 0), HIGHEST_MICROS))
  }

  /** Adds what another has recorded. */
  add(other: LatencyHistogram): void {
    this.#histogram.add(other.#histogram)
  }

  summary(): LatencySummary {
    const at = (percentile: number) => this.#histogram.getValueAtPercentile(percentile) / 1000
    const count = this.#histogram.totalCount
    if (count === 0) return { count: 0, p50Ms: 0, p95Ms: 0, p99Ms: 0, maxMs: 0 }
    return {
      count,
      p50Ms: at(50),
      p95Ms: at(95),
      p99Ms: at(99),
      maxMs: this.#histogram.maxValue / 1000,
    }
  }
}
