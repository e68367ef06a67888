/** What a lane asks of the pipeline around it. */
import type { Clock } from '../../base/clock.js'
import type { BusyLane, WakeUp } from './choose-lane.js'
import type { Carrier, PipelinedClient } from './pipelined-client.js'

export interface PipelineLimits {
  /** 0: off. */
  readonly depth: number
  readonly stallMs: number
  readonly replyBufferBytes: number
}

/** A lane, to those who fill it. */
export interface RefilledLane extends BusyLane, Carrier {
  push(client: PipelinedClient, nowMs: number): void
}

export interface LaneOwner {
  readonly clock: Clock
  readonly limits: PipelineLimits
  readonly wakeUp: WakeUp
  /** Callers that wait for a server of the pool. */
  readonly waiting: number
  /** Calls the lane's `flush` at the end of the tick. */
  flushSoon(lane: { flush(): void }): void
  /** Calls the lane's `check` from time to time, while it has reason to. */
  watch(): void
  ended(lane: BusyLane): void
  /** Gives the lane what waits, as far as it may take it. */
  refill(lane: RefilledLane): void
}
