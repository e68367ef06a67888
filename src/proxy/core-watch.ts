/** Says once when a proxy of one process uses a whole core while others are idle: then more workers would serve more. */
import type { Clock, Timer } from '../base/clock.js'
import type { Log } from '../base/log.js'

const LOOK_MS = 10_000
/** Of a core. */
const BUSY = 0.95
const LOOKS_IN_A_ROW = 3

export interface CoreWatchOptions {
  readonly clock: Clock
  readonly log: Log
  /** Milliseconds of processor time that this process has used. */
  readonly cpuMs: () => number
  readonly cores: number
}

/** @returns how to end it */
export function watchCore({ clock, log, cpuMs, cores }: CoreWatchOptions): () => void {
  if (cores < 2) return () => undefined
  let timer: Timer | undefined
  let busy = 0
  let last = { cpuMs: cpuMs(), atMs: clock.monotonicMs() }
  const look = () => {
    const now = { cpuMs: cpuMs(), atMs: clock.monotonicMs() }
    const share = (now.cpuMs - last.cpuMs) / (now.atMs - last.atMs)
    last = now
    busy = share > BUSY ? busy + 1 : 0
    if (busy < LOOKS_IN_A_ROW) timer = clock.after(LOOK_MS, look)
    else
      log.warn('this process uses a whole core: serve --workers auto would use the others', {
        cores,
        share: Math.round(share * 100) / 100,
      })
  }
  timer = clock.after(LOOK_MS, look)
  return () => timer?.cancel()
}
