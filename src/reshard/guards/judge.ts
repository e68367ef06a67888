/** From what the sources say and the limits to what a run must do. Pure. */
import type { GuardLimits } from './guard-limits.js'

/** What one look at a source has found; undefined: not known. */
export interface SourceReading {
  readonly latencyMs: number
  readonly replicaLagMs: number | undefined
  /** The most that one of our slots makes it keep. */
  readonly walKept: number
  /** What our stream has not confirmed yet. */
  readonly lagBytes: number
  /** The server has thrown a slot of ours away. */
  readonly isLost: boolean
}

export interface Verdict {
  readonly do: 'go' | 'hold' | 'abort'
  /** Why it is not `go`. */
  readonly reason?: string
}

/** The copy waits from this share of `maxWalKept` on, so that applying gets all there is before it is reached. */
const WAIT_AT = 0.75
/** What is held goes on below this share of its limit, so that it does not flap. */
const GO_AT = 0.8

const mega = (bytes: number): string => `${Math.ceil(bytes / 2 ** 20)} MB`

export function judge(
  readings: readonly SourceReading[],
  limits: GuardLimits,
  isHeld: boolean,
): Verdict {
  const most = (of: (reading: SourceReading) => number | undefined): number =>
    Math.max(0, ...readings.map((reading) => of(reading) ?? 0))
  const over = (value: number, limit: number): boolean =>
    limit > 0 && value > (isHeld ? limit * GO_AT : limit)
  const kept = most((reading) => reading.walKept)
  const { maxWalKept, walAction, maxSourceLatencyMs, maxReplicaLagMs } = limits
  if (maxWalKept > 0 && kept > maxWalKept && walAction === 'abort') {
    return {
      do: 'abort',
      reason: `a source keeps ${mega(kept)} of WAL, ${mega(maxWalKept)} are allowed`,
    }
  }
  if (over(kept, maxWalKept * WAIT_AT)) {
    return {
      do: 'hold',
      reason: `a source keeps ${mega(kept)} of WAL, ${mega(maxWalKept)} are allowed`,
    }
  }
  const latency = most((reading) => reading.latencyMs)
  if (over(latency, maxSourceLatencyMs)) {
    return {
      do: 'hold',
      reason: `a source answers in ${Math.round(latency)} ms, ${maxSourceLatencyMs} ms are allowed`,
    }
  }
  const lag = most((reading) => reading.replicaLagMs)
  if (over(lag, maxReplicaLagMs)) {
    return {
      do: 'hold',
      reason: `a standby is ${Math.round(lag)} ms behind, ${maxReplicaLagMs} ms are allowed`,
    }
  }
  return { do: 'go' }
}
