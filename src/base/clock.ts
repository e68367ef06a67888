/** Time and chance, handed in so that tests own them. The only place that reads the machine's clock. */

export interface Timer {
  cancel(): void
}

export interface Clock {
  /** Milliseconds since the epoch. */
  nowMs(): number
  /** Monotonic milliseconds, with fractions; for durations. */
  monotonicMs(): number
  /** Calls `run` once after `delayMs`; the timer alone does not keep the process alive. */
  after(delayMs: number, run: () => void): Timer
  sleep(delayMs: number, signal?: AbortSignal): Promise<void>
}

const after = (delayMs: number, run: () => void): Timer => {
  const handle = setTimeout(run, Math.min(delayMs, 2_147_483_647))
  handle.unref()
  return { cancel: () => clearTimeout(handle) }
}

/** Resolves after `delayMs`, or at once when `signal` aborts; keeps the process alive. */
const sleep = (delayMs: number, signal?: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal?.aborted) return resolve()
    const finish = () => {
      clearTimeout(handle)
      signal?.removeEventListener('abort', finish)
      resolve()
    }
    const handle = setTimeout(finish, delayMs)
    signal?.addEventListener('abort', finish, { once: true })
  })

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  after,
  sleep,
}
