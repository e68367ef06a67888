/** How long the requests of one user on one database take, by what was done for them and on which shard. */
import { TimeBuckets } from './time-buckets.js'

/** What is done for a request; its number is its place. */
export const REQUEST_CLASSES = [
  'read',
  'write',
  'scatter',
  'merge',
  'gather',
  'split',
  'everywhere',
  'copy',
  'explain',
  'two_phase',
  'control',
] as const

export type RequestClass = (typeof REQUEST_CLASSES)[number]

export const READ = 0
export const WRITE = 1
export const CONTROL = REQUEST_CLASSES.indexOf('control')
export const TWO_PHASE = REQUEST_CLASSES.indexOf('two_phase')

/** In the place of a shard: no server, or several. */
export const NO_SHARD = -1

export interface RecordedTimes {
  readonly requestClass: RequestClass
  readonly shard: number
  readonly buckets: TimeBuckets
}

export class RequestTimes {
  /** By class, then by shard + 1. */
  readonly #byClass: (TimeBuckets | undefined)[][] = REQUEST_CLASSES.map(() => [])

  record(requestClass: number, shard: number, elapsedMs: number): void {
    const byShard = this.#byClass[requestClass] as (TimeBuckets | undefined)[]
    const known = byShard[shard + 1]
    if (known) return known.record(elapsedMs)
    const made = new TimeBuckets()
    byShard[shard + 1] = made
    made.record(elapsedMs)
  }

  *all(): Iterable<RecordedTimes> {
    for (const [at, byShard] of this.#byClass.entries()) {
      for (const [place, buckets] of byShard.entries()) {
        const requestClass = REQUEST_CLASSES[at]
        if (buckets && requestClass) yield { requestClass, shard: place - 1, buckets }
      }
    }
  }
}
