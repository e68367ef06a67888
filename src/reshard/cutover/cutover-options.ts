/** What a cutover is given, what it writes down, and what it says in the end. */
import type { Clock } from '../../base/clock.js'
import type { Log } from '../../base/log.js'
import type { HostClient } from '../../pg/host-client.js'
import type { Follower } from '../follow/follower.js'
import type { MovePlan } from '../move-table.js'
import type { SchemaDump } from '../schema/dump-schema.js'
import type { ReshardSide } from '../side.js'
import type { ConfigSwitch } from './switch-config.js'
import type { TrafficGate } from './traffic-gate.js'

/** What a cutover writes down: `Journal` fits. */
export interface CutoverJournal {
  readonly run: string
  setState(state: 'cutting_over'): Promise<void>
  note(facts: Record<string, unknown>): Promise<void>
  register(object: {
    readonly kind: 'fence' | 'slot' | 'publication' | 'role'
    readonly side: 'source' | 'target'
    readonly shard: number
    readonly name: string
  }): Promise<void>
}

export interface CutoverOptions {
  /** Serves now, under the name that clients say. */
  readonly source: ReshardSide
  readonly target: ReshardSide
  readonly plan: MovePlan
  readonly followers: readonly Follower[]
  readonly gate: TrafficGate
  readonly config: ConfigSwitch
  readonly journal: CutoverJournal
  /** Foreign keys and triggers still to be made on the targets; undefined when they stand. */
  readonly lateSchema: SchemaDump | undefined
  /** From PAUSE to RESUME. */
  readonly budgetMs: number
  /** Which side of the run `source` is; `source` when absent. */
  readonly fenceSide?: 'source' | 'target'
  /** Ends clients that keep their servers, instead of refusing. */
  readonly endPinned?: boolean
  /** Keeps the old side up to date after the switch; undefined: there is no way back. */
  readonly wayBack?: WayBack | undefined
  readonly clock: Clock
  readonly log: Log
  /** Named places, for tests that end the process there. */
  readonly point?: (name: string) => Promise<void>
  /** Called behind the fence: rejects when the sources' tables are not those of the plan. */
  readonly checkSource?: (sources: readonly HostClient[]) => Promise<void>
}

export interface CutoverReport {
  readonly writePauseMs: number
  readonly steps: readonly { readonly step: string; readonly ms: number }[]
  readonly sequences: number
  /** Where the old configuration is kept; null when the file was not changed. */
  readonly configBackup: string | null
  readonly epoch: number
  /** Whether a stream back is armed. */
  readonly wayBack: boolean
}

export interface WayBack {
  /** The only login that the fence of the old side lets through. */
  readonly role: string
  /** Makes all that the stream back needs. Idempotent. @throws RESHARD_NO_WAY_BACK */
  arm(): Promise<void>
  /** Notes where the new side stands: what was applied there before is not streamed back. */
  mark(targets: readonly HostClient[]): Promise<void>
  /** For the journal, to be written with the decision. */
  facts(): Record<string, unknown>
}
