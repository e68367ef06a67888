/** What an aggregate is combined by. */
import type { Slice } from './values.js'

export type Parts = readonly (Slice | undefined)[]

export interface Combiner {
  /** Begins another group. */
  reset(): void
  /** The parts of one row, as the program names them; undefined is NULL. */
  add(parts: Parts): void
  /** null: NULL. */
  result(): Buffer | null
}
