/**
 * Which server a pipelined statement goes to: the one that is expected to be done with it first. A server that is
 * running costs what stands in its queue; an idle one costs its wake-up, which for short statements is more than
 * queueing behind a few others (findings §1). Pure.
 */
import type { ClassFigures } from '../../plan/plan.js'
import type { PipelinedClient } from './pipelined-client.js'

/** A server with statements under way. */
export interface BusyLane {
  /** Expected time until it is free. */
  readonly costMs: number
  mayTake(client: PipelinedClient, nowMs: number): boolean
}

const LEAST_MS = 0.02
const MOST_MS = 2
const LONGER_SHARE = 1 / 32
const SHORTER_SHARE = 1 / 8

/** A class of which some statements take long costs at least this part of its mean, which also holds what the machine took for others. */
const MEAN_PART = 1 / 16

/** To wake a server costs the machine as much again as the one who waits for it, in switches and system calls. */
const WAKING = 3

/** The running estimate of how long an idle server takes to start working. */
export class WakeUp {
  #ms = 0.1

  get ms(): number {
    return this.#ms
  }

  /** How long a statement of the class is expected to keep a server that is running. */
  costOf(figures: ClassFigures): number {
    const { typicalMs, meanMs, hotRuns } = figures
    const ms = hotRuns > 0 ? typicalMs : Math.max(typicalMs - this.#ms, typicalMs / 4)
    return Math.max(ms, meanMs * MEAN_PART)
  }

  /**
   * A statement was answered by an idle server after `elapsedMs`, which tells the sum of two estimates only. More than
   * expected is put down to the wake-up, so that more are queued and their time by itself is seen; less shortens both.
   */
  note(elapsedMs: number, figures: ClassFigures): void {
    const expectedMs = figures.typicalMs + this.#ms
    const over = Math.max(elapsedMs, 0) - expectedMs
    if (over < 0) {
      const shrinks = 1 + (over / expectedMs) * SHORTER_SHARE
      figures.typicalMs *= shrinks
      this.#ms *= shrinks
    } else this.#ms += Math.min(over, this.#ms) * LONGER_SHARE
    this.#ms = Math.min(Math.max(this.#ms, LEAST_MS), MOST_MS)
  }
}

/** The busy lane that is free first among those that may take the request. */
export function firstFree<L extends BusyLane>(
  lanes: readonly L[],
  client: PipelinedClient,
  nowMs: number,
): L | undefined {
  let best: L | undefined
  for (const lane of lanes) {
    if (best !== undefined && lane.costMs >= best.costMs) continue
    if (lane.mayTake(client, nowMs)) best = lane
  }
  return best
}

/** True when queueing is expected to be done before an idle server would be, or costs less. */
export const isQueueingFaster = (lane: BusyLane, wakeUp: WakeUp): boolean =>
  lane.costMs <= wakeUp.ms * WAKING
