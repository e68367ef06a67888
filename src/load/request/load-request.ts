/** What a load is asked for, and who watches it. */
import type { Clock } from '../../base/clock.js'
import type { CopyOptions } from '../../copy/copy-options.js'
import type { CopyTable } from '../copy-target.js'
import type { Compression, CopyInput } from '../input/open-input.js'
import type { LoadPlacement } from './load-placement.js'

export interface LoadRequest {
  readonly inputs: readonly CopyInput[]
  readonly compression: Compression
  /** Connection strings in shard order. */
  readonly urls: readonly string[]
  /** As SQL writes it: `t`, `s.t`, `"S"."T"`. */
  readonly table: string
  readonly columns?: readonly string[]
  readonly options: CopyOptions
  readonly jobs: number
  readonly isDryRun: boolean
  readonly verifies: boolean
  /** Commit by two-phase commit; needs `pgshard setup`, and one job. */
  readonly isTwoPhase?: boolean
  readonly maxBytesPerSec?: number
  /** Asked once, with the table as it is on the first shard. */
  readonly placementOf: (table: CopyTable) => LoadPlacement
}

export interface LoadWatch {
  readonly clock: Clock
  /** Aborted: stop and leave nothing behind. */
  readonly signal: AbortSignal
  /** Since the last call: bytes read of the inputs, rows split. */
  onProgress(readBytes: number, rows: number): void
  /** A line for the user. */
  note?(line: string): void
}
