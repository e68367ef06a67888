/** What a lane asks of the pipeline around it. */
import type { Clock } from '../../base/clock.js'
import type { BusyLane, WakeUp } from './choose-lane.js'

export interface PipelineLimits {
  /** 0: off. */
  readonly depth: number
  readonly stallMs: number
  readonly replyBufferBytes: number
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
}
