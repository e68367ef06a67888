/** What a run is given, what it tells while it works, and what it says in the end. */
import type { Clock } from '../../base/clock.js'
import type { Log } from '../../base/log.js'
import type { Pace } from '../copy/pace.js'
import type { CutoverReport } from '../cutover/cutover-options.js'
import type { ConfigSwitch } from '../cutover/switch-config.js'
import type { TrafficGate } from '../cutover/traffic-gate.js'
import type { GuardLimits } from '../guards/guard-limits.js'
import type { RunState } from '../journal/journal.js'
import type { Problem } from '../preflight/preflight.js'
import type { ReshardSide } from '../side.js'
import type { TableComparison } from '../verify/compare-tables.js'
import type { VerifyReport } from '../verify/verify.js'

/** What a run tells while it works. */
export interface RunListener {
  step(text: string): void
  /** Bytes read of a table, all sources together. */
  copied?(table: string, bytes: number, totalBytes: number): void
  followed?(changes: number): void
  verified?(table: TableComparison): void
}

/** Steps after which a run may stop with success. */
export const stops = ['schema', 'copy', 'follow', 'verify'] as const
export type StopAfter = (typeof stops)[number]

export interface RunOptions {
  readonly source: ReshardSide
  readonly target: ReshardSide
  readonly gate: TrafficGate
  readonly config: ConfigSwitch
  readonly clock: Clock
  readonly log: Log
  readonly listener: RunListener
  /** Readers a source shard, and connections a target that make indexes. */
  readonly jobs: number
  readonly budgetMs: number
  readonly verifyHoldMs: number
  /** The cutover ends clients that keep their servers, instead of refusing. */
  readonly endPinned?: boolean
  /** False: the cutover arms no stream back; else it refuses when it cannot. */
  readonly wayBack?: boolean
  readonly stopAfter?: StopAfter
  /** With `stopAfter: 'follow'`: goes on following after it has caught up, until it is interrupted. */
  readonly keepFollowing?: boolean
  readonly signal?: AbortSignal
  /** pg_dump to use; null: the one in npm. */
  readonly dumpProgram?: string | null
  /** Tables larger than this are cut into parts of about this size. */
  readonly partBytes?: number
  /** A snapshot older than this is not given to another part. */
  readonly snapshotAgeMs?: number
  /** Bound on what the copy reads; can be changed while it runs. */
  readonly pace?: Pace
  /** What the sources must be spared; the defaults when absent. Can be changed in the journal while the run works. */
  readonly limits?: GuardLimits
  /** How often the sources are looked at. */
  readonly guardPeriodMs?: number
  /** Called at each named point of a run; for tests that end it there. */
  readonly atPoint?: (point: string) => Promise<void>
}

export interface RunReport {
  readonly run: string
  readonly state: RunState
  readonly warnings: readonly Problem[]
  readonly rowsCopied: number
  readonly bytesCopied: number
  readonly changesApplied: number
  readonly tables: readonly {
    readonly name: string
    readonly rows: number
    readonly bytes: number
  }[]
  readonly verify?: VerifyReport
  readonly cutover?: CutoverReport
  readonly brokenForeignKeys: readonly string[]
  readonly elapsedMs: number
}
