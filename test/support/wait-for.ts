/** Waiting for a condition with a deadline; tests never sleep for a guessed time. */

export interface WaitOptions {
  deadlineMs?: number
  intervalMs?: number
  /** What is waited for, for the failure's text. */
  what?: string
}

/** Resolves with the first truthy value of `condition`; fails at the deadline with what it last gave or threw. */
export async function waitFor<T>(
  condition: () => T | Promise<T>,
  options: WaitOptions = {},
): Promise<NonNullable<T>> {
  const { deadlineMs = 20_000, intervalMs = 20, what = condition.toString() } = options
  const end = performance.now() + deadlineMs
  let last: unknown
  do {
    try {
      const value = await condition()
      if (value) return value
      last = value
    } catch (error) {
      last = error
    }
    await new Promise((resolve) => setTimeout(resolve, intervalMs))
  } while (performance.now() < end)
  const cause = last instanceof Error ? last : undefined
  throw new Error(`not within ${deadlineMs} ms: ${what} (last: ${String(last)})`, { cause })
}
