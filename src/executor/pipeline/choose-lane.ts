/**
 * Which server a pipelined statement goes to: the one that is expected to be done with it first. A server that is
 * running costs what stands in its queue; an idle one costs its wake-up, which for short statements is more than
 * queueing behind a few others (findings §1). Pure.
 */
import type { PipelinedClient } from './pipelined-client.js'

/** A server with statements under way. */
export interface BusyLane {
  /** Expected time until it is free. */
  readonly costMs: number
  mayTake(client: PipelinedClient, nowMs: number): boolean
}

const SHARE = 1 / 32
const LEAST_MS = 0.02
const MOST_MS = 2

/** The running estimate of how long an idle server takes to start working. */
export class WakeUp {
  #ms = 0.1

  get ms(): number {
    return this.#ms
  }

  /** A statement that is expected to take `meanMs` was answered by an idle server after `elapsedMs`. */
  note(elapsedMs: number, meanMs: number): void {
    const sample = Math.min(Math.max(elapsedMs - meanMs, LEAST_MS), MOST_MS)
    this.#ms += (sample - this.#ms) * SHARE
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

/** True when queueing is expected to be done before an idle server would be. */
export const isQueueingFaster = (lane: BusyLane, wakeUp: WakeUp): boolean =>
  lane.costMs <= wakeUp.ms
