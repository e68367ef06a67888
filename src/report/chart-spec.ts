/** What a chart shows, as data: written by reports, drawn by browser/charts.js. */

export type ChartUnit = 'count' | 'rate' | 'ms' | 'bytes' | 'byteRate' | 'percent'

export interface LineChartSpec {
  readonly kind: 'lines'
  readonly title: string
  readonly unit: ChartUnit
  /** Seconds, rising; since the epoch when `isClock`, else since the start. */
  readonly times: readonly number[]
  readonly isClock: boolean
  readonly series: readonly {
    readonly label: string
    /** One for each time; null: nothing is known. */
    readonly values: readonly (number | null)[]
  }[]
  /** Spans of time that are shaded, each with a word. */
  readonly shaded?: readonly {
    readonly from: number
    readonly to: number
    readonly label: string
  }[]
  readonly note?: string
}

/** How often values of each span were seen, on a logarithmic axis. */
export interface HistogramSpec {
  readonly kind: 'histogram'
  readonly title: string
  /** Rising, in milliseconds; empty ones may be left out. */
  readonly spans: readonly { readonly from: number; readonly to: number; readonly count: number }[]
  readonly note?: string
}

/** Lengths side by side, each with what was expected. */
export interface BarsSpec {
  readonly kind: 'bars'
  readonly title: string
  readonly unit: ChartUnit
  readonly bars: readonly {
    readonly label: string
    readonly value: number
    readonly expected?: number
  }[]
  readonly note?: string
}

/** Steps one after the other, each as long as it took. */
export interface StepsSpec {
  readonly kind: 'steps'
  readonly title: string
  readonly steps: readonly { readonly label: string; readonly ms: number }[]
  readonly note?: string
}

export type ChartSpec = LineChartSpec | HistogramSpec | BarsSpec | StepsSpec
