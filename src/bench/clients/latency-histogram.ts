/** Latencies in microseconds with three significant digits; mergeable, and passed between threads as text. */
import {
  build,
  decodeFromCompressedBase64,
  encodeIntoCompressedBase64,
  type Histogram,
} from 'hdr-histogram-js'

export interface Percentiles {
  readonly p50: number
  readonly p90: number
  readonly p95: number
  readonly p99: number
  readonly p999: number
  readonly max: number
}

const make = (): Histogram =>
  build({
    bitBucketSize: 32,
    autoResize: true,
    lowestDiscernibleValue: 1,
    highestTrackableValue: 60_000_000,
    numberOfSignificantValueDigits: 3,
  })

export class LatencyHistogram {
  #inner: Histogram

  constructor(encoded?: string) {
    this.#inner = make()
    if (encoded !== undefined) this.#inner.add(decodeFromCompressedBase64(encoded, 32, false))
  }

  record(latencyUs: number): void {
    this.#inner.recordValue(Math.max(1, Math.round(latencyUs)))
  }

  get count(): number {
    return this.#inner.totalCount
  }

  merge(other: LatencyHistogram): void {
    this.#inner.add(other.#inner)
  }

  encode(): string {
    return encodeIntoCompressedBase64(this.#inner)
  }

  /** In milliseconds; all zero when nothing was recorded. */
  percentilesMs(): Percentiles {
    const maxUs = this.#inner.totalCount === 0 ? 0 : this.#inner.maxValue
    // A percentile is the upper end of its bucket, which may lie above everything recorded.
    const at = (percent: number) =>
      maxUs === 0 ? 0 : Math.min(this.#inner.getValueAtPercentile(percent), maxUs) / 1000
    return {
      p50: at(50),
      p90: at(90),
      p95: at(95),
      p99: at(99),
      p999: at(99.9),
      max: maxUs / 1000,
    }
  }
}
