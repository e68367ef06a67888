/**
 * The Ctrl-C contract of long jobs: once means finish the batch and save, twice means stop now.
 * The job watches `soft`, ends itself and throws INTERRUPTED (exit 130) or says how to resume.
 */

export interface Interruptible extends Disposable {
  /** Aborted by the first signal: take no new work, save, return. */
  readonly soft: AbortSignal
  /** Aborted by the second: drop everything. The process ends with 130 right after. */
  readonly hard: AbortSignal
  dispose(): void
}

export interface InterruptOptions {
  /** What is being finished: "interrupted: finishing {what}". */
  readonly what: string
  write(line: string): void
  /** Runs at the second signal, before the process ends. Must not wait. */
  stopNow?(): void
  /** Ends the process; given by tests. */
  exit?(code: number): void
}

const signals = ['SIGINT', 'SIGTERM'] as const

/** Takes over SIGINT and SIGTERM until disposed. */
export function interruptible(options: InterruptOptions): Interruptible {
  const soft = new AbortController()
  const hard = new AbortController()
  const exit = options.exit ?? ((code: number) => process.exit(code))
  const onSignal = (): void => {
    if (!soft.signal.aborted) {
      options.write(`pgshard: interrupted: finishing ${options.what}; once more to stop now`)
      soft.abort()
      return
    }
    if (hard.signal.aborted) return
    hard.abort()
    options.stopNow?.()
    exit(130)
  }
  const dispose = (): void => {
    for (const signal of signals) process.off(signal, onSignal)
  }
  for (const signal of signals) process.on(signal, onSignal)
  return { soft: soft.signal, hard: hard.signal, dispose, [Symbol.dispose]: dispose }
}
