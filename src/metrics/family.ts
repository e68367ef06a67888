/** A metric with all its values, as plain data: what a scrape prints and what is pushed are made of it. */
import { TIME_BOUNDS } from './time-buckets.js'

export type Labels = Readonly<Record<string, string>>

/** `unknown`: it only grows, but bears a name that OpenMetrics does not allow a counter (it was chosen elsewhere). */
export type FamilyType = 'gauge' | 'counter' | 'unknown' | 'histogram'

export interface Sample {
  readonly labels: Labels
  readonly value: number
}

export interface HistogramSample {
  readonly labels: Labels
  /** Of each bucket by itself; one more than TIME_BOUNDS. */
  readonly counts: readonly number[]
  readonly sumSeconds: number
}

export interface ValueFamily {
  readonly name: string
  readonly help: string
  readonly type: Exclude<FamilyType, 'histogram'>
  readonly samples: readonly Sample[]
}

export interface HistogramFamily {
  readonly name: string
  readonly help: string
  readonly type: 'histogram'
  readonly samples: readonly HistogramSample[]
}

export type Family = ValueFamily | HistogramFamily

export const BOUNDS = TIME_BOUNDS
